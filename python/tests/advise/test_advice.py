from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion._util.units import core_time_text, seconds_text
from apportion.errors import ApportionError
from apportion.logs.advise import render
from apportion.logs.advise.advice import advise, collected, read
from apportion.logs.advise.cards import cards
from apportion.logs.advise.model.findings import (
    NO_SQL,
    ApplicationAdvice,
    Gain,
    Kind,
    gain_text,
    largest,
    total,
)
from apportion.logs.advise.reading import read_all
from apportion.logs.eventlog import Application, Query, Unread
from apportion.logs.eventlog.model import ESTIMATED_SLOTS

from .applications import (
    FILE_BYTES,
    FILES,
    JOIN,
    MB,
    advice_for,
    application,
    measured_stages,
    plan,
    stage,
)

GOLDEN = Path(__file__).parents[1] / "eventlog/golden/spark-4.2.zstd"
numbers = st.lists(st.integers(0, 60_000), min_size=1, max_size=30)


@settings(max_examples=100, deadline=None)
@given(numbers, st.integers(0, 1 << 34), st.integers(1, 40), st.integers(0, 60_000), st.data())
def test_a_gain_is_never_more_than_the_time_of_its_stage(
    millis: list[int], size: int, slots: int, lost: int, data: st.DataObject
) -> None:
    columns: dict[str, Any] = {
        name: [size if data.draw(st.booleans()) else 0 for _ in millis]
        for name in ("shuffle_read_bytes", "spilled_bytes", "output_bytes")
    }
    times: dict[str, Any] = {
        name: [lost] * len(millis) for name in ("gc_millis", "fetch_wait_millis")
    }
    reader = stage(1, millis, slots=slots, **columns, **times)
    reader.failed_tasks, reader.wasted_millis = lost % 3, lost
    scan = stage(0, millis, slots=slots, start=lost, input_bytes=columns["shuffle_read_bytes"])
    made = application(
        reader,
        scan,
        tree=plan(reader=JOIN),
        cores=slots,
        driver_metrics={FILES: 3, FILE_BYTES: size},
    )
    seconds = {each.id: each.seconds for each in measured_stages(made)}
    advice = advice_for(made)
    for query in advice.queries:
        for finding in query.findings:
            gain = finding.gain
            assert finding.stage is not None
            assert 0 <= gain.seconds_low <= gain.seconds_high <= seconds[finding.stage] + 1e-9
            assert 0 <= gain.core_hours_low <= gain.core_hours_high
        assert 0 <= query.gain.seconds_low <= query.gain.seconds_high
        assert query.gain.seconds_high <= query.stage_seconds + 1e-9
    assert advice.gain.seconds_high <= advice.stage_seconds + 1e-9


def test_gains_of_one_stage_do_not_add_up() -> None:
    assert largest([Gain(1, 2, 3, 4), Gain(0, 5, 0, 6)]) == Gain(1, 5, 3, 6)
    assert total([Gain(1, 2, 3, 4), Gain(1, 5, 0, 6)], 6, 100) == Gain(2, 6, 3, 10)


def test_numbers_have_units_and_two_digits() -> None:
    assert [seconds_text(each) for each in (0.06, 12.34, 4000, 40_000)] == [
        "60 ms", "12.3 s", "66.7 min", "11.1 h",
    ]  # fmt: skip
    assert [core_time_text(each) for each in (0, 1.1, 59, 90, 360, 8424, 444_240)] == [
        "0 core-seconds", "1.1 core-seconds", "59 core-seconds", "1.5 core-minutes",
        "0.1 core-hours", "2.3 core-hours", "123 core-hours",
    ]  # fmt: skip
    assert gain_text(Gain(0, 2, 0, 0.5)) == "up to 2.0 s, or 0.5 core-hours"
    assert gain_text(Gain(0, 2, 0, 0.00031)) == "up to 2.0 s, or 1.1 core-seconds"
    assert gain_text(Gain(0, 2, 0.001, 0.05)) == "up to 2.0 s (0.06 to 3.0 core-minutes)"
    assert gain_text(Gain()) == "not known from this log"


def test_queries_and_findings_with_larger_gains_come_first() -> None:
    slow = stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2)
    slow.failed_tasks, slow.wasted_millis = 1, 6000
    made = application(slow, cores=16)
    other = application(stage(1, [100], shuffle_read_bytes=[1])).queries[0]
    made.queries = {7: other, 0: made.queries[0]}
    other.id = 7
    advice = advice_for(made)
    assert [query.id for query in advice.queries] == [0, 7]
    gains = [finding.gain.rank for finding in advice.queries[0].findings]
    assert len(gains) == 2
    assert gains == sorted(gains, reverse=True)


def test_one_query_can_be_chosen() -> None:
    made = application(stage(1, [100]))
    assert [query.id for query in advise(made, "log", [0]).queries] == [0]
    with pytest.raises(ApportionError, match="log has no query 5"):
        advise(made, "log", [5])


def test_notes_name_logs_that_apportion_cannot_help() -> None:
    assert NO_SQL in advice_for(Application(name="rdds")).notes
    old = advice_for(application(stage(1, [100]), version="3.1.2"))
    assert "Apportion needs Spark 3.5 or later; this is Spark 3.1.2" in old.notes
    assert not old.is_supported
    gpu = advice_for(application(stage(1, [100]), tree=plan(reader="GpuProject [k#1]")))
    assert any(note.startswith("RAPIDS replaces") for note in gpu.notes)


def test_databricks_is_not_supported() -> None:
    cluster = {"spark.databricks.clusterUsageTags.clusterId": "0612-094512-abc"}
    # Logs of Databricks have no version of Spark.
    large = stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2)
    advice = advice_for(application(large, conf=cluster, version="", cores=16))
    assert not advice.is_supported
    assert advice.notes == ["Apportion does not support Databricks"]
    (finding,) = advice.queries[0].findings
    assert (finding.helps, finding.decided, finding.settings) == (False, None, {})
    shown = render.text(collected([advice]), 20)
    assert "Possible saving: up to 17.5 s" in shown
    assert "With Apportion" not in shown
    # Delta Lake has settings of this name on any Spark.
    delta = {"spark.databricks.delta.schema.autoMerge.enabled": "true"}
    assert advice_for(application(large, conf=delta)).is_supported


def test_stages_outside_of_sql_are_counted_apart() -> None:
    made = application(stage(1, [5000]))
    outside = stage(0, [9000], overhead=0)
    outside.id, outside.query = 9, None
    made.other_stages.append(outside)
    advice = advice_for(made)
    assert (advice.task_seconds, advice.other_task_seconds) == (5, 9)
    (finding,) = advice.findings
    assert (finding.kind, finding.query) == (Kind.OUTSIDE_OF_SQL, None)
    assert finding.evidence["all_task_seconds"] == 14
    assert "1 stage outside of SQL took 9.0 s of 14.0 s of task time." in finding.text
    assert finding.without == [
        "tune these calls in their code, as settings of Spark SQL do not change their tasks"
    ]
    outside.name = "load at report.py:7"
    outside.gc_millis[0] = 9000
    (finding,) = advice_for(made).findings
    assert finding.without[0].startswith("a schema for each read")


def test_stages_outside_of_sql_have_findings_of_their_own() -> None:
    made = Application(id="app-1", name="rdds", started=0, slots=[(0, 4)])
    outside = stage(0, [9000] * 4, gc_millis=[3000] * 4)
    outside.query = None
    made.other_stages.append(outside)
    found = {each.kind: each for each in advice_for(made).findings}
    assert found.keys() == {Kind.OUTSIDE_OF_SQL, Kind.GARBAGE_COLLECTION}
    assert (found[Kind.GARBAGE_COLLECTION].query, found[Kind.GARBAGE_COLLECTION].stage) == (None, 0)


def test_a_log_without_its_start_says_nothing_about_work_outside_of_sql() -> None:
    made = Application(id="app-1", name="rdds", slots=[(0, 4)])
    outside = stage(0, [9000] * 4)
    made.other_stages.append(outside)
    assert advice_for(made).findings == []


def scanning(queries: int, files: int = 4) -> Application:
    scan = stage(0, [4000] * 4, input_bytes=[MB] * 4)
    made = application(scan, driver_metrics={FILES: 4, FILE_BYTES: 400 * MB})
    for number in range(1, queries):
        other = application(scan, driver_metrics={FILES: files, FILE_BYTES: 400 * MB})
        made.queries[number] = other.queries[0]
        made.queries[number].id = number
    return made


def test_files_that_queries_scan_again_and_again_are_found() -> None:
    (finding,) = advice_for(scanning(3)).findings
    assert finding.kind is Kind.REPEATED_SCANS
    assert finding.short == "db.sales is scanned 3 times"
    assert finding.evidence == {
        "scans": 3, "queries": 3, "files": 4, "file_bytes": 400 * MB, "scanned_bytes": 12 * MB,
        "task_seconds": 48, "repeated_task_seconds": 32,
    }  # fmt: skip
    assert advice_for(scanning(2)).findings == []
    # The queries scan other partitions of the table.
    assert advice_for(scanning(3, files=5)).findings == []


def test_findings_with_one_cause_are_one_card() -> None:
    spilled = stage(
        1, [5000] * 3, shuffle_read_bytes=[20 * MB] * 3, spilled_bytes=[30 * MB] * 3,
        gc_millis=[2500] * 3,
    )  # fmt: skip
    (card,) = cards(advice_for(application(spilled)))
    assert [each.kind for each in card.findings] == [Kind.GARBAGE_COLLECTION, Kind.SPILL]
    assert card.title == "Garbage collection and spill to disk"
    assert card.gain.seconds_high == max(each.gain.seconds_high for each in card.findings)
    assert len(card.fixes) == len(set(card.fixes)) == 3


def test_the_fix_of_a_card_comes_before_the_measurements() -> None:
    large = stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2)
    lines = render.text(collected([advice_for(application(large, cores=16))]), 20).splitlines()
    places = [
        next(place for place, line in enumerate(lines) if text in line)
        for text in ("Too few, large tasks: 2 tasks where 16", "Fix:", "2 tasks read", "Apportion ")
    ]
    assert places == sorted(places)


def test_an_unfinished_stage_without_metrics_has_no_operators() -> None:
    running = stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2)
    running.accumulators = {}
    advice = advice_for(application(running, cores=16))
    assert [finding.helps for finding in advice.queries[0].findings] == [False]
    assert advice.queries[0].findings[0].operators == []


def test_a_log_that_cannot_be_read_is_listed(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no events\n")
    results = list(read_all([str(GOLDEN), str(text), str(tmp_path / "none")], processes=1))
    advice = collected(results)
    assert [application.log for application in advice.applications] == [str(GOLDEN)]
    assert [unread.log for unread in advice.unread] == [str(text), str(tmp_path / "none")]
    assert advice.unread[0].reason == "it has no event of Spark"


def test_several_processes_give_the_same_advice_in_the_same_order() -> None:
    logs = [str(GOLDEN), str(GOLDEN.with_name("spark-4.1.zstd"))]
    assert list(read_all(logs, processes=2)) == [read(log) for log in logs]


def test_a_job_has_the_runs_with_its_name() -> None:
    slow = application(stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2), cores=16)
    advice = collected([advise(slow, "a"), advise(slow, "b"), Unread("c", "damaged")])
    (job,) = advice.jobs
    assert (job.name, job.logs, job.findings) == ("nightly", 2, 2)
    assert job.gain.seconds_high == 2 * (20 - 40 / 16)
    assert advice.gain == job.gain


def test_the_golden_log_has_no_findings() -> None:
    advice = read(str(GOLDEN))
    assert isinstance(advice, ApplicationAdvice)
    assert advice.count == 0
    assert [query.id for query in advice.queries] == [0, 1, 2]


def test_estimated_slots_are_named() -> None:
    made = application(stage(1, [10] * 4))
    assert advice_for(made).notes == []
    made.has_estimated_slots = True
    assert advice_for(made).notes == [ESTIMATED_SLOTS]


def failing(*messages: str | None) -> Application:
    made = application(stage(1, [10] * 4))
    for number, message in enumerate(messages):
        made.queries[number] = Query(number, "the daily report", 0, 100, message)
    return made


def test_failed_queries_are_named() -> None:
    advice = advice_for(failing(None, "PythonException: no\n  at line 1", "", "x" * 5000))
    assert {each.id: each.failure for each in advice.queries} == {
        0: None, 1: "PythonException: no", 2: None, 3: "x" * 5000,
    }  # fmt: skip
    failures = {each.id: finding for each in advice.queries for finding in each.findings}
    assert failures.keys() == {1, 3}
    assert failures[1].kind is Kind.FAILED_QUERY
    assert failures[1].text == "It failed after 0 ms of task time: PythonException: no"
    assert failures[3].text.endswith(f": {'x' * 300}")


def test_many_failed_queries_are_one_card() -> None:
    advice = advice_for(failing(*["an error"] * 8))
    (card,) = cards(advice)
    assert len(card.findings) == 8
    shown = render.text(collected([advice]), 20)
    assert shown.count("read the whole error") == 1
    assert "and 4 more" in shown


def test_the_time_of_a_failed_query_is_lost() -> None:
    made = application(stage(1, [5000] * 4))
    made.queries[0].failure = "an error"
    made.stages.__next__().wasted_millis = 1000
    (finding,) = advice_for(made).queries[0].findings
    assert finding.evidence["lost_task_seconds"] == 21
    assert finding.gain == Gain(0, 5, 0, 21 / 3600)
