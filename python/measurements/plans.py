"""Compare the plans of TPC-H and TPC-DS with and without Apportion.

    python python/measurements/plans.py docs/plan-safety.md --scale 1

writes a page with the totals and the changed queries, and `measurements/plan-safety.csv` beside it
with all queries. The sales and the inventory of TPC-DS are partitioned by date, so that Spark
prunes partitions.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion._util import cache
from apportion.bench import suites
from apportion.bench.environment import Environment
from apportion.bench.plans import FIELDS, PlanCounts, is_worse
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
CSV = "measurements/plan-safety.csv"
"""File with all queries, relative to the folder of the page."""


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


def page(results: Mapping[tpc.Benchmark, Results]) -> str:
    """Return the totals and the changed queries as a page of Markdown."""
    return "\n".join(_page(results)) + "\n"


def _page(results: Mapping[tpc.Benchmark, Results]) -> Iterator[str]:
    queries = [each for one in results.values() for each in one.queries.values()]
    ran = [each for each in queries if OFF.name not in each.failures]
    safe = [each for each in ran if is_safe(each)]
    any_results = next(iter(results.values()))
    on, scale = any_results.environment, any_results.conditions.scale
    yield "# Plan safety"
    yield ""
    yield (
        f"{len(safe)} of {len(ran)} queries have the same result with Apportion, and no count of "
        "their plans is worse."
    )
    yield ""
    yield (
        f"Each query of {' and '.join(SUITES[name] for name in results)} ran at scale factor "
        f"{scale:g} with Apportion off and on (Spark {on.spark}, {on.master}, {on.cores} cores). "
        "The counts come from"
    )
    yield (
        "the final adaptive plan of a query that has run, including its subqueries. The sales and "
        "the inventory of TPC-DS are partitioned by date."
    )
    yield f"`make measure-plans SF={scale:g}` writes this page."
    if failed := len(queries) - len(ran):
        yield ""
        yield f"Spark itself does not run {failed} of the queries. They are left out."
    yield ""
    yield (
        "A cell with one number is the same in both plans. `3 → 2` is off → on. A worse cell is "
        "bold. Worse means:"
    )
    yield ""
    yield "- more exchanges, shuffled joins, files, partitions or scan stages"
    yield "- fewer reused exchanges, broadcast joins, dynamic filters or reused subqueries"
    yield ""
    yield (
        "The number of tasks is neither good nor bad. A dynamic filter takes the partitions to "
        "read from the other side of a join."
    )
    yield ""
    yield "## All queries together"
    yield ""
    yield from _head("queries")
    for benchmark, one in results.items():
        of_suite = _ran(one)
        yield f"| {SUITES[benchmark]}: {len(of_suite)} | {_row(_total(of_suite))} |"
    yield ""
    yield f"[{Path(CSV).name}]({CSV}) has the counts of each query."
    changed = [
        f"| {SUITES[benchmark]} {name} | {_row(result)} |"
        for benchmark, one in results.items()
        for name, result in _ran(one).items()
        if _is_changed(result)
    ]
    if changed:
        yield ""
        yield "## Queries with a change"
        yield ""
        yield from _head("query")
        yield from changed


def _head(first: str) -> Iterator[str]:
    yield f"| {first} | {' | '.join(text.lower() for text in FIELDS.values())} | result |"
    yield f"| --- |{' ---: |' * len(FIELDS)} --- |"


def _ran(results: Results) -> dict[str, QueryResult]:
    """Return the queries that ran without Apportion."""
    return {name: each for name, each in results.queries.items() if OFF.name not in each.failures}


def _is_changed(result: QueryResult) -> bool:
    return not is_safe(result) or result.plans[OFF.name] != result.plans[ON.name]


def counts_csv(results: Mapping[tpc.Benchmark, Results]) -> str:
    """Return the counts of each query as CSV, with one line for Apportion off and one for on."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["benchmark", "query", "apportion", *FIELDS, "result"])
    for benchmark, one in results.items():
        for name, result in _ran(one).items():
            for variant in (OFF.name, ON.name):
                plan = result.plans.get(variant)
                counts = [getattr(plan, key) if plan else "" for key in FIELDS]
                outcome = _outcome(result, variant)
                writer.writerow([SUITES[benchmark], name, variant, *counts, outcome])
    return text.getvalue()


def _outcome(result: QueryResult, variant: str) -> str:
    """Return the outcome of a variant: failed, different from Apportion off, or same."""
    if variant in result.failures:
        return f"failed: {result.failures[variant]}"
    return "different" if variant in result.different else "same"


def _row(result: QueryResult) -> str:
    if ON.name in result.failures:
        cells = [""] * len(FIELDS)
        return " | ".join([*cells, f"**failed**: {result.failures[ON.name]}"])
    before, after = result.plans[OFF.name], result.plans[ON.name]
    cells = [_cell(key, getattr(before, key), getattr(after, key)) for key in FIELDS]
    return " | ".join([*cells, "**different**" if result.different else "same"])


def _cell(key: str, before: int, after: int) -> str:
    if before == after:
        return f"{before:,}"
    text = f"{before:,} → {after:,}"
    return f"**{text}**" if is_worse(key, before, after) else text


def _total(queries: Mapping[str, QueryResult]) -> QueryResult:
    """Return the sums of the plans of queries that ran both ways, as if they were one query."""
    both = [each for each in queries.values() if not each.failures]
    different = sorted({name for each in both for name in each.different})
    plans = {
        variant.name: PlanCounts(
            **{key: sum(getattr(each.plans[variant.name], key) for each in both) for key in FIELDS}
        )
        for variant in (OFF, ON)
    }
    return QueryResult("", different=different, plans=plans)


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    scale: Annotated[float, typer.Option(help="Scale factor of the tables.")] = 1.0,
    benchmarks: Annotated[
        str, typer.Option(help="Benchmarks to run: tpch, tpcds or both.")
    ] = "tpch,tpcds",
    queries: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Queries to run of each benchmark. Default: all."),
    ] = None,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    data: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the generated tables. Default: apportion in your cache directory."
        ),
    ] = None,
    kept: Annotated[
        Path,
        typer.Option(help="Directory of the results. A stopped run continues from these results."),
    ] = Path("target/measurements"),
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Start over, for example with a new build of Apportion."),
    ] = False,
) -> None:
    """Compare the plans of each query with Apportion off and on, and write the page and the CSV.

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
    file.write_text(page(found), "utf-8")
    (file.parent / CSV).parent.mkdir(exist_ok=True)
    (file.parent / CSV).write_text(counts_csv(found), "utf-8")
    unsafe = [
        f"{SUITES[benchmark]} {name}: {', '.join(worse(result)) or result.failures or 'result'}"
        for benchmark, results in found.items()
        for name, result in results.queries.items()
        if not is_safe(result)
    ]
    if unsafe:
        fail("\n".join(["worse with Apportion:", *unsafe]), QUERY_FAILED)


if __name__ == "__main__":
    typer.run(main)
