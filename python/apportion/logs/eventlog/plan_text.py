"""Facts that Spark's events have only inside of the text of an operator, as EXPLAIN prints it.

Spark writes a name and a text for each operator of a physical plan, and no fields for its columns.
No other module looks into these texts.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

AGGREGATES = {"HashAggregate", "ObjectHashAggregate", "SortAggregate"}
_COLUMN_ID = re.compile(r"#(\d+)L?")
_COLUMN_NAME = re.compile(r"(\w+)#\d+")
_FUNCTION = re.compile(r"\b(\w+)\(")
# Conditions that Spark infers from joins, and adds to filter the input of a shuffled join.
_INFERRED = re.compile(r"\bisnotnull\([^()]*\)")
_MIGHT_CONTAIN = "might_contain("
_NUMBER = re.compile(r"\d+")
_FIRST_LIST = re.compile(r"\[([^\]]*)\]")
# Spark lists spark.sql.debug.maxToStringFields columns: `[a#1, b#2, ... 40 more fields]`.
_MORE = re.compile(r"(\d+) more fields")
_PARTITIONING = re.compile(
    r"\b(?P<scheme>hashpartitioning|rangepartitioning|RoundRobinPartitioning)"
    r"\((?:.*, )?(?P<number>\d{1,9})\), (?P<origin>\w+)"
)
# A log is untrusted input. The time to search for a partitioning grows with the square of the text.
_MAX_PARTITIONING = 10_000
# A join type of Spark follows the keys, or the side of a nested loop join.
_JOIN_TYPE = re.compile(
    r"(?:\]|BuildLeft|BuildRight), (?P<type>Inner|Cross|LeftOuter|RightOuter|FullOuter|LeftSemi"
    r"|LeftAnti|LeftSingle|ExistenceJoin)\b"
)
# `Scan parquet db.sales`, `BatchScan catalog.db.sales`; accelerators add a prefix, such as `Gpu`.
_SCAN = re.compile(r"\w*Scan$")
# The table can be a query of several lines.
_JDBC = re.compile(r"JDBCRelation\((.*)\)", re.DOTALL)
# `Location: InMemoryFileIndex(1 paths)[file:/data/sales.parquet], PartitionFilters: ...`. Spark
# writes `...` in place of the end of a long path, which may be in the middle of the name.
_LOCATION = re.compile(r"Location: \w+(?:\s?\(\d+ paths?\))?\s?\[((?:[^\],]|,(?! ))+)(?:\]|, )")
# `Execute InsertIntoHadoopFsRelationCommand file:/data/sales, false, Parquet, ...`; `Execute
# InsertIntoHiveTable `db`.`sales`, ...`; `AppendData ..., IcebergWrite(table=db.sales, ...)`;
# `Execute SaveIntoDataSourceCommand ..., [dbtable=sales, ...]`.
_WRITE = re.compile(
    r"Execute |AppendData|Overwrite(?:ByExpression|PartitionsDynamic)|ReplaceData|WriteDelta"
    r"|(?:Atomic)?(?:Create|Replace)TableAsSelect"
)
_TARGET = re.compile(
    r"\b(?:path=|table=|dbtable=|TableName: )([^,\])]+)|(\b\w+:/[^,\])]*|`[^`,]*`(?:\.`[^`,]*`)*)"
)
_FORMATS = {".avro", ".csv", ".json", ".orc", ".parquet", ".txt"}
_NOT_TABLES = {"InMemoryTableScan", "LocalTableScan", "CommandResultScan"}


def kind(name: str) -> str:
    """Return the name without an argument: `SortMergeJoin` of `SortMergeJoin(skew=true)`."""
    return name.partition("(")[0].strip()


def codegen(name: str) -> int | None:
    """Return the number of generated code: 3 of `WholeStageCodegen (3)`."""
    return int(match[0]) if (match := _NUMBER.search(name)) else None


def query_stage(text: str) -> int | None:
    """Return the number of a query stage: 3 of `ShuffleQueryStage 3`."""
    label = text.rpartition(" ")[2]
    return int(label) if label.isdecimal() else None


def column_ids(text: str) -> set[int]:
    """Return the ids of the columns that an operator names: 1 and 2 of `Project [a#1, b#2]`."""
    return {int(found) for found in _COLUMN_ID.findall(text)}


def column_names(text: str) -> set[str]:
    """Return the names of the columns of an operator: `a` and `b` of `Project [a#1, b#2]`."""
    return set(_COLUMN_NAME.findall(text))


def functions(text: str) -> set[str]:
    """Return the names of the functions of an operator: `upper` of `Project [upper(a#1)]`."""
    return set(_FUNCTION.findall(text))


def filtered_columns(text: str) -> set[str]:
    """Return the names of the columns of a filter, without conditions that Spark adds."""
    text = _INFERRED.sub("", text)
    while (start := text.find(_MIGHT_CONTAIN)) >= 0:
        depth, end = 1, start + len(_MIGHT_CONTAIN)
        while depth and end < len(text):
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        text = text[:start] + text[end:]
    return column_names(text)


def without_column_ids(text: str) -> str:
    """Return a text without the ids of columns: `Project [a, b]` of `Project [a#1, b#2L]`."""
    return _COLUMN_ID.sub("", text)


def first_list(text: str) -> str:
    """Return the first list of an operator, such as its columns; empty without a list."""
    return match[1] if (match := _FIRST_LIST.search(text)) else ""


def width(text: str) -> int:
    """Return the number of columns in the first list of an operator."""
    listed = first_list(text)
    more = int(match[1]) if (match := _MORE.search(listed)) else 0
    return len(listed.split(", ")) + more


class Partitioning(NamedTuple):
    """How an exchange distributes its rows."""

    scheme: str
    """`hashpartitioning`, `rangepartitioning` or `RoundRobinPartitioning`."""
    number: int
    """Number of shuffle partitions."""
    origin: str
    """Spark's reason for the exchange, such as `ENSURE_REQUIREMENTS`. Spark 3.0 writes whether the
    number may change: `true` or `false`."""


def partitioning(text: str) -> Partitioning | None:
    """Return the partitioning of an exchange; None for other texts, and for a single partition."""
    match = _PARTITIONING.search(text[:_MAX_PARTITIONING])
    return Partitioning(match["scheme"], int(match["number"]), match["origin"]) if match else None


def has_single_partition(text: str) -> bool:
    """Return whether an exchange sends all rows to one partition."""
    return "SinglePartition" in text


def join_type(text: str) -> str | None:
    """Return the type of a join, such as `LeftOuter`; None if the text has none."""
    return match["type"] if (match := _JOIN_TYPE.search(text)) else None


def is_partial(text: str) -> bool:
    """Return whether an aggregate has partial functions, so that it takes rows in any order."""
    return "partial_" in text


def is_global_sort(text: str) -> bool:
    """Return whether a sort orders all rows, as for ORDER BY: `Sort [k#1 ASC], true, 0`."""
    return text.rpartition("], ")[2].startswith("true")


def is_repartition(text: str) -> bool:
    """Return whether a query asks for an exchange, as by `repartition` or a hint."""
    found = partitioning(text)
    return found is not None and found.origin.startswith(("REPARTITION", "REBALANCE"))


def is_bucketed(text: str) -> bool:
    """Return whether a scan reads a table by its buckets."""
    return "SelectedBucketsCount" in text


def table(name: str, text: str) -> str | None:
    """Return the table of a scan, or the last part of its path; None if the plan has neither."""
    words = name.split()
    if not words or not _SCAN.match(words[0]) or words[0] in _NOT_TABLES:
        return None
    if jdbc := _JDBC.search(name):
        return " ".join(jdbc[1].split())
    if words[-1].startswith("ExistingRDD") or "ExistingRDD" in words:
        return None
    # A scan of version 2 names no format.
    named = words[1:] if words[0].endswith("BatchScan") else words[2:]
    # `BatchScan parquet file:/data/sales.parquet` reads files by Spark's sources of version 2.
    if len(named) > 1 and ":/" in named[1]:
        return _without_format(" ".join(named[1:]).partition(",")[0])
    if named:
        return named[0].removeprefix("spark_catalog.")
    return _last_part(text)


def source(name: str, text: str) -> str | None:
    """Return the table of a scan, or its first path; None if the plan has neither."""
    words = name.split()
    if not words or not _SCAN.match(words[0]) or words[0] in _NOT_TABLES:
        return None
    if len(words) > 2 or not (found := _LOCATION.search(text)):
        return table(name, text)
    return None if found[1].endswith("...") else found[1]


def scan_format(name: str) -> str:
    """Return the format of a scan in lower case: `csv` of `Scan csv db.sales`; empty if unnamed."""
    words = name.split()
    is_named = len(words) > 1 and words[0].endswith("Scan") and not words[0].endswith("BatchScan")
    return words[1].lower() if is_named else ""


def write_targets(name: str, text: str) -> list[str]:
    """Return the paths and tables in the text of a command or a write, sorted."""
    if not _WRITE.match(name):
        return []
    return sorted({match[1] or match[2] for match in _TARGET.finditer(text)})


def _last_part(text: str) -> str | None:
    found = _LOCATION.search(text)
    if not found or found[1].endswith("..."):
        return None
    return _without_format(found[1])


def _without_format(text: str) -> str | None:
    path = PurePosixPath(text)
    return (path.stem if path.suffix in _FORMATS else path.name) or None
