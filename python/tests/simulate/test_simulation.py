"""Logs are replayed: from the events to what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError, eventlog
from apportion.logs.eventlog import Application
from apportion.logs.simulate import Loss, Outcome, Scenario, simulate
from apportion.logs.simulate.fit import fit
from apportion.logs.simulate.workload import Workload, workload

from . import logs

MB = 1 << 20
VOLUME = "spark.apportion.dataVolumePerTask"


def outcome(application: Application, **changes: Any) -> Outcome:
    return simulate(application, [Scenario("changed", **changes)]).rows[-1].outcomes[0]


def tasks(found: Outcome) -> list[int]:
    return [stage.tasks for stage in found.stages]


def only(application: Application) -> Workload:
    (query,) = application.queries.values()
    found = workload(application, query)
    assert found
    return found


def test_a_workload_has_stages_times_and_groups(application: Application) -> None:
    found = only(application)
    scan, result = found.stages
    assert (scan.name, result.name) == ("query stage 0", "result")
    assert (scan.after, result.after) == ([], [0])
    assert (scan.delay, result.delay, found.tail) == (0.1, 0.05, 0.02)
    assert (found.slots, found.slots_per_executor, found.seconds) == (2, 2, 1.67)
    (group,) = result.groups
    assert group.shuffles[0].writers == [0]
    assert not group.shuffles[0].logged.range_partitioned
    assert found.was_decided


def test_the_replay_equals_the_measured_run(application: Application) -> None:
    measured, replay = simulate(application, []).rows
    assert measured.total.makespan == 1.67
    assert replay.total.makespan == pytest.approx(1.67)
    assert replay.total.slot_seconds == pytest.approx(2.8)
    assert (replay.total.tasks, replay.total.largest_task_bytes) == (4, 5 * MB)


def test_a_smaller_target_size_makes_smaller_tasks(application: Application) -> None:
    found = outcome(application, conf={VOLUME: str(2 * MB)})
    assert tasks(found) == [2, 4]
    assert found.largest_task_bytes == max(logs.SIZES)
    assert found.stages[0].is_as_logged
    assert not found.stages[1].is_as_logged


def test_a_stage_with_unchanged_tasks_keeps_their_times(application: Application) -> None:
    found = outcome(application, conf={"spark.apportion.minTaskVolume": "2097152"})
    assert [stage.is_as_logged for stage in found.stages] == [True, True]


def test_spark_coalesces_if_apportion_is_off(application: Application) -> None:
    conf = {"spark.apportion.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    assert tasks(outcome(application, conf=conf)) == [2, 2]
    conf["spark.sql.adaptive.advisoryPartitionSizeInBytes"] = "1MB"
    found = outcome(application, conf=conf)
    assert tasks(found) == [2, 4]
    assert found.stages[1].largest_task_bytes == max(logs.SIZES)


def test_more_slots_get_more_tasks_in_reactive_mode(application: Application) -> None:
    assert tasks(outcome(application, slots=4)) == [2, 4]
    assert tasks(outcome(application, slots=4, conf={"spark.apportion.mode": "active"})) == [2, 2]


def test_more_data_takes_longer_and_gets_more_tasks(application: Application) -> None:
    found = outcome(application, scale=100)
    assert tasks(found) == [2, 4]
    assert found.makespan > 50
    assert found.largest_task_bytes == 100 * max(logs.SIZES)


def test_tasks_of_lost_executors_run_again(application: Application) -> None:
    found = outcome(application, slots=4, executor_slots=2, losses=(Loss(1, 1.2),))
    assert found.reruns == 2
    with pytest.raises(ApportionError, match="the scenario loses 1 executor of 1"):
        outcome(application, losses=(Loss(1, 1.0),))


def log_of(path: Path, *events: list[logs.Event]) -> Application:
    return eventlog.read(logs.write(path / "log", [each for some in events for each in some]))


def test_a_log_without_decisions_keeps_its_tasks_with_a_note(tmp_path: Path) -> None:
    application = log_of(tmp_path, logs.application(), logs.query(decided=[]))
    found = outcome(application, conf={VOLUME: str(MB)}, slots=1)
    assert tasks(found) == [2, 2]
    assert found.makespan == pytest.approx(0.1 + 2 + 0.05 + 0.8 + 0.02)
    assert found.notes == ["stage 31 keeps its tasks: the log has no decision for its shuffles"]


def test_tasks_of_a_scan_follow_the_bytes_of_its_files(tmp_path: Path) -> None:
    files = {
        "Event": f"{logs.SQL.removesuffix('SQL')}DriverAccumUpdates",
        "executionId": 3,
        "accumUpdates": [[logs.FILES, 1], [logs.FILE_BYTES, 36 * MB]],
    }
    scan = logs.decision(
        operator="Scan parquet", stages=[], sizes=[], layout="files", input_bytes=40 * MB, tasks=2
    )
    query = logs.query(decided=[scan, logs.decision()])
    application = log_of(tmp_path, logs.application(), [*query[:-1], files, query[-1]])
    assert tasks(outcome(application)) == [2, 2]
    assert tasks(outcome(application, conf={VOLUME: str(2 * MB)})) == [19, 4]
    spark = {"spark.apportion.enabled": "false"}
    assert tasks(outcome(application, conf=spark)) == [2, 2]
    assert tasks(outcome(application, conf=spark, scale=100)) == [29, 10]
    # Twice 3,600 MB / 4 MB are 2,048 partitions, 8 times the number for 36 MB.
    assert tasks(outcome(application, scale=100))[1] == 32


def test_observed_scans_differ_from_observed_shuffles(tmp_path: Path) -> None:
    files = {
        "Event": f"{logs.SQL.removesuffix('SQL')}DriverAccumUpdates",
        "executionId": 3,
        "accumUpdates": [[logs.FILES, 1], [logs.FILE_BYTES, 36 * MB]],
    }
    scan = logs.decision(
        operator="Scan parquet", stages=[], sizes=[], layout="observed", ranges=[],
        input_bytes=40 * MB, tasks=2, parallelism=10,
    )  # fmt: skip
    query = logs.query(decided=[scan, logs.decision(layout="observed", ranges=[])])
    found = only(log_of(tmp_path, logs.application(), [*query[:-1], files, query[-1]]))
    assert [(scan.decision and scan.decision.parallelism) for scan in found.stages[0].scans] == [10]
    assert [len(stage.groups) for stage in found.stages] == [0, 1]


HINTED = {**logs.POLICY, "parallelism": 2}
BALANCED = {**logs.POLICY, "ranges": "balanced"}
FIXED = {**logs.INPUT, "partitions_set_by": None}


@pytest.mark.parametrize(
    ("kinds", "more", "expected"),
    [
        ({"dataVolumePerTask": "hint"}, {}, 2),
        ({"parallelism": "hint"}, {"clamps": ["explicit"], "policy": HINTED}, 2),
        ({"maxParallelism": "hint"}, {"policy": {**logs.POLICY, "max_parallelism": 2}}, 2),
        ({"maxParallelism": "policy-rule"}, {"policy": {**logs.POLICY, "max_parallelism": 2}}, 2),
        ({"maxParallelism": "session"}, {"policy": {**logs.POLICY, "max_parallelism": 2}}, 4),
        ({"ranges": "hint"}, {"policy": BALANCED, "inputs": [FIXED]}, 2),
        ({"dataVolumePerTask": "write"}, {}, 2),
        ({"dataVolumePerTask": "multiplied-rows"}, {}, 2),
        ({}, {"data_volume_per_task": None, "kind": "unchanged", "layout": "unchanged"}, 2),
        ({}, {"layout": "local", "ranges": []}, 4),
    ],
)
def test_values_that_the_query_sets_stay_fixed(
    tmp_path: Path, kinds: dict[str, str], more: dict[str, Any], expected: int
) -> None:
    decided = [logs.decision(source_kinds=kinds, **more)]
    application = log_of(tmp_path, logs.application(), logs.query(decided=decided))
    assert tasks(outcome(application, conf={VOLUME: str(2 * MB)})) == [2, expected]


def test_texts_in_a_log_do_not_affect_a_simulation(tmp_path: Path) -> None:
    changed: dict[str, Any] = {
        "reason": "?",
        "sources": {"parallelism": "hint", "subpartitions": "of 9 GiB"},
    }
    as_written = log_of(tmp_path, logs.application(), logs.query())
    reworded = log_of(tmp_path, logs.application(), logs.query(decided=[logs.decision(**changed)]))
    for conf in ({}, {VOLUME: str(2 * MB)}, {"spark.apportion.enabled": "false"}):
        assert outcome(reworded, conf=conf) == outcome(as_written, conf=conf)


def test_an_older_log_without_policies_uses_the_configuration(
    tmp_path: Path,
) -> None:
    old = logs.decision()
    for field in ("inputs", "policy", "source_kinds"):
        del old["decision"][field]
    application = log_of(tmp_path, logs.application(), logs.query(decided=[old]))
    assert tasks(outcome(application)) == [2, 2]
    assert tasks(outcome(application, conf={VOLUME: str(2 * MB)})) == [2, 4]


OBSERVING = {"spark.apportion.mode": "observe"}


def observed(tmp_path: Path) -> Application:
    """Spark's own layout, while Apportion would have decided on four tasks."""
    conf = {**logs.CONF, **OBSERVING, VOLUME: str(2 * MB)}
    decision = logs.decision(
        layout="observed", ranges=[], parallelism=4, tasks=2, largest_task_bytes=4 * MB,
        source_kinds={"dataVolumePerTask": "session"},
    )  # fmt: skip
    return log_of(tmp_path, logs.application(conf), logs.query(decided=[decision]))


def test_an_observed_log_replays_the_layout_of_spark(tmp_path: Path) -> None:
    application = observed(tmp_path)
    assert tasks(outcome(application)) == [2, 2]
    assert outcome(application).makespan == pytest.approx(1.67, abs=0.01)


def test_an_observed_log_can_simulate_decisions(tmp_path: Path) -> None:
    assert tasks(outcome(observed(tmp_path), conf={"spark.apportion.mode": "auto"})) == [2, 4]


def test_a_scenario_in_mode_observe_has_the_layout_of_spark(tmp_path: Path) -> None:
    application = log_of(tmp_path, logs.application(), logs.query())
    off = outcome(application, conf={"spark.apportion.enabled": "false"})
    assert tasks(outcome(application, conf=OBSERVING)) == tasks(off)


def test_a_note_names_averages_of_neighbours(tmp_path: Path) -> None:
    decided = logs.decision(
        sizes=[[5 << 20, 3 << 20]], subpartition_bytes_width=2, input_bytes=8 << 20
    )
    application = log_of(tmp_path, logs.application(), logs.query(decided=[decided]))
    notes = outcome(application, conf={VOLUME: str(2 * MB)}).notes
    assert "the log has only averages over 2 neighbouring shuffle partitions" in notes


def test_a_note_names_partitions_of_a_group_that_several_tasks_read(tmp_path: Path) -> None:
    coarse = {**logs.INPUT, "groups": [2, 4], "bytes_by_level": [8 << 20, 0]}
    query = logs.query(decided=[logs.decision(inputs=[coarse])])
    application = log_of(tmp_path, logs.application(), query)
    note = "the log has only averages over 2 neighbouring shuffle partitions"
    assert outcome(application, conf={VOLUME: str(8 * MB)}).notes == []
    assert outcome(application, conf={VOLUME: str(2 * MB)}).notes == [note]


WITHOUT = {"spark.apportion.adaptiveWrites": "false"}


def test_without_adaptive_writes_shuffles_have_the_partitions_of_spark(tmp_path: Path) -> None:
    spark = {**WITHOUT, "spark.sql.shuffle.partitions": "2", VOLUME: str(MB)}
    application = log_of(tmp_path, logs.application(), logs.query())
    assert tasks(outcome(application, conf=spark)) == [2, 2]
    plain = {**logs.INPUT, "partitions_set_by": "spark", "groups": [], "bytes_by_level": []}
    query = logs.query(decided=[logs.decision(inputs=[plain])])
    application = log_of(tmp_path, logs.application({**logs.CONF, **WITHOUT}), query)
    adaptive = {"spark.apportion.adaptiveWrites": "true", VOLUME: str(MB // 4)}
    assert tasks(outcome(application, conf=adaptive)) == [2, 32]


def test_without_coalescing_each_partition_has_a_task_unless_a_number_is_set(
    application: Application,
) -> None:
    off = {"spark.sql.adaptive.coalescePartitions.enabled": "false"}
    off["spark.sql.shuffle.partitions"] = "8"
    assert tasks(outcome(application, conf=off)) == [2, 8]
    assert tasks(outcome(application, conf={**off, "spark.apportion.parallelism": "3"})) == [2, 3]


def test_an_observed_log_has_the_partitions_that_spark_may_choose(tmp_path: Path) -> None:
    unknown = {**logs.INPUT, "partitions_set_by": None, "groups": [], "bytes_by_level": []}
    decided = logs.decision(
        layout="observed", ranges=[], largest_task_bytes=4 * MB, inputs=[unknown]
    )
    application = log_of(
        tmp_path, logs.application({**logs.CONF, **OBSERVING}), logs.query(decided=[decided])
    )
    auto = {"spark.apportion.mode": "auto", VOLUME: str(MB // 4)}
    assert tasks(outcome(application, conf=auto)) == [2, 4]
    exchange = "hashpartitioning(key#1, 4), ENSURE_REQUIREMENTS, [plan_id=7]"
    query = logs.query(decided=[decided], sparkPlanInfo=logs.plan(exchange))
    free = log_of(tmp_path, logs.application({**logs.CONF, **OBSERVING}), query)
    assert tasks(outcome(free, conf=auto)) == [2, 32]


def test_tasks_may_read_parts_of_all_partitions(tmp_path: Path) -> None:
    decided = logs.decision(
        sizes=[[8 * MB]], inputs=[{**FIXED, "splittable": True}], subpartitions=1, tasks=1,
        parallelism=1, ranges=[{"start": 0, "end": 1}],
    )  # fmt: skip
    application = log_of(tmp_path, logs.application(), logs.query(decided=[decided]))
    assert tasks(outcome(application, conf={VOLUME: str(4 * MB)}, slots=3)) == [2, 2]


def test_confs_of_the_session_apply_to_its_queries(tmp_path: Path) -> None:
    query = logs.query(modifiedConfigs={VOLUME: str(2 * MB)})
    application = log_of(tmp_path, logs.application(), query)
    (note,) = outcome(application, scale=1).notes
    assert note.startswith(
        "stage 31 keeps its 2 logged tasks. The calculation from this log gives 4"
    )
    assert tasks(outcome(application, conf={VOLUME: str(8 * MB)})) == [2, 3]


def test_the_fit_finds_overhead_and_throughput(tmp_path: Path) -> None:
    """Tasks of 10 ms and 20 ms a MB: found from a stage with enough of them, shared by others."""
    sizes = [size * MB for size in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)]
    query = logs.query()
    readers = [logs.task(31, 1150, 1160 + 20 * size // MB, read=size) for size in sizes]
    start = query.index(next(each for each in query if each["Event"].endswith("DecisionEvent")))
    events = [*query[: start + 1], *logs.stage(31, 1150, 1400, readers, logs.AGGREGATED), query[-1]]
    model = fit([only(log_of(tmp_path, logs.application(), events))])
    assert model.own_lines == 1
    assert model.overhead == pytest.approx(0.01)
    assert model.lines[3, 1].per_byte == pytest.approx(0.02 / MB)
    assert model.quality.tasks == 12
    assert model.quality.median_error < 0.001
    assert model.quality.r_squared == pytest.approx(1)


def test_queries_that_cannot_be_simulated_are_left_out_by_name(tmp_path: Path) -> None:
    running = logs.query(4)[:-1]
    application = log_of(tmp_path, logs.application(), logs.query(), running)
    assert simulate(application, []).left_out == [
        "query 4 is left out: it has not ended in this log"
    ]
    with pytest.raises(
        ApportionError, match="no query to simulate; query 4 is left out: it has not ended"
    ):
        simulate(application, [], [application.queries[4]])


@pytest.mark.parametrize("name", ["logged", "replay"])
def test_a_duplicate_name_of_a_scenario_raises(application: Application, name: str) -> None:
    with pytest.raises(ApportionError, match=f"the scenario name {name} is already in use"):
        simulate(application, [Scenario(name)])


def test_too_many_shuffle_partitions_raise(application: Application) -> None:
    spark = {"spark.apportion.enabled": "false", "spark.sql.shuffle.partitions": "2000000000"}
    with pytest.raises(ApportionError, match="2,000,000,000 shuffle partitions in this scenario"):
        outcome(application, conf=spark)
