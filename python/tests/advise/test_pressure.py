from __future__ import annotations

from typing import Any

import pytest

from apportion.logs.advise.model.findings import Kind
from apportion.logs.eventlog import Stage

from .applications import FILE_BYTES, FILES, MB, application, kinds, only, plan, stage


def busy(**columns: Any) -> Stage:
    """Eight even tasks of 10 s."""
    return stage(1, [10_000] * 8, shuffle_read_bytes=[64 * MB] * 8, **columns)


def test_a_spill_is_found_with_the_memory_of_the_largest_task() -> None:
    spilled = busy(spilled_bytes=[100 * MB] * 8)
    spilled.peak_memory = 50 * MB
    finding = only(application(spilled), Kind.SPILL)
    assert finding.evidence["spilled_bytes"] == 800 * MB
    assert finding.evidence["peak_task_memory"] == 50 * MB
    assert finding.text.startswith("8 of 8 tasks spilled 800 MiB to disk. ")
    assert finding.helps
    assert finding.settings == {"dataVolumePerTask": "32MB"}
    # Written and read at 2 GiB/s to 50 MiB/s, by 4 tasks at a time.
    assert finding.gain.seconds_low == pytest.approx(2 * 800 / 2048 / 4)
    assert finding.gain.seconds_high == pytest.approx(2 * 800 / 50 / 4)


def test_apportion_does_not_change_a_spill_without_operators_that_hold_rows() -> None:
    spilled = busy(spilled_bytes=[100 * MB] * 8)
    finding = only(application(spilled, tree=plan(reader="Filter k")), Kind.SPILL)
    assert not finding.helps
    assert finding.settings == {}


def test_only_the_tasks_that_spilled_are_counted() -> None:
    finding = only(application(busy(spilled_bytes=[400 * MB] * 2 + [0] * 6)), Kind.SPILL)
    assert finding.evidence["spilling_tasks"] == 2
    assert finding.text.startswith("2 of 8 tasks spilled 800 MiB to disk. ")


def test_settings_against_a_spill_depend_on_the_plan_and_on_the_master() -> None:
    spilled = busy(spilled_bytes=[100 * MB] * 8)
    coalesced = only(application(spilled), Kind.SPILL).without
    assert coalesced == [
        "spark.sql.adaptive.advisoryPartitionSizeInBytes=32MB",
        "raise spark.executor.memory (1g now)",
        "lower spark.executor.cores",
    ]
    eight = plan(exchange="hashpartitioning(k#1, 8), ENSURE_REQUIREMENTS, [plan_id=1]")
    finding = only(application(spilled, tree=eight, conf={"spark.master": "local[4]"}), Kind.SPILL)
    # The tasks read all partitions, and run in the driver.
    assert finding.without == [
        "spark.sql.shuffle.partitions=16",
        "raise spark.driver.memory (1g now)",
        "fewer cores in spark.master",
    ]


def test_a_smaller_advisory_size_needs_enough_shuffle_partitions() -> None:
    def setting(partitions: int) -> str:
        exchange = f"rangepartitioning(k#1 ASC NULLS FIRST, {partitions}), ENSURE_REQUIREMENTS"
        tree = plan(exchange=exchange)
        spilled = stage(
            1, [5000] * 3, shuffle_read_bytes=[20 * MB] * 3, spilled_bytes=[30 * MB] * 3
        )
        return only(application(spilled, tree=tree), Kind.SPILL).without[0]

    advisory = "spark.sql.adaptive.advisoryPartitionSizeInBytes=10MB"
    assert setting(4) == f"spark.sql.shuffle.partitions=6, with {advisory}"
    assert setting(6) == advisory


def test_a_number_of_the_query_is_changed_in_the_query() -> None:
    spilled = busy(spilled_bytes=[100 * MB] * 8)
    for exchange, fix in (
        ("hashpartitioning(k#1, 8), REPARTITION_BY_NUM, [plan_id=1]", "a larger number in repart"),
        ("SinglePartition, ENSURE_REQUIREMENTS, [plan_id=1]", "a PARTITION BY for a window"),
    ):
        tree = plan(exchange=exchange)
        assert only(application(spilled, tree=tree), Kind.SPILL).without[0].startswith(fix)


def test_a_spill_of_a_scan_names_the_bytes_of_the_files() -> None:
    # Spark does not count vectored reads.
    spilled = stage(0, [5000] * 3, input_bytes=[1000] * 3, spilled_bytes=[30 * MB] * 3)
    made = application(spilled, driver_metrics={FILES: 3, FILE_BYTES: 300 * MB})
    finding = only(made, Kind.SPILL)
    assert "The files that it scanned have 300 MiB." in finding.text


def test_settings_against_a_lack_of_memory_on_a_gpu_are_those_of_rapids() -> None:
    gpu = plan(reader="GpuHashAggregate(keys=[k#1], functions=[])")
    finding = only(application(failed(30_000, memory=3), tree=gpu), Kind.OUT_OF_MEMORY)
    assert finding.without[-1] == "lower spark.rapids.sql.concurrentGpuTasks"
    assert finding.apportion == "does not decide the tasks of RAPIDS."


def test_a_small_spill_is_healthy() -> None:
    assert kinds(application(busy(spilled_bytes=[3 * MB] * 8))) == set()


def test_garbage_collection_is_found_above_a_tenth_of_the_task_time() -> None:
    finding = only(application(busy(gc_millis=[2000] * 8)), Kind.GARBAGE_COLLECTION)
    assert finding.evidence["gc_share"] == 0.2
    assert finding.gain.seconds_high == 0.2 * 20
    assert finding.gain.seconds_low == 0
    assert kinds(application(busy(gc_millis=[900] * 8))) == set()


def test_garbage_collection_counts_at_most_the_time_of_the_task() -> None:
    finding = only(application(busy(gc_millis=[90_000] * 8)), Kind.GARBAGE_COLLECTION)
    assert finding.evidence["gc_share"] == 1
    assert finding.gain.seconds_high == 20


def test_waiting_for_shuffle_data_is_found() -> None:
    finding = only(application(busy(fetch_wait_millis=[3000] * 8)), Kind.FETCH_WAIT)
    assert finding.evidence["fetch_wait_seconds"] == 24
    assert finding.gain.seconds_high == pytest.approx(0.3 * 20)
    assert kinds(application(busy(fetch_wait_millis=[300] * 8))) == set()


def failed(wasted: int, memory: int = 0) -> Stage:
    made = busy()
    made.failed_tasks, made.memory_failures, made.wasted_millis = 3, memory, wasted
    made.failure_reasons = {"FetchFailed": 1, "java.io.IOException": 2}
    return made


def test_failed_tasks_are_found_with_their_wasted_time() -> None:
    finding = only(application(failed(30_000), cores=5), Kind.FAILED_TASKS)
    assert finding.evidence["wasted_seconds"] == 30
    assert finding.failure_reasons == {"FetchFailed": 1, "java.io.IOException": 2}
    assert "The most frequent reason is java.io.IOException (2 attempts)." in finding.text
    # The other tasks need 80 s on 5 slots.
    assert finding.gain.seconds_high == 20 - 80 / 5
    assert finding.gain.core_hours_high == 30 / 3600
    assert finding.gain.seconds_low == finding.gain.core_hours_low == 0
    assert kinds(application(failed(1000))) == set()


def test_tasks_that_ran_out_of_memory_are_always_found() -> None:
    finding = only(application(failed(1000, memory=1)), Kind.OUT_OF_MEMORY)
    assert finding.helps
    assert "spark.sql.adaptive.advisoryPartitionSizeInBytes" in finding.without[0]
    assert Kind.FAILED_TASKS not in kinds(application(failed(30_000, memory=1)))
