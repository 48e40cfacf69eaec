"""Predictions from logs of plain Spark are compared with runs, with the stages in pairs."""

from __future__ import annotations

from pathlib import Path

from apportion import eventlog
from measurements.checks import plain_logs
from measurements.checks.plain_logs import StagePair, StageTasks, pairs
from measurements.checks.plans import OFF, ON

from . import logs

WORK = ("Scan sales", "Aggregate day")


def test_stages_are_paired_by_their_work_before_their_operators() -> None:
    joined = StageTasks("stage 2", 4, ("Join", *WORK), ("Join",), "shuffle")
    again = StageTasks("stage 3", 8, ("Join", "Scan days"), ("Join",), "shuffle")
    result = StageTasks("result", 1, ("Sort",), ("Sort",))
    limited = StageTasks("result", 2, ("Limit",), ("Limit",))
    found = pairs([joined, again, result], [again, limited, joined])
    assert {(pair.name, pair.predicted, pair.measured) for pair in found} == {
        ("stage 3", 8, 8), ("stage 2", 4, 4), ("result", 1, 2),
    }  # fmt: skip


def test_a_stage_of_only_one_plan_is_wrong() -> None:
    (missing,) = pairs([], [StageTasks("stage 1", 4)])
    (additional,) = pairs([StageTasks("stage 1", 4)], [])
    assert missing == StagePair("stage 1", None, 4)
    assert not any(each.is_exact or each.is_within_2 for each in (missing, additional))


def test_tasks_within_a_factor_of_2_are_counted() -> None:
    assert [StagePair("", tasks, 4).is_within_2 for tasks in (1, 2, 4, 8, 9)] == [
        False, True, True, True, False,
    ]  # fmt: skip


def test_a_row_compares_a_prediction_with_its_measured_run(tmp_path: Path) -> None:
    events = logs.application({"spark.master": "local[2]"})
    for number, variant in enumerate((OFF, ON)):
        description = f"tpch 6 {variant.name} 1"
        decided = [] if variant is OFF else [logs.decision(number)]
        events += logs.query(number, decided, description=description, modifiedConfigs=variant.conf)
    application = eventlog.read(logs.write(tmp_path / "log", events))
    (row,) = plain_logs.rows(application)
    assert (row["benchmark"], row["master"], row["query"]) == ("tpch", "local[2]", "6")
    assert (row["logged"], row["measured"], row["stages"], row["exact"]) == ("1.67", "1.67", 2, 2)


def test_queries_that_ran_once_have_no_times(tmp_path: Path) -> None:
    events = logs.application({"spark.master": "local[8]"})
    for number, variant in enumerate((OFF, ON)):
        description = f"tpcds 1 {variant.name} 0"
        events += logs.query(number, [], description=description, modifiedConfigs=variant.conf)
    application = eventlog.read(logs.write(tmp_path / "log", events))
    (row,) = plain_logs.rows(application)
    assert (row["measured"], row["error"], row["exact"]) == ("", "", 2)
