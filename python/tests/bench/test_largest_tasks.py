"""No task of Apportion reads many more bytes than Spark's largest one."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from apportion._spark.jvm import StageMetrics
from measurements.checks import largest_tasks
from measurements.checks.largest_tasks import FIXED_CASES, FIXED_TABLES, Case, Outcome


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
    largest_tasks.register(session, FIXED_TABLES, 50_000, tmp_path_factory.mktemp("tables"))
    return session


@pytest.mark.parametrize("case", FIXED_CASES, ids=lambda case: case.name)
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
    (row,) = largest_tasks.rows([Outcome(FIXED_CASES[3], off=[small], on=[small, large])])
    assert (row["query"], row["kind"]) == ("window of a join by 100", "join")
    assert (row["largest_off"], row["largest_on"]) == (110, 330)
    assert (row["tasks_off"], row["tasks_on"]) == (4, 6)
