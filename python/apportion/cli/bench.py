"""`apportion bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apportion._spark import jvm
from apportion._util import cache, figures
from apportion._util.paths import found
from apportion.bench import plot, report, suites, summary
from apportion.bench.environment import Environment
from apportion.bench.results import Conditions, Results, load, resume
from apportion.bench.runner import run_query, try_variants, warm_up
from apportion.bench.suites import Suite
from apportion.bench.summary import VariantSummary
from apportion.bench.variants import choose
from apportion.cli.support.console import QUERY_FAILED, err, fail, out
from apportion.cli.support.options import PlotFile
from apportion.cli.support.progress import counted, waiting
from apportion.cli.support.sources import read_queries
from apportion.cli.support.spark_session import Master, start
from apportion.cli.support.tables import find_tables, register
from apportion.errors import did_you_mean
from apportion.settings import parse_assignments

EXAMPLES = """\
Examples:

- `apportion bench tpch --scale 0.1 --queries 1,9,18`: some queries of TPC-H, on small data
- `apportion bench tpcds --check --plot tpcds.png`: all of TPC-DS, results compared, with a plot
- `apportion bench report.sql --tables data/`: your own queries, on your tables
- `apportion bench report.sql --tables data/ --plans`: whether a plan has changed as well
- `apportion bench skew --variants even,balanced`: two of the variants, the first is the baseline
- `apportion bench tpch --variant "small:data_volume_per_task=16MB"`: a variant of your own
- `apportion bench tpch --conf spark.default.parallelism=200`: as if the cluster were wide
- `apportion bench --from bench-tpch.json --plot tpch.svg`: show a result again
"""


# Queries that a session runs before it measures.
_WARMING_UP = 3


def bench(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="tpch|tpcds|skew|FILE|DIR...",
            help="A suite, or files of SQL queries, directories of them, or - for standard input.",
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Queries to run, by name or number. Default: all."),
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Size of a suite's tables; 1 is about 1 GB. Default: 1.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="A directory of parquet, csv or json tables, for your own queries."),
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="What to compare; the first is the baseline. Default: spark,spark-size,even,"
            "balanced.",
        ),
    ] = None,
    own_variants: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME:KEY=VALUE,...",
            help="One more variant: settings of Apportion, or Spark's by whole key. Repeatable.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Measured runs of each variant.")] = 3,
    warmups: Annotated[int, typer.Option(min=0, help="Runs before that, not measured.")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Compare each variant's results with the baseline's.")
    ] = False,
    plans: Annotated[
        bool,
        typer.Option("--plans", help="Compare each variant's plans with the baseline's as well."),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="Where all runs are kept. With what is there already, the benchmark goes on. "
            "Default: bench-SUITE.json.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, in place of going on with the file.")
    ] = False,
    plot_file: PlotFile = None,
    saved: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Show the result in a file, and run nothing."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Where generated tables are kept. Default: your cache.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the session, for all variants: Apportion's, or Spark's by whole "
            "key. Repeatable.",
        ),
    ] = None,
    master: Master = None,
) -> None:
    """Time queries with Spark's own rules and with Apportion, in turns, and compare.

    Each query runs under all variants, one after the other, before the next query does. Ratios
    above 1 are faster than the baseline, the first variant.

    Variants: spark (Apportion off), spark-size (also off, and Spark's coalescing goes by the
    advisory size alone), even and balanced (Apportion with ranges of either kind).

    A benchmark that was stopped goes on when the same command is given again.

    Exit codes: 0 all ran, 1 a query failed or had another result, 2 wrong usage.
    """
    if plot_file:
        figures.check(plot_file)
    if saved:
        if what:
            fail(f"--from shows what is in {saved}, and runs nothing: leave out {' '.join(what)}")
        results = load(saved)
        _show(results, plot_file)
        _fail_for_problems(results)
        return
    suite = _suite(what or [], scale, tables)
    conditions = Conditions(
        suite=suite.name,
        scale=suite.scale,
        tables=str(tables.resolve()) if tables else None,
        variants=choose(variants, own_variants or []),
        rounds=rounds,
        warmups=warmups,
        check=check,
        conf=suite.conf | parse_assignments(assignments or []),
        plans=plans,
    )
    if queries is not None:
        suite = suite.only(queries)
    file = json_file or Path(f"bench-{suite.name}.json")
    own = find_tables(tables) if tables else {}

    spark = start(master, [f"{key}={value}" for key, value in conditions.conf.items()])
    results = Results(conditions, Environment.of(spark))
    if not fresh:
        results = resume(file, results, suite.queries)
    try_variants(spark, conditions.variants)
    if suite.scale is not None:
        with waiting(f"Generating {suite.name} at scale {suite.scale:g}"), jvm.short_errors():
            own = find_tables(suites.generate_tables(spark, suite, data or cache.directory()))
    with waiting("Reading the tables' schemas"), jvm.short_errors():
        register(spark, own)

    if results.queries:
        done = ", ".join(results.queries)
        err.print(f"Going on with {file}, where these are done: {done}", markup=False)
    # Before the first query has run for minutes: the file may not be writable.
    results.save(file)
    left = [name for name in suite.queries if name not in results.queries]
    if conditions.warmups:
        with waiting("Warming up"):
            warm_up(spark, [suite.queries[name] for name in left[:_WARMING_UP]], conditions)
    for name in counted(left):
        results.queries[name] = run_query(spark, suite.queries[name], conditions)
        results.save(file)
    summaries = _show(results, plot_file)
    results.save(file, summary.as_json(results, summaries))
    out.print(f"All runs: {file}", markup=False, soft_wrap=True)
    _fail_for_problems(results)


def _suite(what: list[str], scale: float | None, tables: Path | None) -> Suite:
    known = ", ".join(suites.GENERATED)
    if not what:
        fail(f"say what to measure: a suite ({known}), or files of SQL")
    if len(what) == 1 and what[0] in suites.GENERATED:
        if tables:
            fail(f"--tables is for your own queries: the tables of {what[0]} are generated")
        return suites.generated(what[0], 1.0 if scale is None else scale)
    for path in what:
        if path in suites.GENERATED:
            fail(f"the suite {path} is measured alone, not with other suites or files")
        if path != "-" and not found(path):
            nearest = did_you_mean(path, suites.GENERATED)
            fail(f"there is no suite or file {path}.{nearest} Suites: {known}")
    if scale is not None:
        fail(f"--scale is for the suites, {known}: your own queries run on --tables")
    name = "stdin" if what[0] == "-" else Path(what[0]).resolve().stem
    return Suite(name, read_queries(what))


def _show(results: Results, plot_file: Path | None) -> list[VariantSummary]:
    """Print the tables, draw the plot if wanted, and return the summaries in them."""
    summaries = summary.summarise(results)
    out.print(report.queries_table(results))
    out.print(report.variants_table(summaries))
    if results.conditions.plans:
        out.print(report.plans_table(results))
    if plot_file:
        plot.draw(results, summaries, plot_file)
        err.print(f"Plot: {plot_file}", markup=False, soft_wrap=True)
    return summaries


def _fail_for_problems(results: Results) -> None:
    problems = list(report.problems(results))
    if problems:
        fail("\n".join(problems), QUERY_FAILED)
