"""Partitions and blocks of shuffles whose map tasks decide how finely they write."""

from __future__ import annotations

from typing import Any

import pytest

from apportion.logs.simulate.arithmetic import adaptive_writes
from apportion.logs.simulate.arithmetic.policy import Confs, Policy

MB = 1 << 20
GB = 1 << 30


@pytest.mark.parametrize(
    ("spark_number", "input_bytes", "settings", "number"),
    [
        (200, 0, {}, 256),
        (8, GB, {}, 32),
        (200, 10 * GB, {}, 512),
        (200, 10_000 * GB, {}, 8192),
        (10_000, 0, {}, 16384),
        (200, 0, {"parallelism": 512}, 512),
        (200, 0, {"parallelism": 300}, 1024),
        (200, 0, {"parallelism": 64, "balanced": True}, 512),
        (200, 0, {"min_parallelism": 1000}, 1024),
        (200, 0, {"parallelism": 1_000_000}, 32768),
    ],
)
def test_the_number_of_partitions_is_a_power_of_two_for_any_size(
    spark_number: int, input_bytes: int, settings: dict[str, Any], number: int
) -> None:
    policy = Policy(64 * MB, **settings)
    assert adaptive_writes.partitions(spark_number, input_bytes, 64 * MB, [policy]) == number


def test_the_tree_begins_with_two_groups_and_each_has_eight_parts_or_sixteen() -> None:
    assert [adaptive_writes.levels(number) for number in (1, 2, 8, 16, 256, 1024, 4096)] == [
        [1], [2], [2, 8], [2, 16], [2, 16, 256], [2, 16, 128, 1024], [2, 16, 256, 4096],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "settings", "written"),
    [
        (MB, {}, [2]),
        # A group of the first level may have 2 MB before it is divided, and its parts 14 MB each.
        (4 * MB, {}, [2]),
        (5 * MB, {}, [2, 16]),
        (228 * MB, {}, [2, 16]),
        (229 * MB, {}, [2, 16, 256]),
        (100 * GB, {}, [2, 16, 256]),
        # Groups of 1 MB fill eight slots.
        (MB, {"slots": 8}, [16]),
        (MB, {"parallelism": 16}, [16]),
        # Groups overlap few ranges if the number of tasks is no power of two.
        (MB, {"parallelism": 6}, [32]),
        (MB, {"parallelism": 10}, [64]),
        (MB, {"min_parallelism": 500}, [256]),
    ],
)
def test_map_tasks_write_more_groups_for_more_bytes(
    size: int, settings: dict[str, Any], written: list[int]
) -> None:
    assert adaptive_writes.written_levels(256, size, Policy(64 * MB, **settings)) == written


@pytest.mark.parametrize(
    ("size", "written"), [(32 * MB, [2]), (33 * MB, [16]), (256 * MB, [16]), (257 * MB, [256])]
)
def test_map_tasks_of_few_rows_write_one_level(size: int, written: list[int]) -> None:
    assert adaptive_writes.written_levels(256, size, Policy(64 * MB), map_tasks=100) == written


@pytest.mark.parametrize(
    ("row_bytes", "settings", "number"),
    [
        (MB, {}, 1),
        (640 * MB, {}, 64),
        (10 * GB, {}, 256),
        (100 * GB, {}, 2048),
        (1000 * GB, {}, 8192),
        (2 * MB, {"slots": 8}, 8),
        (MB, {"parallelism": 3}, 16),
    ],
)
def test_the_number_of_sorted_ranges_follows_the_counted_rows(
    row_bytes: int, settings: dict[str, Any], number: int
) -> None:
    assert adaptive_writes.ranges(row_bytes, 256, Policy(64 * MB, **settings)) == number


@pytest.mark.parametrize(
    ("written", "number", "row_bytes", "bypass_up_to", "files"),
    [
        ([2, 16], 256, 5 * MB, 200, 18),
        ([2, 16], 256, 4 * MB, 200, 1),
        ([2, 32], 512, 5 * MB, 200, 1),
        ([2, 16], 256, 5 * MB, 1, 1),
        ([2, 16, 256], 256, 5 * MB, 200, 1),
        ([2, 16, 256], 256, 100 * MB, 200, 2 + 16 + 256),
    ],
)
def test_map_tasks_of_few_rows_or_many_blocks_write_one_file(
    written: list[int], number: int, row_bytes: int, bypass_up_to: int, files: int
) -> None:
    assert adaptive_writes.files(written, number, row_bytes, bypass_up_to) == files


@pytest.mark.parametrize(
    ("conf", "adaptive"),
    [
        ({}, True),
        ({"spark.apportion.adaptiveWrites": "false"}, False),
        ({"spark.apportion.enabled": "false"}, False),
        ({"spark.apportion.mode": "observe"}, False),
        ({"spark.apportion.rules.disabled": "ScanTasks,AdaptiveWrites"}, False),
        ({"spark.apportion.rules.disabled": "ScanTasks"}, True),
        ({"spark.sql.adaptive.coalescePartitions.enabled": "false"}, False),
        ({"spark.shuffle.manager": "org.apache.uniffle.RssShuffleManager"}, False),
        ({"spark.shuffle.push.enabled": "true"}, False),
        ({"spark.plugins": "org.apache.gluten.GlutenPlugin"}, False),
    ],
)
def test_settings_and_other_engines_switch_adaptive_writes_off(
    conf: dict[str, str], adaptive: bool
) -> None:
    assert Confs(conf).writes_adaptively == adaptive
