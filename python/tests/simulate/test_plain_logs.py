"""Logs that were recorded without Apportion, or that have names and fields of real plans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from apportion import eventlog
from apportion.cli import app
from apportion.eventlog import Application
from apportion.simulate import Outcome, Scenario, simulate
from apportion.simulate.report import notes
from apportion.simulate.workload import workload

from . import logs

MB = 1 << 20
KEYS = "hashpartitioning(key#1, 200), ENSURE_REQUIREMENTS, [plan_id=7]"
ENABLED = "spark.apportion.enabled"
PLAIN = {"spark.master": "local[2]"}


def plan(partitioning: str = KEYS, join: str = "SortMergeJoin", read: str = "coalesced") -> Any:
    scan = logs.node("Scan parquet ", scan_time=logs.SCANNED)
    exchange = logs.node("Exchange", scan, text=partitioning, data_size=logs.WRITTEN)
    stage = logs.node("ShuffleQueryStage", exchange, text="0")
    joined = logs.node(join, logs.node("AQEShuffleRead", stage, text=read), time=logs.AGGREGATED)
    result = logs.node("ResultQueryStage", logs.node("WholeStageCodegen (3)", joined), text="1")
    return logs.node("AdaptiveSparkPlan", result)


def plain(path: Path, **changes: str) -> Application:
    query = logs.query(decided=[], sparkPlanInfo=plan(**changes))
    return eventlog.read(logs.write(path / "log", [*logs.application(PLAIN), *query]))


def outcome(application: Application, conf: dict[str, str], **changes: Any) -> Outcome:
    return simulate(application, [Scenario("set", conf, **changes)]).rows[-1].outcomes[0]


def test_the_replay_of_a_plain_log_has_the_logged_tasks(tmp_path: Path) -> None:
    measured, replay = simulate(plain(tmp_path), []).rows
    assert replay.outcomes[0].stages == measured.outcomes[0].stages


def test_a_setting_of_apportion_enables_it_for_a_plain_log(tmp_path: Path) -> None:
    application = plain(tmp_path)
    for conf in ({ENABLED: "true"}, {"spark.apportion.dataVolumePerTask": "64MB"}):
        assert [stage.tasks for stage in outcome(application, conf).stages] == [2, 2]
    small = outcome(application, {"spark.apportion.dataVolumePerTask": str(MB)}).stages[1]
    assert (small.tasks, small.largest_task_bytes) == (8, MB)
    assert small.assumes_equal_partitions
    assert not outcome(application, {}, slots=2).assumes_equal_partitions


@pytest.mark.parametrize(
    "changes",
    [
        {"partitioning": "SinglePartition, ENSURE_REQUIREMENTS, [plan_id=7]"},
        {"partitioning": "hashpartitioning(key#1, 200), REPARTITION_BY_NUM, [plan_id=7]"},
        {"join": "SortMergeJoin(skew=true)"},
        {"join": "Union"},
        {"read": "local"},
    ],
)
def test_a_stage_keeps_its_tasks_if_they_do_not_follow_from_the_bytes(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    found = outcome(plain(tmp_path, **changes), {"spark.apportion.dataVolumePerTask": str(MB)})
    assert found.stages[1].is_as_logged
    kept = "result keeps its tasks: the log has no decision for its shuffles"
    assert found.notes == [kept]
    small = Scenario("set", {"spark.apportion.dataVolumePerTask": str(MB)})
    assert f"set: {kept}" in notes(simulate(plain(tmp_path, **changes), [small]))


def test_the_output_marks_predictions_with_equal_partitions(tmp_path: Path) -> None:
    plain(tmp_path)
    arguments = ["simulate", str(tmp_path / "log"), "--set", "data_volume_per_task=1MB"]
    text = CliRunner().invoke(app, arguments)
    assert text.exit_code == 0
    assert ")*" in text.stdout
    assert "Note: * assumes equal shuffle partitions" in text.stdout
    assert "`apportion advise LOG`" in text.stdout
    content = json.loads(CliRunner().invoke(app, [*arguments, "--format", "json"]).stdout)
    changed = next(row for row in content["scenarios"] if row["name"] == "set")
    stages = changed["queries"][0]["stages"]
    assert [stage["assumes_equal_partitions"] for stage in stages] == [False, True]


def test_a_log_without_queries_has_a_reason(tmp_path: Path) -> None:
    log = logs.write(tmp_path / "log", logs.application())
    result = CliRunner().invoke(app, ["simulate", str(log)])
    assert result.exit_code == 2
    assert "there is no query to simulate: the log has no SQL query" in result.stderr


@pytest.mark.parametrize("name", ["TakeOrderedAndProject", "TakeOrderedAndProject(limit=5)"])
def test_a_limit_is_found_by_the_kind_of_its_operator(tmp_path: Path, name: str) -> None:
    application = plain(tmp_path, join=name)
    found = workload(application, application.queries[3])
    assert found
    assert [stage.limits for stage in found.stages] == [False, True]
    # The driver combined the rows of the two tasks, so no stage follows.
    assert simulate(application, []).rows[1].total.tasks == 4


def test_stages_with_several_resource_profiles_get_a_note(tmp_path: Path) -> None:
    events = [*logs.application(), *logs.query()]
    for event in events:
        info = event.get("Stage Info", {})
        info["Resource Profile Id"] = info.get("Stage ID", 0) % 2
    application = eventlog.read(logs.write(tmp_path / "log", events))
    assert "the stages of query 3 have 2 resource profiles" in next(
        notes(simulate(application, []))
    )


def test_slots_that_are_added_while_a_query_runs_get_a_note(tmp_path: Path) -> None:
    added = {
        "Event": "SparkListenerExecutorAdded", "Timestamp": 500, "Executor ID": "2",
        "Executor Info": {"Total Cores": 6},
    }  # fmt: skip
    events = [*logs.application(), *logs.query(), added]
    application = eventlog.read(logs.write(tmp_path / "log", events))
    assert "query 3 started with 2 slots and had up to 8 later" in next(
        notes(simulate(application, []))
    )


def test_a_hostile_partitioning_is_ignored(tmp_path: Path) -> None:
    for text in ("hashpartitioning(" * 200_000, KEYS.replace("200", "999999999")):
        found = outcome(plain(tmp_path, partitioning=text), {ENABLED: "true"})
        assert found.stages[1].is_as_logged
