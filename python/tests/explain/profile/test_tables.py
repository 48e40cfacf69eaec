from __future__ import annotations

import pytest

from apportion.eventlog import PlanNode
from apportion.explanation.views.tables import table

PATH = "Location: InMemoryFileIndex(1 paths)[file:/data/{}], PartitionFilters: []"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Scan parquet spark_catalog.default.sales", "", "default.sales"),
        ("Scan hive db.sales", "", "db.sales"),
        ("BatchScan catalog.db.sales", "", "catalog.db.sales"),
        ("Scan parquet", f"FileScan parquet [a#1] {PATH.format('sales.parquet')}", "sales"),
        ("Scan parquet", f"FileScan parquet [a#1] {PATH.format('sales.v2')}", "sales.v2"),
        ("GpuScan csv", f"GpuFileGpuScan csv [a#1] {PATH.format('sales.csv')}", "sales"),
        ("BatchScan", f"BatchScan[a#1] {PATH.format('sales')}", "sales"),
        ("Scan text", "FileScan text Location: InMemoryFileIndex[file:/data/sales], Part", "sales"),
        ("Scan parquet", "Location: InMemoryFileIndex(1 paths)[file:/data/sal..., Part", None),
        ("Scan JDBCRelation((SELECT 1) t) [numPartitions=1]", "", "(SELECT 1) t"),
        ("Scan ExistingRDD", "Scan ExistingRDD[id#0L]", None),
        ("InMemoryTableScan", "InMemoryTableScan [a#1]", None),
        ("LocalTableScan", "LocalTableScan [a#1]", None),
        ("Scan", "Scan[obj#3]", None),
        ("Range", "Range (0, 9)", None),
        ("", "", None),
    ],
)
def test_the_table_of_a_scan(name: str, text: str, expected: str | None) -> None:
    assert table(PlanNode(name, text, {}, [])) == expected
