from __future__ import annotations

import pytest

from apportion.logs.eventlog import plan_text

PATH = "Location: InMemoryFileIndex(1 paths)[file:/data/{}], PartitionFilters: []"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Scan parquet spark_catalog.default.sales", "", "default.sales"),
        ("Scan hive db.sales", "", "db.sales"),
        ("BatchScan catalog.db.sales", "", "catalog.db.sales"),
        ("Scan parquet", f"FileScan parquet [a#1] {PATH.format('sales.parquet')}", "sales"),
        ("Scan parquet", f"FileScan parquet [a#1] {PATH.format('sales.v2')}", "sales.v2"),
        ("Scan parquet", f"FileScan parquet [a#1] {PATH.format('a,b/sales')}", "sales"),
        ("Scan parquet", f"FileScan parquet [a#1] {PATH.format('sales, file:/data/b')}", "sales"),
        ("GpuScan csv", f"GpuFileGpuScan csv [a#1] {PATH.format('sales.csv')}", "sales"),
        ("BatchScan", f"BatchScan[a#1] {PATH.format('sales')}", "sales"),
        (
            "BatchScan parquet file:/data/sales.parquet",
            "BatchScan parquet file:/data/s...",
            "sales",
        ),
        ("BatchScan csv s3://data/a b,s3://data/c", "", "a b"),
        ("Scan text", "FileScan text Location: InMemoryFileIndex[file:/data/sales], Part", "sales"),
        ("Scan parquet", "Location: InMemoryFileIndex(1 paths)[file:/data/sal..., Part", None),
        ("Scan JDBCRelation((SELECT 1) t) [numPartitions=1]", "", "(SELECT 1) t"),
        (
            "Scan JDBCRelation((SELECT a,\n  b FROM s) t) [numPartitions=1]",
            "",
            "(SELECT a, b FROM s) t",
        ),
        ("Scan ExistingRDD", "Scan ExistingRDD[id#0L]", None),
        ("InMemoryTableScan", "InMemoryTableScan [a#1]", None),
        ("LocalTableScan", "LocalTableScan [a#1]", None),
        ("Scan", "Scan[obj#3]", None),
        ("Range", "Range (0, 9)", None),
        ("", "", None),
    ],
)
def test_the_table_of_a_scan(name: str, text: str, expected: str | None) -> None:
    assert plan_text.table(name, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Exchange hashpartitioning(a#1, f(b#2, 3), 200), ENSURE_REQUIREMENTS, [plan_id=7]",
            ("hashpartitioning", 200, "ENSURE_REQUIREMENTS"),
        ),
        ("Exchange rangepartitioning(a#1 ASC, 8), true", ("rangepartitioning", 8, "true")),
        (
            "Exchange RoundRobinPartitioning(4), REPARTITION_BY_NUM",
            ("RoundRobinPartitioning", 4, "REPARTITION_BY_NUM"),
        ),
        ("Exchange SinglePartition, ENSURE_REQUIREMENTS", None),
    ],
)
def test_the_partitioning_of_an_exchange(text: str, expected: tuple[str, int, str] | None) -> None:
    assert plan_text.partitioning(text) == expected


def test_a_long_text_is_searched_for_a_partitioning_in_bounded_time() -> None:
    assert plan_text.partitioning("hashpartitioning(, " * 1_000_000) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SortMergeJoin [k#1], [k#2], Inner", "Inner"),
        ("SortMergeJoin(skew=true) [k#1], [k#2], LeftOuter, (a#1 > b#2)", "LeftOuter"),
        ("BroadcastHashJoin [k#1], [k#2], ExistenceJoin(exists#3), BuildRight", "ExistenceJoin"),
        ("BroadcastNestedLoopJoin BuildRight, LeftSemi, (a#1 > b#2)", "LeftSemi"),
        ("SortMergeJoin [Inner#1], [k#2], FullOuter", "FullOuter"),
        ("HashAggregate(keys=[k#1], functions=[])", None),
    ],
)
def test_the_type_of_a_join(text: str, expected: str | None) -> None:
    assert plan_text.join_type(text) == expected
