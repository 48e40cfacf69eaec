"""Compare the plans of TPC-H and TPC-DS with and without Apportion.

    python -m measurements plans --scale 1

The raw file has the counts of each query. The sales and the inventory of TPC-DS are partitioned by
date, so that Spark prunes partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession

from apportion._util import cache
from apportion.bench import suites
from apportion.bench.environment import Environment
from apportion.bench.plans import FIELDS
from apportion.bench.results import Conditions, QueryResult, Results, resume
from apportion.bench.runner import run_query
from apportion.bench.suites import tpc
from apportion.bench.suites.generated import get_or_build
from apportion.bench.variants import Variant
from apportion.cli.support.console import QUERY_FAILED, fail
from apportion.cli.support.progress import counted, waiting
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import Table, find_tables, register
from apportion.settings import ENABLED
from measurements import raw

SUITES: dict[tpc.Benchmark, str] = {"tpch": "TPC-H", "tpcds": "TPC-DS"}
OFF, ON = Variant("off", {ENABLED: "false"}), Variant("on", {ENABLED: "true"})
CONF = {
    # With 4g, queries of TPC-DS that broadcast 1.9 million rows can fail: Spark frees the tables of
    # earlier queries late.
    "spark.driver.memory": "8g",
    "spark.sql.session.timeZone": "UTC",
}
PARTITIONED_BY = {
    "catalog_sales": "cs_sold_date_sk",
    "inventory": "inv_date_sk",
    "store_sales": "ss_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
}


def find_benchmark(
    spark: SparkSession, benchmark: tpc.Benchmark, scale: float, directory: Path
) -> dict[str, Table]:
    """Return the tables of a benchmark. The tables in `PARTITIONED_BY` are partitioned by date."""
    plain = tpc.generate(benchmark, scale, directory)
    tables = find_tables(plain)
    if benchmark == "tpcds":
        folder = plain.with_name(f"{plain.name}-partitioned")
        tables |= find_tables(get_or_build(folder, partial(_write_partitioned, spark, plain)))
    return tables


def _write_partitioned(spark: SparkSession, plain: Path, folder: Path) -> None:
    for name in counted(list(PARTITIONED_BY), "Partitioning"):
        key = PARTITIONED_BY[name]
        rows = spark.read.parquet(str(plain / f"{name}.parquet")).repartition(key)
        rows.write.partitionBy(key).parquet(str(folder / name))


def compare(spark: SparkSession, results: Results, queries: Mapping[str, str], file: Path) -> None:
    """Run the queries that are not in `results` yet, and save all results in `file`."""
    for name in counted([name for name in queries if name not in results.queries]):
        results.queries[name] = run_query(spark, queries[name], results.conditions)
        results.save(file)


def worse(result: QueryResult) -> list[str]:
    """Return the counts of a query that are worse with Apportion."""
    if not {OFF.name, ON.name} <= result.plans.keys():
        return []
    return result.plans[ON.name].worse(result.plans[OFF.name])


def is_safe(result: QueryResult) -> bool:
    """Return whether Apportion causes no failure, no different result and no worse count."""
    return (
        not worse(result)
        and not result.different
        and (ON.name not in result.failures or OFF.name in result.failures)
    )


def rows(results: Mapping[tpc.Benchmark, Results]) -> Iterator[raw.Row]:
    """Yield the counts of each query that runs on Spark, for Apportion off and on."""
    for benchmark, one in results.items():
        for name, result in one.queries.items():
            if OFF.name in result.failures:
                continue
            for variant in (OFF.name, ON.name):
                plan = result.plans.get(variant)
                yield {
                    "benchmark": SUITES[benchmark],
                    "query": name,
                    "apportion": variant,
                    **{key: getattr(plan, key) if plan else "" for key in FIELDS},
                    "result": _outcome(result, variant),
                }


def _outcome(result: QueryResult, variant: str) -> str:
    """Return the outcome of a variant: failed, different from Apportion off, or same."""
    if variant in result.failures:
        return f"failed: {result.failures[variant]}"
    return "different" if variant in result.different else "same"


def main(
    scale: raw.Scale = 1.0,
    benchmarks: raw.Benchmarks = "tpch,tpcds",
    queries: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Queries to run of each benchmark. Default: all."),
    ] = None,
    master: raw.Master = "local[*]",
    data: raw.Data = None,
    folder: raw.Folder = raw.FOLDER,
    kept: raw.Kept = raw.KEPT,
    fresh: raw.Fresh = False,
) -> None:
    """Compare the plans of each query with Apportion off and on.

    Exit codes: 0 if no plan is worse, 1 otherwise.
    """
    kept.mkdir(parents=True, exist_ok=True)
    spark = start(master, [f"{key}={value}" for key, value in CONF.items()])
    found: dict[tpc.Benchmark, Results] = {}
    for benchmark in SUITES:
        if benchmark not in benchmarks.split(","):
            continue
        suite = suites.generated(benchmark, scale)
        if queries is not None:
            suite = suite.only(queries)
        # There are no measured rounds: each query is collected once with Apportion off and on.
        conditions = Conditions(
            benchmark, scale, None, [OFF, ON], rounds=0, warmups=0, check=True, conf=CONF,
            plans=True,
        )  # fmt: skip
        results = Results(conditions, Environment.from_session(spark))
        keeps = kept / f"plans-{benchmark}-sf{scale:g}.json"
        if not fresh:
            results = resume(keeps, results, suite.queries)
        with waiting(f"Generating {benchmark} at scale {scale:g}"):
            tables = find_benchmark(spark, benchmark, scale, data or cache.directory())
        register(spark, tables)
        compare(spark, results, suite.queries, keeps)
        found[benchmark] = results
    about = raw.conditions(spark, "measured", scale=f"{scale:g}")
    raw.write("plans", about, list(rows(found)), folder)
    unsafe = [
        f"{SUITES[benchmark]} {name}: {', '.join(worse(result)) or result.failures or 'result'}"
        for benchmark, results in found.items()
        for name, result in results.queries.items()
        if not is_safe(result)
    ]
    if unsafe:
        fail("\n".join(["worse with Apportion:", *unsafe]), QUERY_FAILED)
