"""TPC-H and TPC-DS give the same results with Apportion and without.

Their queries end in a LIMIT below an order that has ties, so the rows that are cut off would be
anybody's choice. All columns are appended to the order: then only equal rows are tied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import sqlglot
from pyspark.sql import SparkSession

from apportion import tpc
from apportion.measure import compare, run

QUERIES: dict[tpc.Benchmark, range] = {"tpch": range(1, 23), "tpcds": range(1, 100)}

# Joins of every kind, subqueries, unions, windows, rollups, set operations, and shared CTEs.
QUICK: dict[tpc.Benchmark, list[int]] = {
    "tpch": [1, 3, 5, 9, 11, 13, 15, 18, 21, 22],
    "tpcds": [1, 3, 5, 14, 23, 36, 38, 51, 64, 87],
}

# Small enough for several tasks a stage on so little data, and the same on every machine.
SETTINGS = {
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "8KB",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.autoBroadcastJoinThreshold": "64KB",
}


@pytest.fixture(scope="module", params=list(QUERIES))
def benchmark(request: pytest.FixtureRequest) -> tpc.Benchmark:
    name: tpc.Benchmark = request.param
    return name
