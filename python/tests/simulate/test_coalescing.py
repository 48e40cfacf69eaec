"""Spark's coalescing in Python, against Spark's own."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from apportion.logs.simulate.arithmetic.policy import Confs
from apportion.logs.simulate.arithmetic.ranges import Range
from apportion.logs.simulate.arithmetic.spark_reads import coalesced, local_tasks, min_tasks

PREFIX = "spark.sql.adaptive.coalescePartitions."
ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"


def confs(advisory: int, least: int, **more: str) -> Confs:
    values = {ADVISORY: str(advisory), f"{PREFIX}minPartitionSize": str(least)}
    return Confs(values | {f"{PREFIX}{key}": value for key, value in more.items()})


@pytest.mark.parametrize(
    ("sizes", "ranges"),
    [
        ([40, 40, 40, 40], [(0, 2), (2, 4)]),
        ([100, 10, 100], [(0, 1), (1, 3)]),  # 10 is too small: it joins a neighbour.
        ([100, 10, 150], [(0, 2), (2, 3)]),
        ([60, 60, 10], [(0, 1), (1, 3)]),
        ([100, 100, 10], [(0, 1), (1, 3)]),
        ([0, 0, 0], [(0, 3)]),
        ([200, 200], [(0, 1), (1, 2)]),
    ],
)
def test_neighbours_are_coalesced_up_to_the_target(sizes: list[int], ranges: list[Range]) -> None:
    assert coalesced(sizes, 1, confs(advisory=100, least=20)) == ranges


def test_the_target_is_lower_if_there_are_too_few_tasks() -> None:
    assert len(coalesced([10] * 8, 1, confs(advisory=1000, least=1))) == 1
    assert len(coalesced([10] * 8, 4, confs(advisory=1000, least=1))) == 4
    assert len(coalesced([10] * 8, 4, confs(advisory=1000, least=40))) == 2


def test_coalescing_can_be_switched_off() -> None:
    assert coalesced([1, 1], 1, confs(100, 1, enabled="false")) == [(0, 1), (1, 2)]


def test_groups_share_the_minimum_number_of_tasks_by_their_bytes() -> None:
    assert min_tasks(Confs({}), 8, [100]) == [8]
    assert min_tasks(Confs({}), 8, [100, 300]) == [2, 6]
    assert min_tasks(Confs({}), 8, [0, 0]) == [8, 8]
    assert min_tasks(confs(1, 1, parallelismFirst="false"), 8, [100]) == [1]
    assert min_tasks(confs(1, 1, minPartitionNum="3"), 8, [100]) == [3]


def test_local_reads_have_whole_map_outputs_or_equal_parts() -> None:
    assert local_tasks(tasks=3, map_tasks=8) == 3
    assert local_tasks(tasks=20, map_tasks=8) == 16


def test_spark_coalesces_the_same(spark: SparkSession) -> None:
    draw = random.Random(11)
    for _ in range(200):
        number, scale = draw.choice([1, 2, 10, 200]), draw.choice([10, 100, 1000])
        sizes = [draw.choice([0, 1, 1, 1, 20]) * draw.randrange(scale) for _ in range(number)]
        least, advisory, minimum = draw.choice([1, 100, 500]), draw.choice([50, 500, 5000]), 4
        ours = coalesced(sizes, minimum, confs(advisory, least))
        theirs = coalesced_by_spark(spark, sizes, advisory, minimum, least)
        assert ours == (theirs or [(i, i + 1) for i in range(number)]), (sizes, least, advisory)


def coalesced_by_spark(
    spark: SparkSession, sizes: list[int], advisory: int, minimum: int, least: int
) -> list[Range]:
    """Spark's ranges; none where it leaves the partitions as they are."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(jvm.long, len(sizes))
    for place, size in enumerate(sizes):
        array[place] = size

    def seq(element: Any) -> Any:
        converters = jvm.scala.jdk.javaapi.CollectionConverters
        return converters.asScala(jvm.java.util.List.of(element)).toSeq()

    statistics = jvm.org.apache.spark.MapOutputStatistics(0, array)
    util = jvm.org.apache.spark.sql.execution.adaptive.ShufflePartitionsUtil
    # Spark 4.3 added a parameter, and py4j does not know the defaults of Scala.
    added = "coalescePartitions$default$7"
    more = [getattr(util, added)()] if added in dir(util) else []
    found = util.coalescePartitions(
        seq(jvm.scala.Option.apply(statistics)),
        seq(jvm.scala.Option.empty()),
        advisory, minimum, least, seq(0), *more,
    )  # fmt: skip
    if found.isEmpty():
        return []
    specs = found.head()
    ranges = [specs.apply(place) for place in range(specs.length())]
    return [(each.startReducerIndex(), each.endReducerIndex()) for each in ranges]
