from __future__ import annotations

from pathlib import Path
from typing import Any

from apportion import eventlog
from apportion.logs.advise.model.findings import Kind
from apportion.logs.advise.rules.task_counts import decided
from apportion.logs.eventlog import Application, PlanNode, Stage
from apportion.logs.simulate.arithmetic.decider import likely_tasks
from apportion.logs.simulate.arithmetic.policy import Confs, Policy

from .applications import (
    MB,
    READ,
    WRITTEN,
    advice_for,
    application,
    kinds,
    measured_stages,
    only,
    plan,
    stage,
)

DATA_VOLUME = "spark.apportion.dataVolumePerTask"
GOLDEN = Path(__file__).parents[1] / "eventlog/golden"


def tiny(size: int = 100_000, start: int = 0) -> Stage:
    """200 tasks of 100 ms on 4 slots."""
    return stage(1, [100] * 200, start=start, overhead=60, shuffle_read_bytes=[size] * 200)


def without_adaptive_execution(**more: str) -> dict[str, str]:
    return {"spark.sql.adaptive.enabled": "false", **more}


def test_many_tiny_tasks_are_found_with_the_number_that_apportion_decides() -> None:
    made = application(tiny())
    finding = only(made, Kind.TINY_TASKS)
    policy = Policy.from_confs(Confs({}), 4)
    assert finding.decided
    assert finding.decided.tasks == likely_tasks(200 * 100_000, policy) == 4
    assert finding.decided.total_bytes == 20_000_000
    assert finding.decided.largest_task_low == 5_000_000
    assert (finding.evidence["tasks"], finding.evidence["mean_task_bytes"]) == (200, 100_000)
    assert finding.helps
    assert (finding.query, finding.stage) == (0, 1)
    assert finding.operators == ["HashAggregate"]


def test_the_gain_of_fewer_tasks_is_between_the_overhead_and_the_shortest_task() -> None:
    gain = only(application(tiny()), Kind.TINY_TASKS).gain
    # 196 tasks fewer on 4 slots, with 60 to 100 ms each, and the longest task once more.
    assert round(gain.seconds_low, 2) == 196 * 0.06 / 4 - 0.1
    assert round(gain.seconds_high, 2) == 196 * 0.1 / 4
    assert round(gain.core_hours_high, 6) == round(gain.seconds_high * 4 / 3600, 6)


def test_the_largest_task_has_an_upper_bound_if_each_task_read_one_partition() -> None:
    decided = only(application(tiny()), Kind.TINY_TASKS).decided
    assert decided
    assert decided.largest_task_high == 50 * 100_000
    coalesced = plan(exchange="hashpartitioning(k#1, 1000), ENSURE_REQUIREMENTS, [plan_id=1]")
    decided = only(application(tiny(), tree=coalesced), Kind.TINY_TASKS).decided
    assert decided
    assert decided.largest_task_high is None


def test_settings_that_help_without_apportion_depend_on_adaptive_execution() -> None:
    adaptive = only(application(tiny()), Kind.TINY_TASKS)
    assert adaptive.without == [
        "spark.sql.adaptive.coalescePartitions.parallelismFirst=false, "
        "with spark.sql.adaptive.advisoryPartitionSizeInBytes=5MB"
    ]
    off = {"spark.sql.adaptive.coalescePartitions.enabled": "false"}
    assert only(application(tiny(), conf=off), Kind.TINY_TASKS).without == [
        "spark.sql.adaptive.coalescePartitions.enabled=true"
    ]
    # Spark 3.1 and older have no parallelismFirst.
    on = {"spark.sql.adaptive.enabled": "true"}
    old = only(application(tiny(), conf=on, version="3.1.1"), Kind.TINY_TASKS)
    assert old.without == ["spark.sql.adaptive.coalescePartitions.minPartitionNum=4"]
    made = application(tiny(), tree=plan(adaptive=False), conf=without_adaptive_execution())
    assert only(made, Kind.TINY_TASKS).without == [
        "spark.sql.adaptive.enabled=true",
        "spark.sql.shuffle.partitions=4, if the other shuffles are as small",
    ]


def healthy_trees() -> list[PlanNode]:
    """Plans whose number of tasks Apportion does not change."""
    return [
        plan(exchange="hashpartitioning(k#1, 200), REPARTITION_BY_NUM, [plan_id=1]"),
        plan(exchange="RoundRobinPartitioning(200), REPARTITION_BY_NUM, [plan_id=1]"),
        plan(exchange="hashpartitioning(k#1, 200), false, [id=#1]"),
        plan(reader="Coalesce 200"),
        plan(reader="StateStoreSave [k#1], state info"),
        plan(reader="FlatMapGroupsInPandas [k#1], f(v#2)"),
        plan(reader="Union"),
        plan(reader="GpuHashAggregate(keys=[k#1], functions=[])"),
        # Adaptive execution is on, but does not apply to the query.
        plan(adaptive=False),
    ]


def test_a_number_of_tasks_that_apportion_does_not_change_has_no_finding() -> None:
    for tree in healthy_trees():
        assert Kind.TINY_TASKS not in kinds(application(tiny(), tree=tree)), tree.text


def test_large_enough_or_long_enough_tasks_are_healthy() -> None:
    large = stage(1, [100] * 200, shuffle_read_bytes=[20 * MB] * 200)
    long = stage(1, [900] * 200, shuffle_read_bytes=[100_000] * 200)
    few = stage(1, [100] * 6, shuffle_read_bytes=[100_000] * 6)
    for each in (large, long, few):
        assert kinds(application(each)) == set()


def large(tasks: int = 2, **more: Any) -> Stage:
    return stage(1, [20_000] * tasks, shuffle_read_bytes=[512 * MB] * tasks, **more)


def test_few_large_tasks_are_found_while_slots_are_idle() -> None:
    finding = only(application(large(), cores=16), Kind.LARGE_TASKS)
    assert finding.decided
    assert finding.decided.tasks == 16
    assert finding.gain.seconds_low == 0
    assert finding.gain.seconds_high == 20 - 40 / 16
    assert Kind.IDLE_CORES not in kinds(application(large(), cores=16))


def test_large_tasks_are_healthy_if_all_slots_are_busy() -> None:
    assert kinds(application(large(16, slots=16), cores=16)) == set()


def test_the_settings_for_large_tasks_depend_on_the_shuffle_partitions() -> None:
    advisory = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
    fewer = application(large(), cores=16, conf={advisory: "1GB", DATA_VOLUME: "64MB"})
    assert only(fewer, Kind.LARGE_TASKS).without == [f"{advisory}=64MB"]
    # The default of 64 MB would have made more tasks of even partitions.
    assert only(application(large(), cores=16), Kind.LARGE_TASKS).without == [
        "keys with more values, because few shuffle partitions have most of the bytes"
    ]
    two = plan(exchange="hashpartitioning(k#1, 2), ENSURE_REQUIREMENTS, [plan_id=1]")
    assert only(application(large(), cores=16, tree=two), Kind.LARGE_TASKS).without == [
        "spark.sql.shuffle.partitions=16"
    ]


def off(conf: dict[str, str], version: str = "3.5.1") -> Application:
    return application(tiny(), tree=plan(adaptive=False), conf=conf, version=version)


def test_adaptive_execution_that_is_off_is_found() -> None:
    finding = only(off(without_adaptive_execution()), Kind.ADAPTIVE_EXECUTION_OFF)
    assert finding.evidence == {"stages": 1, "tasks": 200, "task_seconds": 20.0}
    assert not finding.gain.is_known
    assert Kind.ADAPTIVE_EXECUTION_OFF in kinds(off({}, "3.1.3"))


def test_later_stages_of_a_limit_count_as_reading_shuffles() -> None:
    tree = plan(reader="CollectLimit 20", adaptive=False)
    first = stage(1, [100], slots=1, shuffle_read_bytes=[1000])
    later = stage(1, [100] * 199, start=200, shuffle_read_bytes=[1000] * 199)
    later.id = 2
    made = application(first, later, tree=tree, conf=without_adaptive_execution())
    finding = only(made, Kind.ADAPTIVE_EXECUTION_OFF)
    assert (finding.evidence["stages"], finding.evidence["tasks"]) == (2, 200)
    # A stage without known operators may be part of an adaptive query.
    adaptive = plan(reader="CollectLimit 20")
    made = application(first, later, tree=adaptive, conf=without_adaptive_execution())
    assert Kind.ADAPTIVE_EXECUTION_OFF not in kinds(made)


def test_a_query_without_a_shuffle_needs_no_adaptive_execution() -> None:
    table = PlanNode("LocalTableScan", "LocalTableScan [k#2]", {}, [])
    broadcast = PlanNode("BroadcastExchange", "BroadcastExchange", {"data size": WRITTEN}, [table])
    join = "BroadcastHashJoin [k#1], [k#2], Inner, BuildRight"
    tree = PlanNode("BroadcastHashJoin", join, {"time": READ}, [table, broadcast])
    later = tiny(size=5, start=60_000)
    later.id = 2
    made = application(tiny(size=5), later, tree=tree, conf=without_adaptive_execution())
    assert Kind.ADAPTIVE_EXECUTION_OFF not in kinds(made)


def test_adaptive_execution_is_on_by_default_since_spark_3_2() -> None:
    for version in ("3.2.0", "4.2.1", ""):
        assert Kind.ADAPTIVE_EXECUTION_OFF not in kinds(off({}, version))


def test_short_applications_need_no_adaptive_execution() -> None:
    short = stage(1, [100] * 40, shuffle_read_bytes=[1000] * 40)
    made = application(short, tree=plan(adaptive=False), conf=without_adaptive_execution())
    assert Kind.ADAPTIVE_EXECUTION_OFF not in kinds(made)


def twice(conf: dict[str, str]) -> Application:
    """Two queries, each with a stage of 200 tiny tasks."""
    made = application(tiny(), tree=plan(adaptive=False), conf=conf)
    later = application(tiny(start=60_000), tree=plan(adaptive=False))
    (second,) = later.stages
    second.id, second.query = 2, 1
    later.queries[0].id = 1
    made.queries[1] = later.queries[0]
    return made


def test_fixed_partitions_of_several_stages_are_found_together() -> None:
    finding = only(twice(without_adaptive_execution()), Kind.FIXED_PARTITIONS)
    assert finding.evidence["stages"] == 2
    assert finding.evidence["mean_task_bytes"] == 100_000
    assert finding.without == ["spark.sql.adaptive.enabled=true", "spark.sql.shuffle.partitions=4"]
    assert round(finding.gain.seconds_high, 2) == 2 * 196 * 0.1 / 4


def test_a_number_for_all_shuffles_is_enough_for_the_largest_one() -> None:
    made = twice(without_adaptive_execution())
    large = stage(1, [2000] * 200, start=200_000, shuffle_read_bytes=[64 * MB] * 200)
    large.id, large.query = 3, 2
    third = application(large, tree=plan(adaptive=False)).queries[0]
    third.id, made.queries[2] = 2, third
    finding = only(made, Kind.FIXED_PARTITIONS)
    assert finding.evidence["stages"] == 2
    assert finding.without == ["spark.sql.adaptive.enabled=true"]


def test_the_finding_with_the_larger_gain_comes_first() -> None:
    found = advice_for(twice(without_adaptive_execution())).findings
    assert [each.kind for each in found] == [Kind.FIXED_PARTITIONS, Kind.ADAPTIVE_EXECUTION_OFF]


def test_task_slots_that_raise_the_number_are_named() -> None:
    finding = only(application(tiny(), cores=4), Kind.TINY_TASKS)
    assert finding.decided
    assert (finding.decided.tasks, finding.decided.uses_slots) == (4, 4)
    assert finding.apportion.startswith("decides 4 tasks to use 4 task slots, with a target of")
    one = only(application(tiny(1000), cores=4), Kind.TINY_TASKS)
    assert one.apportion == "decides 1 task by bytes, with a target of 64 MiB per task."


def test_a_number_of_partitions_that_fits_the_bytes_is_healthy() -> None:
    conf = without_adaptive_execution(**{"spark.sql.shuffle.partitions": "64"})
    assert Kind.FIXED_PARTITIONS not in kinds(twice(conf))
    assert Kind.FIXED_PARTITIONS not in kinds(off(without_adaptive_execution()))


def test_stages_below_a_second_of_task_time_have_no_finding() -> None:
    short = stage(1, [4] * 200, shuffle_read_bytes=[10] * 200)
    assert kinds(application(short)) == set()


def test_apportions_decisions_in_recorded_logs_are_within_the_bounds() -> None:
    compared = 0
    for log in sorted(GOLDEN.glob("*.zstd")):
        made = eventlog.read(log)
        for query in made.queries.values():
            # Without its decisions, the log looks like a log without Apportion.
            by_bytes = {
                each.decision.input_bytes: each.decision.tasks
                for each in query.decisions
                if each.decision.layout == "even" and each.decision.clamps == []
            }
            query.decisions = []
            confs = Confs({**made.conf, **query.conf})
            for each in measured_stages(made):
                layout = decided(each, confs) if each.query == query.id else None
                for size, tasks in by_bytes.items():
                    # Only the same shuffle has nearly the same bytes.
                    if layout and layout.total_bytes <= size <= layout.total_bytes * 1.1:
                        assert layout.tasks <= tasks <= layout.tasks_high
                        compared += 1
    assert compared > 8
