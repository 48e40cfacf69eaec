from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from apportion.decision import decision_from_json
from apportion.logs.advise.model.findings import Kind
from apportion.logs.eventlog import Application, LoggedDecision, Stage
from tests.records import RECORD

from .applications import (
    FILE_BYTES,
    FILES,
    JOIN,
    MB,
    application,
    found,
    kinds,
    only,
    plan,
    stage,
)

MEAN = 80 * MB
SKEW_JOIN = "spark.sql.adaptive.skewJoin."


def skewed(id: int = 1, column: str = "shuffle_read_bytes", largest: int = 20 * MEAN) -> Stage:
    """Seven tasks of 2 s, and one of 40 s that is launched last."""
    columns: dict[str, Any] = {column: [MEAN] * 7 + [largest]}
    return stage(id, [2000] * 7 + [40_000], slots=8, **columns)


def joined(each: Stage, **more: str) -> Application:
    return application(each, tree=plan(reader=more.get("reader", JOIN)), cores=8)


def test_a_skewed_join_is_found_and_apportion_splits_it() -> None:
    finding = only(joined(skewed()), Kind.SKEW)
    assert finding.helps
    assert finding.evidence["longest_task_bytes"] == 20 * MEAN
    assert finding.evidence["median_task_bytes"] == MEAN
    # Spark's own settings would have split it too.
    assert finding.without == ["aggregate before the shuffle, or spread the key over more values"]


def test_settings_that_split_a_skewed_join_are_those_that_the_log_lacks() -> None:
    def settings(largest: int, usual: int = MEAN, **conf: str) -> list[str]:
        made = stage(1, [2000] * 7 + [40_000], slots=8, shuffle_read_bytes=[usual] * 7 + [largest])
        tree = plan(reader=JOIN, adaptive="off" not in conf)
        confs = {f"{SKEW_JOIN}{key}": value for key, value in conf.items()}
        if "off" in conf:
            confs = {"spark.sql.adaptive.enabled": "false"}
        return only(application(made, tree=tree, cores=8, conf=confs), Kind.SKEW).without

    threshold = f"{SKEW_JOIN}skewedPartitionThresholdInBytes"
    assert settings(100 * MB, MB) == [f"{threshold}=50MB"]
    assert settings(4 * MEAN) == [f"{SKEW_JOIN}skewedPartitionFactor=2"]
    assert settings(200 * MB) == [f"{threshold}=100MB, with {SKEW_JOIN}skewedPartitionFactor=1"]
    assert settings(20 * MEAN, enabled="false") == [f"{SKEW_JOIN}enabled=true"]
    high = settings(20 * MEAN, skewedPartitionThresholdInBytes="10GB")
    assert high == [f"{threshold}={20 * MEAN // 2 // MB}MB"]
    low = settings(20 * MEAN, skewedPartitionThresholdInBytes="1MB")
    assert low == ["aggregate before the shuffle, or spread the key over more values"]
    assert settings(20 * MEAN, off="") == ["spark.sql.adaptive.enabled=true"]


def test_the_gain_of_a_split_is_at_least_half_of_a_split_that_reads_twice() -> None:
    gain = only(joined(skewed()), Kind.SKEW).gain
    possible = 40 - (7 * 2 + 40) / 8
    assert gain.seconds_high == possible
    # Only the code of the task counts, which is 5 ms less than its 40 s.
    assert gain.seconds_low == pytest.approx((possible - 39.995 / 8) / 2)


def test_aggregates_windows_and_outer_joins_are_not_split() -> None:
    for reader in (
        "HashAggregate(keys=[k#1], functions=[sum(v#2)])",
        "Window [row_number() windowspecdefinition(k#1)]",
        "SortMergeJoin [k#1], [k#2], FullOuter",
    ):
        finding = only(joined(skewed(), reader=reader), Kind.SKEW)
        assert not finding.helps
        assert finding.gain.seconds_low == 0


def test_a_stage_that_apportion_decided_is_not_promised_more() -> None:
    made = joined(skewed())
    decision = decision_from_json({**RECORD, "stages": [0]})
    made.queries[0].decisions.append(LoggedDecision(decision))
    finding = only(made, Kind.SKEW)
    assert not finding.helps
    assert finding.apportion == "already decided the tasks of this stage."
    observed = dataclasses.replace(decision, layout="observed")
    made.queries[0].decisions[0].decision = observed
    assert only(made, Kind.SKEW).helps


def test_a_partial_aggregate_does_not_prevent_a_split() -> None:
    tree = plan(reader=JOIN)
    join = tree.children[0]
    partial = "HashAggregate(keys=[k#1], functions=[partial_sum(v#2)])"
    tree.children = [type(join)("HashAggregate", partial, {}, [join])]
    assert only(application(skewed(), tree=tree, cores=8), Kind.SKEW).helps


def test_a_long_task_with_even_bytes_is_not_split() -> None:
    finding = only(joined(skewed(largest=MEAN)), Kind.SKEW)
    assert not finding.helps
    assert "did not read many more bytes" in finding.apportion


def test_a_skewed_scan_names_its_table_and_files() -> None:
    made = application(
        skewed(0, "input_bytes"), cores=8, driver_metrics={FILES: 8, FILE_BYTES: 27 * MEAN}
    )
    finding = only(made, Kind.SKEW)
    assert finding.tables == ["db.sales"]
    assert finding.without == ["smaller row groups or files", "a REPARTITION hint after the scan"]


def test_a_skewed_cache_or_rdd_is_not_about_files() -> None:
    finding = only(application(skewed(0, "input_bytes"), cores=8), Kind.SKEW)
    assert finding.without == ["repartition the input of this stage into more partitions"]


def test_a_long_first_task_delays_nothing() -> None:
    early = stage(1, [4000] + [1000] * 60, slots=4, shuffle_read_bytes=[64 * MB] * 61)
    assert Kind.SKEW not in kinds(joined(early))


def test_the_start_of_an_executor_is_no_skew_and_no_idle_core() -> None:
    slow = stage(1, [600] * 5 + [15_000], slots=8, shuffle_read_bytes=[64 * MB] * 6)
    slow.run_millis[5] = 600
    assert kinds(joined(slow)) == set()


def test_even_tasks_are_healthy() -> None:
    even = stage(1, [10_000, 11_000, 9000, 10_500] * 4, shuffle_read_bytes=[64 * MB] * 16)
    assert found(application(even)) == []


def idle(tasks: int = 2) -> Stage:
    return stage(1, [20_000] * tasks, slots=tasks, shuffle_read_bytes=[20 * MB] * tasks)


def test_idle_cores_are_found_with_their_gain() -> None:
    finding = only(application(idle(), cores=16), Kind.IDLE_CORES)
    assert finding.evidence["busy_share"] == 2 / 16
    assert finding.gain.seconds_high == 20 - 40 / 16
    assert finding.decided
    assert finding.decided.tasks == 16


def test_one_task_by_a_single_partition_cannot_be_helped() -> None:
    single = plan(exchange="SinglePartition, ENSURE_REQUIREMENTS, [plan_id=1]")
    finding = only(application(idle(1), cores=16, tree=single), Kind.IDLE_CORES)
    assert not finding.helps
    assert "all rows must be in one task" in finding.apportion


def test_idle_cores_are_healthy_if_another_stage_runs() -> None:
    other = stage(0, [20_000] * 14, slots=14, input_bytes=[64 * MB] * 14)
    assert Kind.IDLE_CORES not in kinds(application(other, idle(), cores=16))


def test_a_limit_may_run_few_tasks() -> None:
    tree = plan(reader="CollectLimit 20")
    assert kinds(application(idle(), cores=16, tree=tree)) == set()


@pytest.mark.parametrize("kind", [Kind.IDLE_CORES, Kind.LAST_WAVE, Kind.SKEW, Kind.SPILL])
def test_a_smaller_size_of_partitions_is_not_proposed_for_files_that_spark_cannot_split(
    kind: Kind,
) -> None:
    def setting(size: int) -> str:
        slots = 64 if kind is Kind.IDLE_CORES else 9
        millis = [6000] * 9 + [30_000 if kind is Kind.SKEW else 6000]
        columns: dict[str, Any] = {
            "input_bytes": [size] * 9 + [2 * size],
            "spilled_bytes": [100 * MB] * 10,
        }
        scan = stage(0, millis, slots=slots, **columns)
        metrics = {FILES: 10, FILE_BYTES: 11 * size}
        return only(application(scan, cores=slots, driver_metrics=metrics), kind).without[0]

    # Spark would have cut the files into pieces of at most 128 MiB.
    assert setting(200 * MB) == "more, smaller files in a format that Spark can split"
    assert (
        setting(60 * MB)
        == f"spark.sql.files.maxPartitionBytes={10 if kind is Kind.IDLE_CORES else 33}MB"
    )


def wave(last: int) -> Stage:
    """Two waves on 4 slots: 4 tasks of 5 s, then one task."""
    millis = [5000] * 4 + [last]
    return stage(1, millis, shuffle_read_bytes=[64 * MB] * 5)


def test_a_last_wave_of_one_task_is_found() -> None:
    finding = only(application(wave(5000)), Kind.LAST_WAVE)
    assert finding.evidence["peak_tasks"] == 4
    assert finding.evidence["last_wave_seconds"] == 4.995
    assert finding.settings == {"ranges": "balanced", "rounding": "waves"}
    assert abs(finding.gain.seconds_high - 3 * 5 / 4) < 0.02
    assert finding.gain.seconds_low == 0


def test_full_waves_are_healthy() -> None:
    full = stage(1, [5000] * 8, shuffle_read_bytes=[64 * MB] * 8)
    assert kinds(application(full)) == set()
    assert kinds(application(wave(1000))) == set()


def test_another_stage_at_the_same_time_lowers_the_lower_bound() -> None:
    alone = only(joined(skewed()), Kind.SKEW).gain
    other = stage(0, [30_000], slots=1, start=10_000, input_bytes=[64 * MB])
    made = application(other, skewed(), tree=plan(reader=JOIN), cores=8)
    shared = only(made, Kind.SKEW).gain
    assert shared.seconds_low == pytest.approx(alone.seconds_low * 10 / 40)
    assert shared.seconds_high == alone.seconds_high


def test_the_first_tasks_of_an_executor_may_be_slow() -> None:
    slow = stage(1, [40_000] + [2000] * 7, slots=8, shuffle_read_bytes=[MB] * 8)
    slow.on_new_executors.append(0)
    finding = only(application(slow, cores=8), Kind.SKEW)
    # Advice is kept as JSON, where numbers and truth values differ.
    assert finding.evidence["is_on_new_executor"] == 1
    assert type(finding.evidence["is_on_new_executor"]) is int
    assert "It was among the first tasks of a new executor" in finding.text
    assert finding.without == ["compare with a second run: the executor of the long task was new"]


def test_idle_cores_name_a_task_that_reads_much() -> None:
    made = stage(1, [60_000] * 2, slots=2, shuffle_read_bytes=[2560 * MB] * 2)
    tree = plan(exchange="hashpartitioning(k#1, 2), REPARTITION_BY_NUM, [plan_id=1]")
    finding = only(application(made, cores=16, tree=tree), Kind.IDLE_CORES)
    assert finding.text.endswith(" One task read 2.5 GiB.")
    assert finding.without == ["a larger number in repartition or coalesce, or no number"]


def test_the_start_of_executors_is_no_idle_time() -> None:
    def of(millis: int) -> set[Kind]:
        made = stage(0, [millis], slots=1, input_bytes=[MB])
        made.on_new_executors.append(0)
        return kinds(application(made, cores=16))

    assert of(8000) == set()
    assert of(20_000) == {Kind.IDLE_CORES}
