from __future__ import annotations

from apportion.logs.advise.model.findings import Kind
from apportion.logs.eventlog import Stage

from .applications import (
    FILE_BYTES,
    FILES,
    MB,
    WRITTEN_FILES,
    application,
    kinds,
    only,
    plan,
    stage,
)


def writer(size: int = MB) -> Stage:
    return stage(1, [500] * 200, shuffle_read_bytes=[MB] * 200, output_bytes=[size] * 200)


def test_small_output_files_are_found_without_a_gain_in_this_log() -> None:
    made = application(writer(), driver_metrics={WRITTEN_FILES: 400})
    finding = only(made, Kind.SMALL_FILES)
    assert finding.evidence["files"] == 400
    assert finding.evidence["mean_file_bytes"] == MB // 2
    assert finding.helps
    assert not finding.gain.is_known


def test_no_setting_against_small_output_files_lowers_the_tasks_of_the_last_stage() -> None:
    # A COALESCE hint would compute all rows of the last stage in as few tasks as files.
    assert only(application(writer()), Kind.SMALL_FILES).without == [
        "REBALANCE hint before the write"
    ]
    old = application(writer(), version="3.1.1", conf={"spark.sql.adaptive.enabled": "true"})
    assert only(old, Kind.SMALL_FILES).without == ["REPARTITION hint before the write"]


def test_the_number_of_files_is_a_bound_if_the_driver_did_not_count_them() -> None:
    finding = only(application(writer()), Kind.SMALL_FILES)
    assert "200 tasks wrote at least 200 files with 200 MiB, so at most 1 MiB each" in finding.text


def test_small_output_files_that_tasks_do_not_explain_name_the_target_size_of_files() -> None:
    large = stage(1, [500] * 200, shuffle_read_bytes=[128 * MB] * 200, output_bytes=[MB] * 200)
    finding = only(application(large), Kind.SMALL_FILES)
    assert not finding.helps
    assert "spark.apportion.write.targetFileSize" in finding.apportion


def test_large_and_few_output_files_are_healthy() -> None:
    assert kinds(application(writer(64 * MB))) == set()
    few = stage(1, [5000] * 8, shuffle_read_bytes=[MB] * 8, output_bytes=[MB] * 8)
    assert kinds(application(few)) == set()


def test_many_small_files_make_small_scan_tasks() -> None:
    scan = stage(0, [100] * 400, overhead=60, input_bytes=[100_000] * 400)
    made = application(scan, driver_metrics={FILES: 400, FILE_BYTES: 400 * 100_000})
    finding = only(made, Kind.SMALL_SCAN_TASKS)
    assert finding.without == ["larger files", "lower spark.sql.files.openCostInBytes"]
    assert finding.gain.seconds_high <= 10
    assert finding.tables == ["db.sales"]
    assert not finding.helps
    assert finding.settings == {"sources.parallelism": "4"}


def test_few_columns_of_large_files_make_small_scan_tasks() -> None:
    scan = stage(0, [100] * 400, overhead=60, input_bytes=[MB] * 400)
    made = application(scan, driver_metrics={FILES: 50, FILE_BYTES: 400 * 128 * MB})
    finding = only(made, Kind.SMALL_SCAN_TASKS)
    assert finding.without == ["spark.sql.files.maxPartitionBytes=512MB"]


def test_scans_with_long_tasks_are_healthy() -> None:
    scan = stage(0, [400] * 400, input_bytes=[MB] * 400)
    made = application(scan, driver_metrics={FILES: 400, FILE_BYTES: 400 * MB})
    assert kinds(made) == set()


def test_few_large_scan_tasks_are_found_while_slots_are_idle() -> None:
    scan = stage(0, [30_000] * 2, slots=2, input_bytes=[1024 * MB] * 2)
    whole = application(scan, cores=16, driver_metrics={FILES: 2, FILE_BYTES: 2048 * MB})
    finding = only(whole, Kind.LARGE_SCAN_TASKS)
    assert not finding.helps
    assert finding.gain.seconds_high == 30 - 60 / 16
    assert Kind.IDLE_CORES not in kinds(whole)
    one = application(scan, cores=16, driver_metrics={FILES: 1, FILE_BYTES: 2048 * MB})
    finding = only(one, Kind.LARGE_SCAN_TASKS)
    assert finding.helps
    assert finding.decided
    # Spark cuts 2 GiB into 16 pieces of 128 MiB.
    assert finding.decided.tasks == 16


def test_a_scan_is_cut_for_sparks_default_parallelism() -> None:
    scan = stage(0, [30_000] * 2, slots=2, input_bytes=[1024 * MB] * 2)
    made = application(
        scan,
        cores=16,
        conf={"spark.default.parallelism": "64"},
        driver_metrics={FILES: 1, FILE_BYTES: 2048 * MB},
    )
    decided = only(made, Kind.LARGE_SCAN_TASKS).decided
    assert decided
    assert decided.tasks == 64


def test_a_stage_that_also_reads_a_shuffle_is_no_scan() -> None:
    both = stage(1, [30_000] * 2, slots=2, input_bytes=[MB] * 2, shuffle_read_bytes=[MB] * 2)
    made = application(both, cores=16, tree=plan(), driver_metrics={FILES: 1, FILE_BYTES: MB})
    assert Kind.LARGE_SCAN_TASKS not in kinds(made)
