"""Names of the tables that the scans of a plan read."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from apportion.eventlog import PlanNode

# `Scan parquet db.sales`, `BatchScan catalog.db.sales`; accelerators add a prefix, such as `Gpu`.
_SCAN = re.compile(r"\w*Scan$")
_JDBC = re.compile(r"JDBCRelation\((.*)\)")
# `Location: InMemoryFileIndex(1 paths)[file:/data/sales.parquet], PartitionFilters: ...`. Spark
# writes `...` in place of the end of a long path, which may be in the middle of the name.
_LOCATION = re.compile(r"Location: \w+(?:\s?\(\d+ paths?\))?\s?\[([^\],]+)[\],]")
_FORMATS = {".avro", ".csv", ".json", ".orc", ".parquet", ".txt"}
_NOT_TABLES = {"InMemoryTableScan", "LocalTableScan", "CommandResultScan"}


def table(node: PlanNode) -> str | None:
    """Return the table of a scan, or the last part of its path; None if the plan has neither."""
    words = node.name.split()
    if not words or not _SCAN.match(words[0]) or words[0] in _NOT_TABLES:
        return None
    if jdbc := _JDBC.search(node.name):
        return jdbc[1]
    if words[-1].startswith("ExistingRDD") or "ExistingRDD" in words:
        return None
    # A scan of version 2 names no format.
    named = words[1:] if words[0].endswith("BatchScan") else words[2:]
    if named:
        return named[0].removeprefix("spark_catalog.")
    return _last_part(node.text)


def _last_part(text: str) -> str | None:
    found = _LOCATION.search(text)
    if not found or found[1].endswith("..."):
        return None
    path = PurePosixPath(found[1])
    return (path.stem if path.suffix in _FORMATS else path.name) or None
