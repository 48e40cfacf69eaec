"""Queries with functions of pandas, which Spark runs in Python."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas import functions

import apportion


def test_a_pandas_aggregate_of_a_join_has_its_rows_and_fails_no_rule(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    # Another Python on the path may be without pandas.
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)

    def largest(values: Any) -> float:
        return float(values.max())

    # Spark finds the kind of the function by its types.
    largest.__annotations__ = {"values": pandas.Series, "return": float}
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    left, right = session.range(0, 300, 1, 2), session.range(0, 30, 1, 2)
    joined = left.join(right, left["id"] % 30 == right["id"]).groupBy(right["id"])
    # Its types do not know functions whose types are set later.
    pandas_udf: Any = functions.pandas_udf
    rows = joined.agg(pandas_udf(largest, "double")(left["id"]).alias("most")).collect()
    assert sorted((row["id"], row["most"]) for row in rows) == [(i, 270.0 + i) for i in range(30)]


@pytest.mark.parametrize("method", ["mapInPandas", "mapInArrow"])
def test_a_skewed_join_is_split_below_a_function_of_batches(
    method: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = on_python(spark, monkeypatch)
    joined = skewed_join(session)
    assert getattr(joined, method)(lambda batches: batches, joined.schema).count() == 40_000
    assert "skew" in [decision.layout for decision in apportion.decisions(session)]


def test_a_function_of_batches_gets_all_rows_of_a_key_below_a_repartition_that_spark_drops(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = on_python(spark, monkeypatch)

    def keys(batches: Any) -> Any:
        seen = set[int]()
        for batch in batches:
            new = batch[["k"]].drop_duplicates()
            yield new[~new["k"].isin(seen)]
            seen.update(new["k"])

    rows = skewed_join(session).repartition("k").mapInPandas(keys, "k long").collect()
    assert len(rows) == len(set(rows)) == 20_000


def on_python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Return a session whose functions run in this Python, with tasks of 64 KB."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    session = spark.newSession()
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.apportion.dataVolumePerTask", "64KB")
    return session


def skewed_join(session: SparkSession) -> DataFrame:
    """Return a join of 40,000 rows of which half have one key."""
    left = session.range(0, 40_000, 1, 20).selectExpr(
        "IF(id % 2 = 0, 7, id) AS k", "sha2(string(id), 256) AS word"
    )
    return left.join(session.range(0, 40_000, 1, 2).withColumnRenamed("id", "k"), "k")
