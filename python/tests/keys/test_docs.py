"""The page on keys: the picture is right, and the table of functions is complete."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

from apportion.keys.key_distribution import measure_distribution

PAGE = (Path(__file__).parents[3] / "docs/even-keys.md").read_text("utf-8")


def test_the_picture_of_even_keys_shows_the_real_tasks(spark: SparkSession) -> None:
    buckets = spark.range(10).selectExpr("CAST(id AS INT) AS bucket")
    rows = re.findall(r"^\| buckets by .*?` \|(.*)\|$", PAGE, re.MULTILINE)
    drawn = [
        [len(cell.split(",")) if cell.strip() else 0 for cell in row.split("|")] for row in rows
    ]
    distribution = measure_distribution(buckets, "bucket", 5)
    assert drawn == [distribution.hashed.values, distribution.even.values]


def test_the_page_has_the_description_of_every_key_function(spark: SparkSession) -> None:
    calls = dict(re.findall(r"^\| `((\w+)\(.*?\))` \|", PAGE, re.MULTILINE))
    assert len(calls) == 8
    for call, name in calls.items():
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION {name}").collect()]
        assert f"Usage: {call} - " in "\n".join(lines)
