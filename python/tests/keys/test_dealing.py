"""How values fall over tasks, against what Spark's own repartition makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apportion import InputError
from apportion.keys import columns, plot
from apportion.keys.key_distribution import Deal, Dealt, deal

# Ten buckets, of which bucket k has k + 1 rows.
BUCKETS = "SELECT explode(sequence(0, id)), CAST(id AS INT) AS bucket FROM range(10)"


def test_by_hash_as_a_repartition_does(spark: SparkSession) -> None:
    buckets = spark.sql(BUCKETS)
    hashed = deal(buckets, "bucket", 5).hashed
    partitions = buckets.repartition(5, "bucket").selectExpr("spark_partition_id() AS id", "bucket")
    counted = partitions.groupBy("id").agg({"bucket": "count"}).collect()
    assert {task: rows for task, rows in enumerate(hashed.rows) if rows} == dict(counted)
    assert hashed.values == [0, 3, 2, 2, 3]


def test_by_even_keys_in_turns(spark: SparkSession) -> None:
    dealt = deal(spark.sql(BUCKETS), ["bucket"], 5)
    assert dealt.even.values == [2, 2, 2, 2, 2]
    assert dealt.even.rows == [7, 9, 11, 13, 15]
    assert (dealt.columns, dealt.subpartitions) == (["bucket"], 5)


def test_ranges_of_several_subpartitions(spark: SparkSession) -> None:
    dealt = deal(spark.sql(BUCKETS), "bucket", 8, 16)
    assert dealt.hashed.values == [0, 3, 0, 1, 2, 1, 0, 3]
    assert dealt.subpartitions == 16


def test_null_is_a_value_and_no_rows_are_none(spark: SparkSession) -> None:
    frame = spark.sql("SELECT nullif(id, 1) AS `a b`, id AS count FROM range(2)")
    assert deal(frame, ["a b", "count"], 2).even.values == [1, 1]
    assert deal(frame.where("false"), "count", 2).hashed.rows == [0, 0]


def test_too_many_values(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_VALUES", 9)
    with pytest.raises(InputError, match="bucket: there are more than 9 distinct values"):
        deal(spark.sql(BUCKETS), "bucket", 5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            Deal([0, 3, 1], [0, 300, 150]),
            "1 of 3 tasks empty; at most 3 values and 300 rows a task, 2.0 times the mean",
        ),
        (Deal([0], [0]), "1 of 1 task empty; at most 0 values and 0 rows a task"),
    ],
)
def test_in_words(given: Deal, text: str) -> None:
    assert str(given) == text


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_file_is_drawn(tmp_path: Path, name: str, start: bytes) -> None:
    dealt = Dealt(["k"], 2, Deal([0, 2], [0, 20]), Deal([1, 1], [10, 10]))
    plot.draw(dealt, "k of t", tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
