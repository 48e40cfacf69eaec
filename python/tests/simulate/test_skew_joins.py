"""Spark's splits of skewed joins in Python, against Spark's own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import ADVISORY_SIZE, Confs
from apportion.logs.simulate.arithmetic.ranges import sums
from apportion.logs.simulate.arithmetic.spark_reads import coalesced, split, splits

CONFS = {
    ADVISORY_SIZE: "100",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "200",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1",
}
SKEWED = [50, 50, 400, 50]


def side(sizes: Sequence[int], splittable: bool = True) -> ShuffleInput:
    return ShuffleInput(sizes, written=[sum(sizes) // 8] * 8, splittable=splittable)


def test_tasks_read_parts_of_the_skewed_side_and_all_of_the_other_side() -> None:
    assert splits([side(SKEWED), side([10] * 4)], Confs(CONFS)) == {2: [110] * 4}


def test_tasks_read_each_pair_of_parts_if_both_sides_are_skewed() -> None:
    assert splits([side(SKEWED), side(SKEWED)], Confs(CONFS)) == {2: [200] * 16}


@pytest.mark.parametrize(
    "sides",
    [
        pytest.param([side(SKEWED, False), side([10] * 4)], id="the join needs a whole side"),
        pytest.param([side([200] * 4), side([10] * 4)], id="no partition is skewed"),
        pytest.param([side(SKEWED), side(SKEWED), side(SKEWED)], id="three shuffles"),
        pytest.param([ShuffleInput(SKEWED, splittable=True)] * 2, id="map tasks are not known"),
    ],
)
def test_spark_splits_nothing(sides: list[ShuffleInput]) -> None:
    assert splits(sides, Confs(CONFS)) == {}


def test_splits_can_be_switched_off() -> None:
    off = {**CONFS, "spark.sql.adaptive.skewJoin.enabled": "false"}
    assert splits([side(SKEWED), side(SKEWED)], Confs(off)) == {}


def test_partitions_on_both_sides_of_a_split_one_are_coalesced() -> None:
    sizes = [40, 40, 900, 40, 40]
    assert coalesced(sizes, 1, Confs(CONFS), split=[2]) == [(0, 2), (3, 5)]
    assert coalesced([0, 0, 900, 40], 1, Confs(CONFS), split=[2]) == [(3, 4)]


def test_spark_splits_the_same(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    # The method has no static form, as it is private in Scala.
    util = getattr(
        getattr(jvm.org.apache.spark.sql.execution.adaptive, "ShufflePartitionsUtil$"), "MODULE$"
    )
    draw = random.Random(5)
    for _ in range(200):
        target = draw.choice([10, 100, 1000])
        sizes = [draw.randrange(draw.choice([5, 50, 500])) for _ in range(draw.randint(1, 40))]
        array = gateway.new_array(jvm.long, len(sizes))
        for place, size in enumerate(sizes):
            array[place] = size
        starts = list(util.splitSizeListByTargetSize(array, target, 0.2))
        theirs = sums(sizes, list(zip(starts, [*starts[1:], len(sizes)], strict=True)))
        assert split(sizes, target) == theirs, (sizes, target)
