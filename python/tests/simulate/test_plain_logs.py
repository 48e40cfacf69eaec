"""Logs that were recorded without Apportion, or that have names and fields of real plans."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from apportion import eventlog
from apportion.cli import app
from apportion.logs.eventlog import Application
from apportion.logs.simulate import Outcome, Scenario, simulate
from apportion.logs.simulate.report import notes
from apportion.logs.simulate.workload import workload
from measurements.checks import cluster_logs

from . import logs

MB = 1 << 20
KEYS = "hashpartitioning(key#1, 200), ENSURE_REQUIREMENTS, [plan_id=7]"
ENABLED = "spark.apportion.enabled"
PLAIN = {"spark.master": "local[2]"}


# Metrics of the exchanges, and of a broadcast.
WRITE_TIME, ROWS, OTHER, OTHER_TIME, TABLE, TABLE_ROWS = 11, 12, 13, 14, 15, 16


def exchange(number: int, partitioning: str = KEYS, read: str = "coalesced", **metrics: int) -> Any:
    scan = logs.node("Scan parquet ", scan_time=logs.SCANNED)
    node = logs.node("Exchange", scan, text=partitioning, **metrics)
    stage = logs.node("ShuffleQueryStage", node, text=str(number))
    return logs.node("InputAdapter", logs.node("AQEShuffleRead", stage, text=read))


def plan(
    partitioning: str = KEYS,
    join: str = "SortMergeJoin",
    read: str = "coalesced",
    text: str = "",
    others: Sequence[Any] = (),
) -> Any:
    metrics = {
        "data_size": logs.WRITTEN, "shuffle_write_time": WRITE_TIME,
        "shuffle_records_written": ROWS,
    }  # fmt: skip
    inputs = [exchange(0, partitioning, read, **metrics), *others]
    joined = logs.node(join, *inputs, text=text, time=logs.AGGREGATED)
    result = logs.node("ResultQueryStage", logs.node("WholeStageCodegen (3)", joined), text="1")
    return logs.node("AdaptiveSparkPlan", result)


def broadcast() -> Any:
    scan = logs.node("Scan parquet ")
    metrics = {"data_size": TABLE, "number_of_output_rows": TABLE_ROWS}
    table = logs.node("BroadcastExchange", scan, text="HashedRelation", **metrics)
    return logs.node("InputAdapter", logs.node("BroadcastQueryStage", table, text="7"))


def plain(
    path: Path,
    conf: dict[str, str] = PLAIN,
    written: dict[int, int] | None = None,
    cores: int = 2,
    **changes: Any,
) -> Application:
    """A query without Apportion. `written` are metrics of the stage that writes the shuffle."""
    query = logs.query(decided=[], sparkPlanInfo=plan(**changes))
    for event in query:
        info = event.get("Stage Info", {})
        if info.get("Stage ID") == 30 and "Accumulables" in info:
            more = [{"ID": id, "Value": value} for id, value in (written or {}).items()]
            info["Accumulables"] = [*info["Accumulables"], *more]
    return eventlog.read(logs.write(path / "log", [*logs.application(conf, cores), *query]))


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
    assert small.tasks == 8
    # The driver knows sizes of blocks that are rounded up.
    assert MB < small.largest_task_bytes < 1.1 * MB
    assert small.assumes_equal_partitions
    assert not outcome(application, {}, slots=2).assumes_equal_partitions


@pytest.mark.parametrize(
    "changes",
    [
        {"partitioning": "SinglePartition, ENSURE_REQUIREMENTS, [plan_id=7]"},
        {"partitioning": "hashpartitioning(key#1, 200), REPARTITION_BY_NUM, [plan_id=7]"},
        {"join": "SortMergeJoin(skew=true)"},
        {"join": "Coalesce"},
        {"join": "CollectLimit"},
    ],
)
def test_a_stage_keeps_its_tasks_if_they_do_not_follow_from_the_bytes(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    found = outcome(plain(tmp_path, **changes), {"spark.apportion.dataVolumePerTask": str(MB)})
    assert found.stages[1].is_as_logged
    kept = "stage 31 keeps its tasks: the log has no decision for its shuffles"
    assert found.notes == [kept]
    small = Scenario("set", {"spark.apportion.dataVolumePerTask": str(MB)})
    assert f"set: {kept}" in notes(simulate(plain(tmp_path, **changes), [small]))


@pytest.mark.parametrize(
    "changes",
    [
        {"read": "local"},
        {"join": "BroadcastHashJoin", "others": [broadcast()]},
        {"join": "Union"},
        {"join": "LocalLimit"},
    ],
)
def test_a_stage_gets_tasks_from_the_bytes_of_its_shuffles(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    found = outcome(plain(tmp_path, **changes), {"spark.apportion.dataVolumePerTask": str(MB)})
    assert found.stages[1].tasks == 8
    assert found.notes == []


def test_a_scan_beside_a_shuffle_in_a_join_keeps_the_tasks(tmp_path: Path) -> None:
    application = plain(tmp_path, others=[logs.node("Scan parquet ", text="Bucketed: true")])
    small = outcome(application, {"spark.apportion.dataVolumePerTask": str(MB)})
    assert small.stages[1].is_as_logged


def test_tasks_of_a_join_that_multiplies_rows_read_less(tmp_path: Path) -> None:
    application = plain(tmp_path, join="BroadcastNestedLoopJoin", others=[broadcast()])
    active = {ENABLED: "true", "spark.apportion.mode": "active"}
    assert outcome(application, active).stages[1].tasks == 8
    assert outcome(plain(tmp_path), active).stages[1].tasks == 1


def test_a_rebalance_does_not_fill_the_slots(tmp_path: Path) -> None:
    rebalance = KEYS.replace("ENSURE_REQUIREMENTS", "REBALANCE_PARTITIONS_BY_COL")
    application = plain(tmp_path, partitioning=rebalance, join="Project")
    assert outcome(application, {ENABLED: "true"}).stages[1].tasks == 1
    assert outcome(plain(tmp_path, join="Project"), {ENABLED: "true"}).stages[1].tasks == 2


def union(path: Path, above: str = "Project", text: str = "") -> Application:
    """A union of two shuffles, of which Spark read each in one task."""
    both = logs.node("Union", exchange(0, data_size=logs.WRITTEN), exchange(1, data_size=OTHER))
    result = logs.node(above, both, text=text, time=logs.AGGREGATED)
    events = logs.query(decided=[], sparkPlanInfo=logs.node("AdaptiveSparkPlan", result))
    job = next(place for place, event in enumerate(events) if "Stage IDs" in event)
    events[job]["Stage IDs"].append(29)
    writers = [logs.task(29, 100, 1100, wrote=4 * MB) for _ in range(2)]
    events[job + 1 : job + 1] = logs.stage(29, 100, 1100, writers, OTHER)
    return eventlog.read(logs.write(path / "log", [*logs.application(PLAIN), *events]))


def test_a_union_has_the_tasks_of_each_of_its_shuffles(tmp_path: Path) -> None:
    application = union(tmp_path)
    assert [stage.tasks for stage in outcome(application, {ENABLED: "true"}).stages] == [2, 2, 2]
    small = outcome(application, {"spark.apportion.dataVolumePerTask": str(MB)})
    assert [stage.tasks for stage in small.stages] == [2, 2, 16]


def test_a_union_below_a_window_keeps_its_tasks(tmp_path: Path) -> None:
    small = {"spark.apportion.dataVolumePerTask": str(MB)}
    for above, text in (("Window", ""), ("HashAggregate", "(keys=[key#1], functions=[sum(n#2)])")):
        assert outcome(union(tmp_path, above, text), small).stages[2].is_as_logged
    partial = "(keys=[key#1], functions=[partial_sum(n#2)])"
    assert outcome(union(tmp_path, "HashAggregate", partial), small).stages[2].tasks == 16


def test_more_tasks_run_if_the_rows_do_not_fit_the_memory(tmp_path: Path) -> None:
    rows = {logs.WRITTEN: 800 * MB, ROWS: 4_000_000}
    small, large = (
        plain(tmp_path, {**PLAIN, "spark.driver.memory": memory}, rows, join="Sort")
        for memory in ("1g", "8g")
    )
    assert outcome(small, {ENABLED: "true"}).stages[1].tasks == 8
    assert outcome(large, {ENABLED: "true"}).stages[1].tasks == 2
    unlimited = {ENABLED: "true", "spark.apportion.memory.enabled": "false"}
    assert outcome(small, unlimited).stages[1].tasks == 2


def test_map_tasks_of_fewer_files_take_less_time(tmp_path: Path) -> None:
    # The two tasks together wrote files for 0.4 seconds, one for each of 200 partitions.
    application = plain(tmp_path, written={WRITE_TIME: 400_000_000})
    replay, with_apportion = (
        simulate(application, [Scenario("set", {ENABLED: "true"})]).rows[place].outcomes[0]
        for place in (1, 2)
    )
    assert replay.stages[0].task_seconds == 2.0
    assert with_apportion.stages[0].task_seconds == pytest.approx(1.6, abs=0.01)
    assert with_apportion.makespan == pytest.approx(replay.makespan - 0.2, abs=0.01)


def test_a_map_task_also_pays_for_opening_files_with_rows(tmp_path: Path) -> None:
    # Spark counts 20 ms for each task, of which 13 ms make files. Half of the files get a row.
    application = plain(tmp_path, written={WRITE_TIME: 40_000_000, ROWS: 200})
    found = outcome(application, {ENABLED: "true"}).stages[0]
    assert found.task_seconds == pytest.approx(2.0 - 2 * (0.02 + 3 * 0.0135), abs=0.01)


def test_map_tasks_of_a_fixed_number_of_partitions_keep_their_time(tmp_path: Path) -> None:
    fixed = KEYS.replace("ENSURE_REQUIREMENTS", "REPARTITION_BY_NUM")
    application = plain(tmp_path, written={WRITE_TIME: 400_000_000}, partitioning=fixed)
    assert outcome(application, {ENABLED: "true"}).stages[0].task_seconds == 2.0


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


def test_the_stage_of_a_limit_that_only_a_scenario_needs_is_shown(tmp_path: Path) -> None:
    events = logs.query(decided=[], sparkPlanInfo=plan(join="TakeOrderedAndProject"))
    # One task sorted all rows.
    del events[next(place for place, event in enumerate(events) if event.get("Stage ID") == 31)]
    log = logs.write(tmp_path / "log", [*logs.application(PLAIN), *events])
    arguments = ["simulate", str(log), "--set", "min_parallelism=4"]
    text = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"}).stdout
    assert re.search(r"│ added stage \(result\) +│ +- │ +- │ +1 \(", text)
    content = json.loads(CliRunner().invoke(app, [*arguments, "--format", "json"]).stdout)
    stages = {row["name"]: row["queries"][0]["stages"] for row in content["scenarios"]}
    assert [stage["stage"] for stage in stages["replay"]] == [30, 31]
    assert [stage["stage"] for stage in stages["set"]] == [30, 31, None]
    assert [stage["tasks"] for stage in stages["set"]] == [2, 4, 1]


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


def test_logs_of_clusters_are_measured_if_apportion_would_change_a_stage(tmp_path: Path) -> None:
    small = {"spark.sql.adaptive.advisoryPartitionSizeInBytes": str(MB)}
    application = plain(tmp_path, {"spark.master": "spark://host:7077", **small})
    application.spark_version = "3.5.3"
    found = cluster_logs.row("log", application)
    assert found is not None
    assert (found["slots"], found["tasks"], found["predicted_tasks"]) == (2, 4, 10)
    application.spark_version = "3.1.1"
    assert cluster_logs.row("log", application) is None
    local = plain(tmp_path, {**PLAIN, **small})
    local.spark_version = "3.5.3"
    assert cluster_logs.row("log", local) is None
