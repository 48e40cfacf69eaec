"""The arithmetic of the extension in Python, against the extension itself."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import apportion
from apportion import SettingError
from apportion._util.checks import power_down, power_nearest, power_up
from apportion.decision import HeldRows
from apportion.logs.simulate.arithmetic.decider import decide, wave_price
from apportion.logs.simulate.arithmetic.files import file_tasks
from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import (
    ADVISORY_SIZE,
    MIN_SIZE,
    SHUFFLE_PARTITIONS,
    Confs,
    Policy,
)

MB = 1 << 20


@pytest.mark.parametrize(
    ("number", "down", "nearest", "up"),
    [(0, 0, 0, 0), (1, 1, 1, 1), (3, 2, 4, 4), (5, 4, 4, 8), (6, 4, 8, 8), (64, 64, 64, 64)],
)
def test_powers_of_two_below_nearest_and_above(
    number: int, down: int, nearest: int, up: int
) -> None:
    assert (power_down(number), power_nearest(number), power_up(number)) == (down, nearest, up)


@pytest.mark.parametrize(
    ("settings", "tasks", "clamps"),
    [
        ({}, 16, []),
        ({"data_volume_per_task": 8 * MB}, 2, []),
        ({"max_parallelism": 7}, 4, ["maximum"]),
        ({"min_parallelism": 20}, 32, ["minimum"]),
        ({"slots": 12, "data_volume_per_task": 64 * MB}, 8, ["reactive"]),
        ({"parallelism": 5}, 5, ["explicit"]),
        ({"parallelism": 500}, 64, ["explicit", "subpartitions"]),
        (
            {"balanced": True, "rounding": "exact", "data_volume_per_task": MB + MB // 2},
            11,
            [],
        ),
    ],
)
def test_the_number_of_tasks_follows_bytes_and_limits(
    settings: dict[str, Any], tasks: int, clamps: list[str]
) -> None:
    policy = Policy(**{"data_volume_per_task": MB, **settings})
    layout = decide([ShuffleInput([MB // 4] * 64)], 0, policy)
    assert (layout.tasks, layout.clamps) == (tasks, clamps)
    assert sum(layout.task_bytes) == 16 * MB


def test_broadcasts_take_up_at_most_half_of_the_target_size() -> None:
    shuffle = [ShuffleInput([MB] * 64)]
    assert decide(shuffle, 0, Policy(2 * MB)).tasks == 32
    assert decide(shuffle, 100 * MB, Policy(2 * MB)).tasks == 64


def test_a_task_fetches_no_more_blocks_than_allowed() -> None:
    shuffle = [ShuffleInput([1] * 64, written=[1] * 10)]
    layout = decide(shuffle, 0, Policy(MB, max_blocks_per_task=160))
    assert (layout.tasks, layout.clamps) == (4, ["fanIn"])


@pytest.mark.parametrize(
    ("sizes", "settings", "tasks"),
    [
        ([1] * 4 + [0] * 60, {}, 1),
        ([1, 0] * 32, {}, 4),
        ([1] * 64, {"fetches_in_batch": True}, 1),
        ([1] * 64, {"max_subpartitions_per_task": 10}, 8),
    ],
)
def test_only_blocks_that_exist_are_counted(
    sizes: list[int], settings: dict[str, Any], tasks: int
) -> None:
    shuffle = [ShuffleInput(sizes, written=[1] * 10)]
    layout = decide(shuffle, 0, Policy(MB, **{"max_blocks_per_task": 100, **settings}))
    assert layout.tasks == tasks


@pytest.mark.parametrize(
    ("confs", "in_batch"),
    [
        ({}, True),
        ({"spark.sql.adaptive.fetchShuffleBlocksInBatch": "false"}, False),
        ({"spark.io.encryption.enabled": "true"}, False),
        ({"spark.shuffle.push.enabled": "true"}, False),
        ({"spark.shuffle.manager": "org.apache.spark.shuffle.sort.SortShuffleManager"}, True),
        ({"spark.shuffle.manager": "org.apache.spark.shuffle.celeborn.SparkShuffleManager"}, False),
    ],
)
def test_only_the_shuffle_manager_of_spark_fetches_blocks_in_batches(
    confs: dict[str, str], in_batch: bool
) -> None:
    assert Policy.from_confs(Confs(confs), 4).fetches_in_batch == in_batch


def test_registered_slots_are_filled_under_dynamic_allocation() -> None:
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.master": "yarn"}
    assert Policy.from_confs(Confs(dynamic), 4).slots == 4
    assert Policy.from_confs(Confs({**dynamic, "spark.apportion.mode": "active"}), 4).slots is None


@pytest.mark.parametrize(
    ("confs", "size", "volume"),
    [
        ({ADVISORY_SIZE: "64"}, 100 * MB, MB),
        ({ADVISORY_SIZE: "64KB"}, 8 * MB, MB // 2),
        ({ADVISORY_SIZE: "64KB"}, MB // 2, MB // 16),
        ({ADVISORY_SIZE: "64KB", MIN_SIZE: "64KB"}, 100 * MB, MB // 16),
        ({ADVISORY_SIZE: "8MB"}, 100 * MB, 8 * MB),
        ({"spark.apportion.dataVolumePerTask": "64"}, 100 * MB, 64),
    ],
)
def test_an_advisory_size_below_the_minimum_of_spark_makes_few_tasks(
    confs: dict[str, str], size: int, volume: int
) -> None:
    assert Policy.from_confs(Confs(confs), 4, size).data_volume_per_task == volume


def test_tasks_are_rounded_to_full_waves_if_that_costs_less() -> None:
    sizes = [20 * MB] * 40
    policy = Policy(80 * MB, balanced=True, rounding="waves", steady_slots=4)
    layout = decide([ShuffleInput(sizes)], 0, policy)
    assert (layout.tasks, layout.clamps) == (8, ["waves"])
    assert wave_price(layout.task_bytes, 4) < wave_price([80 * MB] * 10, 4)


def test_blocks_of_partition_groups_count_in_parts() -> None:
    shuffle = [ShuffleInput([1] * 64, written=[1] * 10, groups=16)]
    layout = decide(shuffle, 0, Policy(MB, max_blocks_per_task=60))
    assert layout.tasks == 4


def test_a_malformed_factor_of_a_scenario_raises() -> None:
    key = "spark.memory.fraction"
    assert Confs({key: "2"}).factor(key, most=1) == 0.6
    with pytest.raises(SettingError, match=r"spark\.memory\.fraction is '2': allowed is 0 to 1"):
        Confs({key: "2"}, [key]).factor(key, most=1)


def test_confs_of_a_scenario_are_read_as_spark_reads_them() -> None:
    values = {
        "spark.executor.memory": "4096",
        "spark.sql.files.openCostInBytes": "0",
        "spark.shuffle.sort.bypassMergeThreshold": "0",
        "spark.sql.shuffle.partitions": " 4 ",
    }
    confs = Confs(values, values)
    assert confs.size("spark.executor.memory") == 4096 * MB
    assert confs.size("spark.sql.files.openCostInBytes") == 0
    assert confs.number("spark.shuffle.sort.bypassMergeThreshold") == 0
    assert confs.shuffle_partitions == 4
    assert file_tasks(files=2, size=2, confs=confs, slots=4) == 2


def test_malformed_settings_of_a_log_have_their_defaults() -> None:
    confs = Confs({"spark.apportion.dataVolumePerTask": "much", "spark.apportion.ranges": "odd"})
    usual = Policy(64 * MB, slots=4, steady_slots=4, fetches_in_batch=True, sparks_partitions=200)
    assert Policy.from_confs(confs, 4) == usual


def test_the_extension_decides_the_same(spark: SparkSession) -> None:
    session = spark.newSession()
    draw = random.Random(7)
    for _ in range(150):
        settings = random_settings(draw)
        inputs = random_inputs(draw)
        held = [
            draw.choice([HeldRows(), HeldRows(40.0), HeldRows(2.5, [1.5]), HeldRows(0, [3, 9])])
            for _ in inputs
        ]
        broadcast = draw.choice([0, 0, draw.randrange(4 * MB)])
        asked = [
            apportion.Input(sizes, held=each) for sizes, each in zip(inputs, held, strict=True)
        ]
        asked += [apportion.Input([broadcast], broadcast=True)] * bool(broadcast)
        sparks = {ADVISORY_SIZE: draw.choice(["64", "64KB", "2MB", "64MB"])}
        session.conf.set(ADVISORY_SIZE, sparks[ADVISORY_SIZE])
        theirs = apportion.decide(session, asked, **settings)
        sparks[SHUFFLE_PARTITIONS] = session.conf.get(SHUFFLE_PARTITIONS) or ""
        confs = Confs({**apportion.Settings(**settings).to_conf(), **sparks})
        size = sum(map(sum, inputs))
        policy = dataclasses.replace(
            Policy.from_confs(confs, spark.sparkContext.defaultParallelism, size),
            task_memory=theirs.task_memory,
        )
        shuffles = [
            ShuffleInput(sizes, held=each) for sizes, each in zip(inputs, held, strict=True)
        ]
        ours = decide(shuffles, broadcast, policy)
        assert (ours.tasks, ours.ranges, ours.clamps) == (
            theirs.parallelism, theirs.ranges, theirs.clamps,
        ), (settings, sparks, inputs, broadcast)  # fmt: skip


def random_settings(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "data_volume_per_task": draw.choice([None, 1000, 64 << 10, MB, 10 * MB]),
        "mode": draw.choice(["active", "reactive"]),
        "ranges": draw.choice(["even", "balanced"]),
        "rounding": draw.choice(["power-of-two", "exact", "waves"]),
        "min_task_volume": draw.choice([1000, MB]),
        "broadcast_ratio": draw.choice([0.2, 0.5]),
        "memory_enabled": draw.choice([True, True, False]),
        "memory_fraction": draw.choice([0.001, 0.01, 0.8]),
    }
    if draw.random() < 0.2:
        found["parallelism"] = draw.randrange(1, 100)
    if draw.random() < 0.2:
        found |= {"min_parallelism": draw.randrange(1, 9), "max_parallelism": 16}
    return found


def random_inputs(draw: random.Random) -> list[list[int]]:
    number = draw.choice([1, 7, 64, 200])
    heavy = draw.choice([1, 1, 50])
    return [
        [int(draw.expovariate(1 / 50_000)) * draw.choice([1, 1, 1, heavy]) for _ in range(number)]
        for _ in range(draw.choice([1, 1, 2]))
    ]


@pytest.mark.parametrize(
    ("confs", "is_limited"),
    [
        ({}, True),
        ({"spark.plugins": "com.example.Monitoring"}, True),
        ({"spark.plugins": "com.example.Monitoring,com.nvidia.spark.SQLPlugin"}, False),
        ({"spark.plugins": "org.apache.gluten.GlutenPlugin"}, False),
        (
            {
                "spark.plugins": "org.apache.spark.CometPlugin",
                "spark.apportion.memory.enabled": "true",
            },
            True,
        ),
    ],
)
def test_memory_is_no_limit_with_the_plugin_of_another_engine(
    confs: dict[str, str], is_limited: bool
) -> None:
    assert (Confs(confs).task_memory(2) is not None) == is_limited


def test_executors_of_a_local_cluster_have_memory_of_their_own() -> None:
    confs = {"spark.driver.memory": "1g", "spark.executor.memory": "4g"}
    local, cluster = (
        Confs({**confs, "spark.master": master})
        for master in ("local[2]", "local-cluster[2,1,4096]")
    )
    assert (local.task_memory(1) or 0) < (cluster.task_memory(1) or 0)
    assert (local.default_parallelism(1), cluster.default_parallelism(1)) == (1, 2)
