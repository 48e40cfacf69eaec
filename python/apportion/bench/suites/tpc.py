"""TPC-H and TPC-DS: the tables, made by DuckDB's generators, and the queries in Spark's dialect."""

from __future__ import annotations

import importlib.resources
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from apportion._util.cache import made_once
from apportion.errors import ApportionError

if TYPE_CHECKING:
    import duckdb

Benchmark = Literal["tpch", "tpcds"]

_GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def generate(benchmark: Benchmark, scale: float, directory: Path) -> Path:
    """Make the benchmark's tables and return their folder, `<directory>/<benchmark>-sf<scale>`.

    The folder holds one `<table>.parquet` file per table. `scale` is the benchmark's scale factor:
    about that many GB as text. A folder that is already there is used as it is.

    Raises `ApportionError` when DuckDB is not installed or the scale is not above 0.
    """
    check_scale(scale)
    return made_once(
        directory / f"{benchmark}-sf{scale:g}", partial(_write_tables, benchmark, scale)
    )


def check_scale(scale: float) -> None:
    """Raise `ApportionError` when a scale is not above 0."""
    if not scale > 0:
        raise ApportionError(f"scale is {scale}: it must be above 0, for example 0.1")


def queries(benchmark: Benchmark) -> dict[int, str]:
    """Return the benchmark's queries by number (22 or 99), in Spark's dialect, without the `;`.

    Raises `ApportionError` when DuckDB is not installed.
    """
    with _connect(benchmark) as connection:
        rows = connection.execute(f"SELECT query_nr, query FROM {benchmark}_queries()").fetchall()
    # Quoted column names are all that DuckDB's texts have and Spark does not read.
    return {number: text.strip().rstrip(";").replace('"', "`") for number, text in rows}


def _write_tables(benchmark: Benchmark, scale: float, folder: Path) -> None:
    # A database on disk: the tables may be larger than memory.
    with _connect(benchmark, folder.parent / "generated.duckdb") as connection:
        connection.execute(f"CALL {_GENERATORS[benchmark]}(sf = {scale!r})")
        names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        for (name,) in names:
            connection.execute(f"COPY {name} TO '{_quoted(folder / name)}.parquet'")


def _connect(benchmark: Benchmark, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    if benchmark not in _GENERATORS:
        raise ApportionError(f"unknown benchmark {benchmark!r}: tpch and tpcds are known")
    try:
        import duckdb

        package = importlib.resources.files(f"duckdb_extension_{benchmark}")
    except ModuleNotFoundError as missing:
        raise ApportionError(
            f"the Python package {missing.name} is needed to generate {benchmark} and is not "
            "installed: pip install 'apportion[spark,demo]'"
        ) from missing
    # From the package's own file, because DuckDB's INSTALL would download it.
    extension = package / f"extensions/v{duckdb.__version__}/{benchmark}.duckdb_extension"
    if not extension.is_file():
        raise ApportionError(
            f"the package duckdb_extension_{benchmark} has nothing for duckdb "
            f"{duckdb.__version__} ({extension}): install both in the same version, "
            "pip install 'apportion[spark,demo]'"
        )
    connection = duckdb.connect(
        str(database or ":memory:"), config={"allow_unsigned_extensions": "true"}
    )
    connection.execute(f"LOAD '{_quoted(Path(str(extension)))}'")
    return connection


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
