"""Finds the tables in a directory, registers them as views, and names them if one is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
# A table of these formats has its state in a folder of this name. Its data files alone would show
# deleted rows.
_TABLE_FORMATS = {"_delta_log": "delta", "metadata": "iceberg", ".hoodie": "hudi"}
_PACKAGES = {
    "delta": "io.delta:delta-spark",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime",
    "hudi": "org.apache.hudi:hudi-spark-bundle",
}
_UNKNOWN_FORMAT = ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException", "Failed to find data source")
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/(?P<rest>.*)")
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
    if url := _URL.fullmatch(str(directory)):
        raise ApportionError(
            f"--tables reads directories of this machine, not {url['scheme']}://. Name the tables "
            f"in your SQL, such as parquet.`{url['scheme']}://{url['rest'].lstrip('/')}/name`, and "
            "set the file system's options with --set spark.hadoop...."
        )
    if not directory.is_dir():
        raise ApportionError(f"there is no directory {directory} (--tables)")
    tables: dict[str, Table] = {}
    for path in sorted(directory.iterdir()):
        formats = _table_format(path) or _formats(path)
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
    """Create a temporary view for each table.

    Raises `ApportionError` for a table whose format this Spark cannot read.
    """
    for name, table in tables.items():
        reader = spark.read.format(table.format).options(**_OPTIONS.get(table.format, {}))
        try:
            reader.load(str(table.path)).createOrReplaceTempView(quoted(name))
        except Exception as error:
            package = _PACKAGES.get(table.format)
            if package is None or not any(each in str(error) for each in _UNKNOWN_FORMAT):
                raise
            raise ApportionError(
                f"{table.path} is a table of the format {table.format}, which this Spark cannot "
                f"read. Its data files alone can have deleted rows. Add the format's jar, such as "
                f"--set spark.jars.packages={package}..., or move the table out of --tables"
            ) from error


@contextmanager
def query_errors(tables: Mapping[str, Table]) -> Iterator[None]:
    """End the command with Spark's message if a query of the block fails.

    For a missing table, add the names of known tables.
    """
    try:
        yield
    except QueryError as error:
        missing = _MISSING_TABLE.match(str(error))
        if not missing:
            fail(str(error), QUERY_FAILED)
        nearest = did_you_mean(missing["table"], tables)
        names = f"Tables: {', '.join(tables)}"
        known = names if tables else "Name a directory of tables with --tables"
        fail(f"{missing[0]}{nearest} {known}")


def _table_format(path: Path) -> set[str]:
    """Return the format of a folder with a table's own state, or an empty set."""
    for folder, format in _TABLE_FORMATS.items():
        state = path / folder
        if state.is_dir() and (format != "iceberg" or any(state.glob("*.metadata.json*"))):
            return {format}
    return set()


def _formats(path: Path) -> set[str]:
    if path.name.startswith((".", "_")):
        return set()
    if path.is_dir():
        return {format for entry in path.iterdir() for format in _formats(entry)}
    match = _DATA_FILE.fullmatch(path.name)
    return {_FORMATS[match["extension"].lower()]} if match else set()
