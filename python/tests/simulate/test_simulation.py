"""Logs are replayed: from the events to what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError, eventlog
from apportion.eventlog import Application
from apportion.simulate import Loss, Outcome, Scenario, simulate
from apportion.simulate.fit import fit
from apportion.simulate.workload import Workload, workload

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


def test_what_ran(application: Application) -> None:
    found = only(application)
    scan, result = found.stages
    assert (scan.name, result.name) == ("stage 0", "result")
    assert (scan.after, result.after) == ([], [0])
    assert (scan.delay, result.delay, found.tail) == (0.1, 0.05, 0.02)
    assert (found.slots, found.slots_per_executor, found.seconds) == (2, 2, 1.67)
    (group,) = result.groups
    assert group.shuffles[0].writers == [0]
    assert not group.shuffles[0].contiguous
    assert found.was_decided


def test_the_replay_is_what_was_measured(application: Application) -> None:
    measured, replay = simulate(application, []).rows
    assert measured.total.makespan == 1.67
    assert replay.total.makespan == pytest.approx(1.67)
    assert replay.total.slot_seconds == pytest.approx(2.8)
    assert (replay.total.tasks, replay.total.largest_task_bytes) == (4, 5 * MB)


def test_smaller_tasks(application: Application) -> None:
    found = outcome(application, conf={VOLUME: str(2 * MB)})
    assert tasks(found) == [2, 4]
    # There are 8 subpartitions now, for twice the tasks that are likely: 2, 0.5, 1, 0.5, 2, ... MB.
    assert found.largest_task_bytes == 2.5 * MB
    assert found.stages[0].is_as_logged
    assert not found.stages[1].is_as_logged


def test_a_stage_whose_tasks_stay_keeps_their_times(application: Application) -> None:
    found = outcome(application, conf={"spark.apportion.minTaskVolume": "2097152"})
    assert [stage.is_as_logged for stage in found.stages] == [True, True]


def test_spark_coalesces(application: Application) -> None:
    conf = {"spark.apportion.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    assert tasks(outcome(application, conf=conf)) == [2, 2]
    conf["spark.sql.adaptive.advisoryPartitionSizeInBytes"] = "1MB"
    found = outcome(application, conf=conf)
    assert tasks(found) == [2, 4]
    assert found.stages[1].largest_task_bytes == max(logs.SIZES)


def test_more_slots_get_more_tasks_in_reactive_mode(application: Application) -> None:
    assert tasks(outcome(application, slots=4)) == [2, 4]
    assert tasks(outcome(application, slots=4, conf={"spark.apportion.mode": "active"})) == [2, 2]


def test_more_data_take_longer_and_get_more_tasks(application: Application) -> None:
    found = outcome(application, scale=100)
    # An estimate of 800 MiB makes 512 subpartitions: room for twice the 256 tasks of 4 MiB.
    assert tasks(found) == [2, 256]
    assert found.makespan > 50
    assert found.largest_task_bytes == pytest.approx(800 * MB / 256, rel=0.7)


def test_lost_executors(application: Application) -> None:
    found = outcome(application, slots=4, executor_slots=2, losses=(Loss(1, 1.2),))
    assert found.reruns == 2
    with pytest.raises(ApportionError, match="1 executors are lost of 1"):
        outcome(application, losses=(Loss(1, 1.0),))


def log_of(path: Path, *events: list[logs.Event]) -> Application:
    return eventlog.read(logs.write(path / "log", [each for some in events for each in some]))


def test_a_log_without_decisions_keeps_its_tasks_and_says_so(tmp_path: Path) -> None:
    application = log_of(tmp_path, logs.application(), logs.query(decided=[]))
    found = outcome(application, conf={VOLUME: str(MB)}, slots=1)
    assert tasks(found) == [2, 2]
    assert found.makespan == pytest.approx(0.1 + 2 + 0.05 + 0.8 + 0.02)
    assert found.notes == [
        "result keeps its tasks: the log has no decision about the shuffles that it reads"
    ]


def test_scans_get_the_tasks_of_their_files(tmp_path: Path) -> None:
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
    assert tasks(outcome(application, conf=spark, scale=100)) == [29, 13]


def test_scans_of_a_log_of_observing_are_told_from_shuffles(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("sources", "more", "expected"),
    [
        ({"dataVolumePerTask": "hint on the query block, line 2"}, {}, 2),
        ({"parallelism": "hint on the query block, line 2"}, {"clamps": ["explicit"]}, 2),
        ({"ranges": "hint on the query block, line 2"}, {"layout": "balanced"}, 2),
        ({"dataVolumePerTask": "advisory size of the write"}, {}, 2),
        ({"dataVolumePerTask": "minTaskVolume, under a join that multiplies rows"}, {}, 4),
        ({}, {"data_volume_per_task": None, "kind": "unchanged", "layout": "unchanged"}, 2),
        ({}, {"layout": "local", "ranges": []}, 4),
    ],
)
def test_what_the_query_settles_stays(
    tmp_path: Path, sources: dict[str, str], more: dict[str, Any], expected: int
) -> None:
    decided = [logs.decision(sources=sources, **more)]
    application = log_of(tmp_path, logs.application(), logs.query(decided=decided))
    assert tasks(outcome(application, conf={VOLUME: str(2 * MB)})) == [2, expected]


OBSERVING = {"spark.apportion.mode": "observe"}


def observed(tmp_path: Path) -> Application:
    """Spark's own layout, while Apportion would have decided on four tasks."""
    conf = {**logs.CONF, **OBSERVING, VOLUME: str(2 * MB)}
    decision = logs.decision(
        layout="observed", ranges=[], parallelism=4, tasks=2, largest_task_bytes=4 * MB,
        sources={"dataVolumePerTask": "session setting"},
    )  # fmt: skip
    return log_of(tmp_path, logs.application(conf), logs.query(decided=[decision]))


def test_a_log_of_observing_replays_the_layout_of_spark(tmp_path: Path) -> None:
    application = observed(tmp_path)
    assert tasks(outcome(application)) == [2, 2]
    assert outcome(application).makespan == pytest.approx(1.67, abs=0.01)


def test_a_log_of_observing_says_what_decisions_would_make(tmp_path: Path) -> None:
    assert tasks(outcome(observed(tmp_path), conf={"spark.apportion.mode": "auto"})) == [2, 4]


def test_a_scenario_that_observes_has_the_layout_of_spark(tmp_path: Path) -> None:
    application = log_of(tmp_path, logs.application(), logs.query())
    off = outcome(application, conf={"spark.apportion.enabled": "false"})
    assert tasks(outcome(application, conf=OBSERVING)) == tasks(off)


def test_averages_of_neighbours_are_noted(tmp_path: Path) -> None:
    decided = logs.decision(
        sizes=[[5 << 20, 3 << 20]], subpartition_bytes_width=2, input_bytes=8 << 20
    )
    application = log_of(tmp_path, logs.application(), logs.query(decided=[decided]))
    notes = outcome(application, conf={VOLUME: str(2 * MB)}).notes
    assert "bytes of subpartitions are averages of 2 neighbours in the log" in notes


def test_confs_of_the_session_are_those_of_the_query(tmp_path: Path) -> None:
    query = logs.query(modifiedConfigs={VOLUME: str(2 * MB)})
    application = log_of(tmp_path, logs.application(), query)
    assert tasks(outcome(application)) == [2, 4]
    assert tasks(outcome(application, conf={VOLUME: str(4 * MB)})) == [2, 2]


def test_the_fit(tmp_path: Path) -> None:
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


def test_queries_that_cannot_be_simulated_are_named(tmp_path: Path) -> None:
    running = logs.query(4)[:-1]
    application = log_of(tmp_path, logs.application(), logs.query(), running)
    assert simulate(application, []).left_out == [
        "query 4: it has not ended, as far as the log goes"
    ]
    with pytest.raises(ApportionError, match="no query to simulate; query 4: it has not ended"):
        simulate(application, [], [application.queries[4]])


@pytest.mark.parametrize("name", ["logged", "replay"])
def test_names_of_scenarios_are_used_once(application: Application, name: str) -> None:
    with pytest.raises(ApportionError, match=f"there is a scenario {name} already"):
        simulate(application, [Scenario(name)])


def test_more_than_fits_into_memory_is_refused(application: Application) -> None:
    spark = {"spark.apportion.enabled": "false", "spark.sql.shuffle.partitions": "2000000000"}
    with pytest.raises(ApportionError, match="2,000,000,000 subpartitions in this scenario"):
        outcome(application, conf=spark)
