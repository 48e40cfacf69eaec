from __future__ import annotations

import dataclasses

import pytest
from pyspark.sql import SparkSession

from apportion import ApportionError, decisions
from apportion.bench.results import Conditions, Results
from apportion.bench.runner import rotated, run_query, try_variants
from apportion.bench.variants import BUILT_IN, Variant

GROUPED = "SELECT id % 10 AS k, count(*) AS n FROM range(0, 1000, 1, 2) GROUP BY k"
PARALLELISM = "spark.apportion.parallelism"
TWO, FOUR = Variant("two", {PARALLELISM: "2"}), Variant("four", {PARALLELISM: "4"})


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "16")
    return session


@pytest.fixture
def conditions(results: Results) -> Conditions:
    return dataclasses.replace(
        results.conditions, variants=[TWO, FOUR], rounds=2, warmups=0, check=False
    )


def test_the_order_of_variants_rotates_each_round() -> None:
    orders = [[each.name for each in rotated(BUILT_IN[:3], number)] for number in range(4)]
    assert orders == [
        ["spark", "spark-size", "even"],
        ["spark-size", "even", "spark"],
        ["even", "spark", "spark-size"],
        ["spark", "spark-size", "even"],
    ]


def test_a_run_has_tasks_bytes_and_times(session: SparkSession, conditions: Conditions) -> None:
    result = run_query(session, GROUPED, conditions)
    assert (result.sql, result.failures, result.different) == (GROUPED, {}, [])
    assert {name: len(runs) for name, runs in result.runs.items()} == {"two": 2, "four": 2}
    for reduce_tasks, run in ((2, result.runs["two"][0]), (4, result.runs["four"][1])):
        assert (run.tasks, run.reduce_tasks) == (2 + reduce_tasks, reduce_tasks)
        # Two tasks wrote at least as many subpartitions as were read.
        assert run.blocks_written >= 2 * reduce_tasks
        assert 0 < run.mean_task_bytes <= run.largest_task_bytes < run.shuffle_bytes
        assert run.seconds > 0
        assert run.task_millis > 0


def test_a_run_without_a_shuffle_has_no_shuffle_bytes(
    session: SparkSession, conditions: Conditions
) -> None:
    run = run_query(session, "SELECT 1", conditions).runs["two"][0]
    assert (run.tasks, run.reduce_tasks, run.blocks_written) == (1, 0, 0)
    assert (run.mean_task_bytes, run.largest_task_bytes) == (0, 0)


def test_warm_ups_run_first_and_variants_alternate(
    session: SparkSession, conditions: Conditions
) -> None:
    result = run_query(session, GROUPED, dataclasses.replace(conditions, warmups=1))
    tasks = [decision.parallelism for decision in decisions(session)]
    assert tasks == [2, 4, *[2, 4], *[4, 2]]
    assert len(result.runs["two"]) == 2


def test_confs_are_restored_after_a_query(session: SparkSession, conditions: Conditions) -> None:
    session.conf.set(PARALLELISM, "7")
    variants = [TWO, Variant("both", {PARALLELISM: "4", "spark.sql.not.set.before": "x"})]
    run_query(session, GROUPED, dataclasses.replace(conditions, variants=variants))
    assert session.conf.get(PARALLELISM) == "7"
    assert session.conf.get("spark.sql.not.set.before", None) is None


def test_different_results_are_found(session: SparkSession, conditions: Conditions) -> None:
    conditions = dataclasses.replace(conditions, check=True)
    assert run_query(session, GROUPED, conditions).different == []
    assert run_query(session, "SELECT uuid()", conditions).different == ["four"]
    # All rows are tied, so that any of them could be the first.
    tied = "SELECT id FROM range(0, 100, 1, 8) ORDER BY id DIV 100 LIMIT 1"
    assert run_query(session, tied, conditions).different == []


def test_a_failure_under_one_variant_is_recorded(
    session: SparkSession, conditions: Conditions
) -> None:
    ansi = Variant("ansi", {"spark.sql.ansi.enabled": "true"})
    lenient = Variant("lenient", {"spark.sql.ansi.enabled": "false"})
    for check in (False, True):
        result = run_query(
            session,
            "SELECT 1 / (id - id) FROM range(3)",
            dataclasses.replace(conditions, variants=[ansi, lenient], check=check),
        )
        assert result.failures.keys() == {"ansi"}
        assert result.failures["ansi"].startswith("[DIVIDE_BY_ZERO] Division by zero")
        assert "\n" not in result.failures["ansi"]
        assert result.runs.keys() == {"lenient"}
        assert result.different == []


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("spark.default.parallelism", "200", "variant bad: .* cannot be set .* --conf .*=200$"),
        ("spark.sql.shuffle.partitions", "many", "variant bad: .*many"),
    ],
)
def test_a_variant_that_spark_rejects_raises_and_restores_confs(
    session: SparkSession, key: str, value: str, message: str
) -> None:
    before = session.conf.get(PARALLELISM)
    with pytest.raises(ApportionError, match=message):
        try_variants(session, [TWO, Variant("bad", {PARALLELISM: "4", key: value})])
    assert session.conf.get(PARALLELISM) == before
