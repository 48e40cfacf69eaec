"""Finds the tables in a directory and makes them temporary views."""

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
    """A file or folder of files, and the format that Spark reads it as."""

    path: Path
    format: str


def find_tables(directory: Path) -> dict[str, Table]:
    """Return the tables in `directory` by name: the file's or folder's, without the extension.

    A folder is a table when there are data files in it, at any depth. Other files, and hidden ones,
    are passed over. Raises `ApportionError` when there is no directory or no table in it, and when
    two have the same name or a folder mixes formats.
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
                f"the folder {path} mixes formats: {', '.join(sorted(formats))}. A table has one"
            )
        match = _DATA_FILE.fullmatch(path.name)
        name = match["name"] if match else path.name
        # Spark's names are the same in upper and lower case.
        if same := [other for other in tables if other.lower() == name.lower()]:
            raise ApportionError(f"two tables are named {name}: {tables[same[0]].path} and {path}")
        tables[name] = Table(path, formats.pop())
    if not tables:
        raise ApportionError(f"there are no parquet, csv or json files or folders in {directory}")
    return tables


def register(spark: SparkSession, tables: Mapping[str, Table]) -> None:
    """Make each table a temporary view of its name."""
    for name, table in tables.items():
        reader = spark.read.format(table.format).options(**_OPTIONS.get(table.format, {}))
        reader.load(str(table.path)).createOrReplaceTempView(quoted(name))


def query_failed(error: QueryError, tables: Mapping[str, Table]) -> NoReturn:
    """End the command with what Spark says; with the tables that there are if one is missing."""
    missing = _MISSING_TABLE.match(str(error))
    if not missing:
        fail(str(error), QUERY_FAILED)
    nearest = did_you_mean(missing["table"], tables)
    known = f"Tables: {', '.join(tables)}" if tables else "Give the tables' directory with --tables"
    fail(f"{missing[0]}{nearest} {known}")


def _formats(path: Path) -> set[str]:
    if path.name.startswith((".", "_")):
        return set()
    if path.is_dir():
        return {each for entry in path.iterdir() for each in _formats(entry)}
    match = _DATA_FILE.fullmatch(path.name)
    return {_FORMATS[match["extension"].lower()]} if match else set()
