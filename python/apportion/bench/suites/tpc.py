"""TPC-H and TPC-DS: tables from DuckDB's generators, and queries in Spark's dialect."""

from __future__ import annotations

import importlib.resources
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from apportion._util.parallel import in_process
from apportion.bench.suites.generated import get_or_build
from apportion.errors import ApportionError

if TYPE_CHECKING:
    import duckdb

Benchmark = Literal["tpch", "tpcds"]

_GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}
# The largest scale factor of the benchmarks' rules.
_MOST_SCALE = 100_000
# Tables as parquet, and DuckDB's file with the same rows while they are generated.
_BYTES_PER_SCALE = 600_000_000


def generate(benchmark: Benchmark, scale: float, directory: Path) -> Path:
    """Generate the tables and return their folder `<directory>/<benchmark>-sf<scale>`.

    The folder has one `<table>.parquet` file per table. `scale` is the benchmark's scale factor;
    scale 1 is about 1 GB as text. An existing folder is used without changes.

    Raises `ApportionError` if DuckDB is not installed, if the disk has not enough space, and for a
    scale that `check_scale` refuses.
    """
    check_scale(scale)
    return get_or_build(
        directory / f"{benchmark}-sf{scale:g}",
        partial(_write_tables, benchmark, scale),
        round(_BYTES_PER_SCALE * scale),
    )


def check_scale(scale: float) -> None:
    """Raise `ApportionError` unless `scale` is above 0, and at most 100,000."""
    if not 0 < scale <= _MOST_SCALE:
        raise ApportionError(
            f"scale is {scale:g}: allowed is above 0, up to {_MOST_SCALE:,}, for example 0.1"
        )


def queries(benchmark: Benchmark) -> dict[int, str]:
    """Return the benchmark's 22 or 99 queries by number, in Spark's dialect, without the `;`.

    Raises `ApportionError` if DuckDB is not installed.
    """
    with _connect(benchmark) as connection:
        rows = connection.execute(f"SELECT query_nr, query FROM {benchmark}_queries()").fetchall()
    # DuckDB's texts differ from Spark's dialect only in the quotes around column names.
    return {number: text.strip().rstrip(";").replace('"', "`") for number, text in rows}


def _write_tables(benchmark: Benchmark, scale: float, folder: Path) -> None:
    _connect(benchmark).close()
    # Ctrl-C would crash DuckDB's generators, or wait for them. A process of their own can be ended.
    try:
        in_process(_generate_tables, benchmark, scale, folder)
    except BrokenProcessPool as error:
        raise ApportionError(
            f"cannot generate {benchmark} at scale {scale:g}: the process of the generator was "
            "killed, for example for its memory. Choose a smaller --scale"
        ) from error


def _generate_tables(benchmark: Benchmark, scale: float, folder: Path) -> None:
    # Use a database on disk, because the tables may be larger than memory.
    with _connect(benchmark, folder.parent / "generated.duckdb") as connection:
        import duckdb

        try:
            _copy_tables(connection, benchmark, scale, folder)
        except duckdb.Error as error:
            # The cause has a class that the other process may not be able to load.
            reason = str(error).splitlines()[0]
            raise ApportionError(
                f"cannot generate {benchmark} at scale {scale:g}: {reason}"
            ) from None


def _copy_tables(
    connection: duckdb.DuckDBPyConnection, benchmark: Benchmark, scale: float, folder: Path
) -> None:
    connection.execute(f"CALL {_GENERATORS[benchmark]}(sf = {scale!r})")
    names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    for (name,) in names:
        connection.execute(f"COPY {name} TO '{_quoted(folder / name)}.parquet'")


def _connect(benchmark: Benchmark, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    if benchmark not in _GENERATORS:
        raise ApportionError(f"unknown benchmark {benchmark!r}: allowed are tpch and tpcds")
    try:
        import duckdb

        package = importlib.resources.files(f"duckdb_extension_{benchmark}")
    except ModuleNotFoundError as missing:
        raise ApportionError(
            f"{benchmark} needs the Python package {missing.name}, which is not installed: "
            "pip install 'apportion[spark,demo]'"
        ) from missing
    # Load the extension from the package, because DuckDB's INSTALL would download it.
    extension = package / f"extensions/v{duckdb.__version__}/{benchmark}.duckdb_extension"
    if not extension.is_file():
        raise ApportionError(
            f"the package duckdb_extension_{benchmark} has no extension for duckdb "
            f"{duckdb.__version__} ({extension}): install the same version of both with "
            "pip install 'apportion[spark,demo]'"
        )
    connection = duckdb.connect(
        str(database or ":memory:"), config={"allow_unsigned_extensions": "true"}
    )
    connection.execute(f"LOAD '{_quoted(Path(str(extension)))}'")
    return connection


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
