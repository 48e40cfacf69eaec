"""Finds the tables in a directory and registers them as temporary views."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from apportion._util.identifiers import quoted
from apportion.cli.support.console import QUERY_FAILED, fail
from apportion.errors import ApportionError, QueryError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_DATA_FILE = re.compile(
    rf"(?P<name>.+)\.(?P<extension>{'|'.join(_FORMATS)})(\.(gz|bz2|zst|lz4|snappy|deflate))?",
    re.IGNORECASE,
)
_MISSING_TABLE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] .*`(?P<table>[^`]+)` cannot be found\.")
_OPTIONS = {"csv": {"header": "true", "inferSchema": "true"}}


class Table(NamedTuple):
    """Data file or folder, and its format for Spark."""

    path: Path
    format: str


def find_tables(directory: Path) -> dict[str, Table]:
    """Return the tables in `directory` by name: the file or folder name without the extension.

    A folder is a table if it contains data files, at any depth. Hidden files and all other files
    are skipped. Raises `ApportionError` if the directory does not exist or has no tables, if two
    tables have the same name, or if a folder mixes formats.
    """
    if not directory.is_dir():
        raise ApportionError(f"there is no directory {directory} (--tables)")
    tables: dict[str, Table] = {}
    for path in sorted(directory.iterdir()):
        formats = _formats(path)
        if not formats:
            continue
        if len(formats) > 1:
            raise ApportionError(
                f"the folder {path} mixes formats: {', '.join(sorted(formats))}. "
                "All files of a table must have the same format"
            )
        match = _DATA_FILE.fullmatch(path.name)
        name = match["name"] if match else path.name
        # Spark ignores the case of table names.
        if same := [other for other in tables if other.lower() == name.lower()]:
            raise ApportionError(f"two tables are named {name}: {tables[same[0]].path} and {path}")
        tables[name] = Table(path, formats.pop())
    if not tables:
        raise ApportionError(f"there are no parquet, csv or json files or folders in {directory}")
    return tables


def register(spark: SparkSession, tables: Mapping[str, Table]) -> None:
    """Create a temporary view for each table."""
    for name, table in tables.items():
        reader = spark.read.format(table.format).options(**_OPTIONS.get(table.format, {}))
        reader.load(str(table.path)).createOrReplaceTempView(quoted(name))


def query_failed(error: QueryError, tables: Mapping[str, Table]) -> NoReturn:
    """End the command with Spark's message. For a missing table, add the names of known tables."""
    missing = _MISSING_TABLE.match(str(error))
    if not missing:
        fail(str(error), QUERY_FAILED)
    nearest = did_you_mean(missing["table"], tables)
    known = f"Tables: {', '.join(tables)}" if tables else "Name a directory of tables with --tables"
    fail(f"{missing[0]}{nearest} {known}")


def _formats(path: Path) -> set[str]:
    if path.name.startswith((".", "_")):
        return set()
    if path.is_dir():
        return {format for entry in path.iterdir() for format in _formats(entry)}
    match = _DATA_FILE.fullmatch(path.name)
    return {_FORMATS[match["extension"].lower()]} if match else set()
