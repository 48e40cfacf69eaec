"""The distribution of values over tasks, compared with Spark's own repartition."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apportion import InputError
from apportion.keys import columns, plot
from apportion.keys.key_distribution import KeyDistribution, TaskLoads, measure_distribution

# Ten buckets. Bucket k has k + 1 rows.
BUCKETS = "SELECT explode(sequence(0, id)), CAST(id AS INT) AS bucket FROM range(10)"


def test_the_hashed_distribution_is_that_of_a_repartition(spark: SparkSession) -> None:
    buckets = spark.sql(BUCKETS)
    hashed = measure_distribution(buckets, "bucket", 5).hashed
    partitions = buckets.repartition(5, "bucket").selectExpr("spark_partition_id() AS id", "bucket")
    counted = partitions.groupBy("id").agg({"bucket": "count"}).collect()
    assert {task: rows for task, rows in enumerate(hashed.rows) if rows} == dict(counted)
    assert hashed.values == [0, 3, 2, 2, 3]


def test_even_keys_give_each_task_the_same_number_of_values(spark: SparkSession) -> None:
    distribution = measure_distribution(spark.sql(BUCKETS), ["bucket"], 5)
    assert distribution.even.values == [2, 2, 2, 2, 2]
    assert distribution.even.rows == [7, 9, 11, 13, 15]
    assert (distribution.columns, distribution.subpartitions) == (["bucket"], 5)


def test_tasks_that_read_ranges_of_several_subpartitions(spark: SparkSession) -> None:
    distribution = measure_distribution(spark.sql(BUCKETS), "bucket", 8, 16)
    assert distribution.hashed.values == [0, 3, 0, 1, 2, 1, 0, 3]
    assert distribution.subpartitions == 16


def test_null_counts_as_a_value_and_an_empty_table_has_no_rows(spark: SparkSession) -> None:
    frame = spark.sql("SELECT nullif(id, 1) AS `a b`, id AS count FROM range(2)")
    assert measure_distribution(frame, ["a b", "count"], 2).even.values == [1, 1]
    assert measure_distribution(frame.where("false"), "count", 2).hashed.rows == [0, 0]


def test_too_many_distinct_values_are_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MOST_VALUES", 9)
    with pytest.raises(InputError, match="bucket: there are more than 9 distinct values"):
        measure_distribution(spark.sql(BUCKETS), "bucket", 5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            TaskLoads([0, 3, 1], [0, 300, 150]),
            "1 of 3 tasks empty; at most 3 values and 300 rows per task, 2.0 times the mean",
        ),
        (TaskLoads([0], [0]), "1 of 1 task empty; at most 0 values and 0 rows per task"),
    ],
)
def test_text_of_task_loads(given: TaskLoads, text: str) -> None:
    assert str(given) == text


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_plot_is_written_to_a_file(tmp_path: Path, name: str, start: bytes) -> None:
    distribution = KeyDistribution(
        ["k"], 2, TaskLoads([0, 2], [0, 20]), TaskLoads([1, 1], [10, 10])
    )
    plot.draw(distribution, "k of t", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
