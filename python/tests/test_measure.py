from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from apportion.bench import measure
from apportion.bench.measure import same_rows
from tests.spark_version import since

GROUPED = "SELECT id % 10 AS k, count(*) AS n FROM range(0, 1000, 1, 2) GROUP BY k"


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ([], [], True),
        ([(1, "a"), (2, None)], [(2, None), (1, "a")], True),
        ([(1,), (1,)], [(1,)], False),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False),
        ([(None,)], [("",)], False),
        ([(1,)], [("1",)], False),
        ([(0.1 + 0.2,)], [(0.3,)], True),
        ([(1.0,)], [(1.000001,)], False),
        ([(math.nan,)], [(math.nan,)], True),
        ([(math.nan,)], [(0.0,)], False),
        ([("a", 0.1 + 0.2), ("b", 0.3)], [("b", 0.1 + 0.2), ("a", 0.3)], True),
        ([(Decimal("1.10"),)], [(Decimal("1.10"),)], True),
        ([(Decimal("1.10"),)], [(Decimal("1.11"),)], False),
        ([([1.0, 0.1 + 0.2],)], [([1.0, 0.3],)], True),
        ([([1.0],)], [([1.0, 2.0],)], False),
        ([({"a": 0.1 + 0.2},)], [({"a": 0.3},)], True),
        ([({"a": 1},)], [({"b": 1},)], False),
        ([(datetime.date(2026, 1, 1),)], [(datetime.date(2026, 1, 2),)], False),
    ],
)
def test_rows_are_compared_without_order_and_with_rounded_floats(
    left: list[Any], right: list[Any], same: bool
) -> None:
    assert same_rows([Row(*row) for row in left], [Row(*row) for row in right]) is same


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "16")
    session.conf.set("spark.apportion.parallelism", "4")
    return session


def test_a_run_has_rows_tasks_time_and_decisions(session: SparkSession) -> None:
    session.sql(GROUPED).collect()
    run = measure.run(session, GROUPED)
    assert run.columns == ["k", "n"]
    assert sorted(run.rows) == [(k, 100) for k in range(10)]
    assert run.tasks == 2 + 4
    assert run.seconds > 0
    # Its own decision, not that of the run before.
    [decision] = run.decisions
    assert decision.tasks == 4
    assert 0 < run.largest_task_bytes < decision.input_bytes


def test_a_command_runs_without_tasks(session: SparkSession) -> None:
    run = measure.run(session, "SET spark.sql.shuffle.partitions = 8")
    assert (run.tasks, run.largest_task_bytes, run.decisions) == (0, 0, [])
    assert session.conf.get("spark.sql.shuffle.partitions") == "8"


@pytest.mark.parametrize(
    ("query", "without"),
    [
        ("SELECT 1 a, 2 b ORDER BY a LIMIT 3", "SELECT 1 a, 2 b ORDER BY a , 1, 2 LIMIT 3"),
        ("SELECT 1 a, 2 b limit 3", "SELECT 1 a, 2 b ORDER BY 1, 2 limit 3"),
        ("SELECT 1 a ORDER BY a", "SELECT 1 a ORDER BY a"),
        *(
            pytest.param(query, query, marks=since("4.1") if "RECURSIVE" in query else ())
            for query in (
                "SELECT * FROM (SELECT 1 a LIMIT 3)",
                "SELECT 1 a SORT BY a LIMIT 3",
                "SELECT 1 a ORDER BY ALL LIMIT 3",
                "SELECT map(1, 2) m LIMIT 3",
                "SELECT array(struct(map(1, 2))) m LIMIT 3",
                "WITH RECURSIVE r MAX RECURSION LEVEL 3 AS (SELECT 1 a) SELECT a FROM r LIMIT 3",
            )
        ),
    ],
)
def test_a_limit_gets_an_order_without_ties(
    session: SparkSession, query: str, without: str
) -> None:
    found = measure.without_ties(session, query)
    assert found.split() == without.split()
    assert session.sql(found).collect() == session.sql(query).collect()


def test_compare_runs_a_query_with_and_without_apportion(session: SparkSession) -> None:
    comparison = measure.compare(session, GROUPED)
    assert comparison.equal
    # Spark alone makes one task of so few bytes.
    assert (comparison.spark.tasks, comparison.apportion.tasks) == (2 + 1, 2 + 4)
    assert comparison.spark.decisions == []
    assert len(comparison.apportion.decisions) == 1
    assert comparison.spark.largest_task_bytes > comparison.apportion.largest_task_bytes
    assert session.conf.get("spark.apportion.enabled") == "true"


def test_compare_finds_different_results(session: SparkSession) -> None:
    assert not measure.compare(session, "SELECT uuid()").equal


def test_compare_restores_the_setting_if_the_query_fails(session: SparkSession) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        measure.compare(session, "SELECT * FROM nowhere")
    assert session.conf.get("spark.apportion.enabled") == "true"
    assert session.sparkContext.getLocalProperty("spark.jobGroup.id") is None
