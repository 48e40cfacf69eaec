"""No task of Apportion reads many more bytes than Spark's largest one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from apportion._spark.jvm import StageMetrics
from measurements.checks import largest_tasks
from measurements.checks.largest_tasks import (
    KB,
    READERS,
    Case,
    Outcome,
    Table,
    function_query,
    join_query,
)

# A minimal set of hard cases: small sources and large shuffles.
TABLES = [
    Table("fixed_dictionary", 20_000, 2, 256, 96, sorted=False, codec="zstd", files=2),
    Table("fixed_sorted", 40_000, 1, 600, 96, sorted=True, codec="snappy", files=1),
]
CASES = [
    Case("rebalance of a dictionary", "files",
         READERS["rebalance"].format(rows="SELECT * FROM fixed_dictionary"), 128 * KB),
    Case("sort of a sorted table", "files",
         READERS["sort"].format(rows="SELECT * FROM fixed_sorted"), 64 * KB, partitions=64),
    Case("join of two tables", "files",
         "SELECT * FROM fixed_dictionary a JOIN fixed_sorted b ON a.id = b.id", 128 * KB),
    Case(*join_query(100, "window", 40_000), 128 * KB),
    Case(*join_query(1000, "collect", 40_000), 128 * KB, partitions=400, broadcast=True),
    Case(*function_query("explode", 100, "sort", 40_000), 128 * KB, volume=True),
]  # fmt: skip


def stage(tasks: int, largest: int) -> StageMetrics:
    return {
        "stage": 1,
        "name": "",
        "tasks": tasks,
        "readsShuffle": True,
        "shuffleReadBytes": 400,
        "largestTaskBytes": largest,
        "taskMillis": 1,
        "blocksWritten": 0,
        "spilledBytes": 0,
    }


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = spark.newSession()
    largest_tasks.register(session, TABLES, 50_000, tmp_path_factory.mktemp("tables"))
    return session


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_largest_task_is_not_much_larger_than_with_spark(
    session: SparkSession, case: Case
) -> None:
    outcome = largest_tasks.run(session, case)
    # Spark has a number of tasks here, so that too few of Apportion's would show.
    assert max(stage["tasks"] for stage in outcome.off) >= 8
    assert outcome.ratio <= largest_tasks.MOST, outcome


def test_a_seed_generates_the_same_cases() -> None:
    assert largest_tasks.generate(3, 50, 1.0) == largest_tasks.generate(3, 50, 1.0)
    _, cases = largest_tasks.generate(3, 50, 1.0)
    assert {case.kind for case in cases} == {"files", "join", "function"}
    assert len({case.name for case in cases}) == 50


def test_a_row_has_the_largest_task_of_all_stages() -> None:
    small, large = stage(4, 110), stage(2, 330)
    (row,) = largest_tasks.rows([Outcome(CASES[3], off=[small], on=[small, large])])
    assert (row["query"], row["kind"]) == ("window of a join by 100", "join")
    assert (row["largest_off"], row["largest_on"]) == (110, 330)
    assert (row["tasks_off"], row["tasks_on"]) == (4, 6)
