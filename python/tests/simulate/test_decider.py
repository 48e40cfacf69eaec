"""The arithmetic of the extension in Python, against the extension itself."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import apportion
from apportion._util.checks import power_down, power_nearest, power_up
from apportion.simulate.arithmetic import subpartitions
from apportion.simulate.arithmetic.decider import (
    ShuffleInput,
    decide,
    decide_source,
    likely_tasks,
    wave_price,
)
from apportion.simulate.arithmetic.policy import Confs, Policy

MB = 1 << 20


@pytest.mark.parametrize(
    ("number", "down", "nearest", "up"),
    [(0, 0, 0, 0), (1, 1, 1, 1), (3, 2, 4, 4), (5, 4, 4, 8), (6, 4, 8, 8), (64, 64, 64, 64)],
)
def test_powers_of_two(number: int, down: int, nearest: int, up: int) -> None:
    assert (power_down(number), power_nearest(number), power_up(number)) == (down, nearest, up)


@pytest.mark.parametrize(
    ("settings", "tasks", "clamps"),
    [
        ({}, 16, []),
        ({"volume": 8 * MB}, 2, []),
        ({"most": 7}, 4, ["maximum"]),
        ({"least": 20}, 32, ["minimum"]),
        ({"slots": 12, "volume": 64 * MB}, 8, ["reactive"]),
        ({"parallelism": 5}, 5, ["explicit"]),
        ({"parallelism": 500}, 64, ["explicit", "subpartitions"]),
        ({"balanced": True, "rounding": "exact", "volume": MB + MB // 2}, 11, []),
    ],
)
def test_tasks(settings: dict[str, Any], tasks: int, clamps: list[str]) -> None:
    policy = Policy(**{"volume": MB, **settings})
    layout = decide([ShuffleInput([MB // 4] * 64)], 0, policy)
    assert (layout.tasks, layout.clamps) == (tasks, clamps)
    assert sum(layout.task_bytes) == 16 * MB


def test_broadcasts_take_up_half_of_the_volume_at_most() -> None:
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
def test_blocks_are_fetched_in_batches_by_sparks_own_shuffle(
    confs: dict[str, str], in_batch: bool
) -> None:
    assert Policy.of(Confs(confs), 4).fetches_in_batch == in_batch


def test_registered_slots_are_filled_under_dynamic_allocation() -> None:
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.master": "yarn"}
    assert Policy.of(Confs(dynamic), 4).slots == 4
    assert Policy.of(Confs({**dynamic, "spark.apportion.mode": "active"}), 4).slots is None


def test_waves_are_filled_where_that_is_done_sooner() -> None:
    sizes = [20 * MB] * 40
    policy = Policy(80 * MB, balanced=True, rounding="waves", steady_slots=4)
    layout = decide([ShuffleInput(sizes)], 0, policy)
    assert (layout.tasks, layout.clamps) == (8, ["waves"])
    assert wave_price(layout.task_bytes, 4) < wave_price([80 * MB] * 10, 4)


def test_files_are_cut_anywhere() -> None:
    assert decide_source(10 * MB, Policy(4 * MB)) == 3
    assert decide_source(10 * MB, Policy(4 * MB, parallelism=7)) == 7


@pytest.mark.parametrize(
    ("likely", "settings", "number"),
    [
        (10 * MB, {}, 16),
        (10 * MB, {"balanced": True}, 64),
        (10 * MB, {"parallelism": 5}, 5),
        (10 * MB, {"max_blocks_per_shuffle": 100}, 8),
        (0, {"least": 3}, 8),
    ],
)
def test_subpartitions(likely: int, settings: dict[str, Any], number: int) -> None:
    assert subpartitions.estimated(likely, 10, Policy(MB, **settings)) == number


def test_likely_tasks() -> None:
    assert likely_tasks(10 * MB, Policy(MB)) == 8
    assert subpartitions.unestimated(200, Policy(MB)) == 128


def test_settings_that_a_log_has_wrong_are_the_defaults() -> None:
    confs = Confs({"spark.apportion.dataVolumePerTask": "much", "spark.apportion.ranges": "odd"})
    usual = Policy(64 * MB, slots=4, steady_slots=4, fetches_in_batch=True)
    assert Policy.of(confs, 4) == usual


def test_the_extension_decides_the_same(spark: SparkSession) -> None:
    session = spark.newSession()
    draw = random.Random(7)
    for _ in range(150):
        settings = random_settings(draw)
        inputs = random_inputs(draw)
        broadcast = draw.choice([0, 0, draw.randrange(4 * MB)])
        asked = [apportion.Input(sizes) for sizes in inputs]
        asked += [apportion.Input([broadcast], broadcast=True)] * bool(broadcast)
        theirs = apportion.decide(session, asked, **settings)
        confs = Confs(apportion.Settings(**settings).to_conf())
        policy = Policy.of(confs, spark.sparkContext.defaultParallelism)
        ours = decide([ShuffleInput(sizes) for sizes in inputs], broadcast, policy)
        assert (ours.tasks, ours.ranges, ours.clamps) == (
            theirs.parallelism, theirs.ranges, theirs.clamps,
        ), (settings, inputs, broadcast)  # fmt: skip


def random_settings(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "data_volume_per_task": draw.choice([1000, 64 << 10, MB, 10 * MB]),
        "mode": draw.choice(["active", "reactive"]),
        "ranges": draw.choice(["even", "balanced"]),
        "rounding": draw.choice(["power-of-two", "exact", "waves"]),
        "min_task_volume": draw.choice([1000, MB]),
        "broadcast_ratio": draw.choice([0.2, 0.5]),
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
