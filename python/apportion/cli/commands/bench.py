"""`apportion bench`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Annotated, Any

import typer

from apportion._spark import jvm
from apportion._util import cache, figures, parallel
from apportion._util.paths import existing_path
from apportion.bench import plot, report, suites, summary
from apportion.bench.environment import Environment
from apportion.bench.results import Conditions, Results, load, resume
from apportion.bench.runner import run_query, try_variants, warm_up
from apportion.bench.suites import Suite
from apportion.bench.summary import VariantSummary
from apportion.bench.variants import choose, memory_conf
from apportion.cli.support.console import QUERY_FAILED, err, fail, note, out, quiet
from apportion.cli.support.options import DataFolder, Force, Format, PlotFile, choose_format
from apportion.cli.support.outputs import check_outputs
from apportion.cli.support.progress import counted, stoppable, waiting
from apportion.cli.support.sources import list_sources, read_queries
from apportion.cli.support.spark_session import Master, set_option, start
from apportion.cli.support.table_files import find_tables, register
from apportion.errors import did_you_mean
from apportion.redaction import shown_value
from apportion.settings import parse_assignments

EXAMPLES = """\
More examples:

- `apportion bench tpch --scale 0.1 --queries 1,9,18`: run some queries of TPC-H on small data
- `apportion bench report.sql --tables data/`: run your own queries on your tables
- `apportion bench tpch --variant "small:data_volume_per_task=16MB"`: add your own variant
- `apportion bench tpch --memory 4g,1g,700m`: find out what tasks spill with less memory
- `apportion bench --from bench-tpch.json --plot tpch.svg`: show a saved result
"""


# Number of queries that run before the first measured query.
_WARMING_UP = 3


def bench_command(
    context: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="tpch|tpcds|skew|FILE|DIR...",
            help="A suite, or SQL files, directories of SQL files, or - for standard input.",
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Queries to run, by name or number. Default: all."),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Size of a suite's tables. Scale 1 is about 1 GB. Default: 1."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="Directory of parquet, csv or json tables for your own queries."),
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Variants to compare. The first is the baseline. Default: spark,spark-size,even,"
            "balanced.",
        ),
    ] = None,
    own_variants: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME:KEY=VALUE,...",
            help="Additional variant, with settings of Apportion or of Spark (full keys). "
            "Repeatable.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Measured runs per variant.")] = 3,
    warmups: Annotated[
        int, typer.Option(min=0, help="Runs per variant before the measured runs.")
    ] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the results of each variant with the baseline.")
    ] = False,
    plans: Annotated[
        bool,
        typer.Option("--plans", help="Compare the plans of each variant with the baseline."),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            "--json",
            metavar="FILE",
            help="File of all runs. If it exists, the benchmark continues. Default: "
            "bench-SUITE.json.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over and overwrite the file of runs.")
    ] = False,
    format: Format = "text",
    plot_file: PlotFile = None,
    force: Force = False,
    saved: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Show a saved result, and run nothing."),
    ] = None,
    data: DataFolder = None,
    assignments: Annotated[
        list[str] | None,
        set_option("Setting of Apportion or of Spark (full key) for all variants."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE,SIZE,...",
            help="Run the benchmark with each executor memory, such as 4g,1g,700m, and compare "
            "what tasks spill.",
        ),
    ] = None,
    master: Master = None,
) -> None:
    """Time queries with and without Apportion.

    Each query runs under all variants before the next query starts. A ratio above 1 is faster than
    the baseline, which is the first variant. Built-in variants:

    - *spark*: Apportion is off
    - *spark-size*: Apportion is off, and Spark coalesces by the advisory size only
    - *even*, *balanced*: Apportion with these ranges

    To continue a benchmark that was stopped, run the same command again.

    Exit codes: 0 all queries ran, 1 a query failed or its results differ, 2 wrong usage.
    """
    if plot_file:
        figures.check(plot_file)
    if json_file and json_file.suffix:
        # The file of the runs is always JSON.
        choose_format(None, json_file, ["json"])
    if saved:
        if what:
            fail(f"--from shows {saved} and runs nothing: leave out {' '.join(what)}")
        if ignored := _given(context, but=("saved", "plot_file", "format", "force")):
            fail(f"--from shows {saved} and runs nothing: leave out {', '.join(ignored)}")
        check_outputs("bench", [("--plot", plot_file)], [saved], force)
        results = load(saved)
        _show(results, plot_file, format)
        _fail_for_problems(results)
        return
    suite = _suite(what or [], scale, tables)
    is_own = suite.scale is None
    if is_own and data:
        fail("--data is only for the tables of suites: your own queries run on --tables")
    files = [name for path in what or [] for name in list_sources(path)] if is_own else []
    if queries is not None:
        suite = suite.only(queries)
    conf = suite.conf | parse_assignments(assignments or [])
    conditions = Conditions(
        suite=suite.name,
        scale=suite.scale,
        tables=str(tables.resolve()) if tables else None,
        variants=choose(variants, own_variants or []),
        rounds=rounds,
        warmups=warmups,
        check=check,
        conf={key: shown_value(key, value) for key, value in conf.items()},
        plans=plans,
    )
    # Fail before Spark starts.
    own = find_tables(tables) if tables else {}
    file = json_file or Path(f"bench-{suite.name}.json")
    job = _Job(suite, conditions, conf, file, master, data)
    memories = memory.lower().split(",") if memory is not None else []
    if repeated := [each for each in memories if memories.count(each) > 1]:
        fail(f"--memory has {repeated[0]} twice: write each size once")
    runs = [job.with_memory(each).file for each in memories] or [file]
    check_outputs(
        "bench",
        [*(("--output", each) for each in runs), ("--plot", plot_file)],
        [*files, *(table.path for table in own.values())],
        force,
    )
    if memories:
        if plot_file:
            fail("--plot draws one benchmark, and --memory runs several: leave out --plot")
        _sweep(job, memories, fresh, format)
        return
    results = _measure(job, fresh)
    if _ended(results):
        fail(f"Spark ended. Run the same command again to go on with {file}", QUERY_FAILED)
    summaries = _show(results, plot_file, format)
    results.save(file, summary.as_json(results, summaries))
    note(f"All runs: {file}")
    _fail_for_problems(results)


def _given(context: typer.Context, but: Collection[str]) -> list[str]:
    """Return the options of the command line, without those with the names in `but`."""
    return [
        option.opts[0]
        for option in context.command.params
        if option.name not in but
        and (source := context.get_parameter_source(option.name or ""))
        and source.name == "COMMANDLINE"
    ]


@dataclasses.dataclass(frozen=True)
class _Job:
    """A benchmark, and the file that keeps its runs."""

    suite: Suite
    conditions: Conditions
    conf: dict[str, str]
    """Conf of Spark, with the secrets that the conditions do not have."""
    file: Path
    master: str | None
    data: Path | None
    """Directory of the generated tables."""

    def with_memory(self, memory: str) -> _Job:
        conf = memory_conf(memory, self.master)
        conditions = dataclasses.replace(self.conditions, conf=self.conditions.conf | conf)
        return dataclasses.replace(
            self,
            conditions=conditions,
            conf=self.conf | conf,
            file=self.file.with_stem(f"{self.file.stem}-{memory}"),
        )


def _measure(job: _Job, fresh: bool) -> Results:
    """Run the queries that the file does not have, until Spark ends, and save each one there."""
    suite, conditions, file = job.suite, job.conditions, job.file
    own = find_tables(Path(conditions.tables)) if conditions.tables else {}
    spark = start(job.master, [f"{key}={value}" for key, value in job.conf.items()])
    results = Results(conditions, Environment.from_session(spark))
    if not fresh:
        results = resume(file, results, suite.queries)
    try_variants(spark, conditions.variants)
    if suite.scale is not None:
        stopped = "stopped while tables were generated. Run the same command again to start over"
        what = f"Generating {suite.name} at scale {suite.scale:g}"
        with stoppable(stopped), waiting(what), jvm.short_errors():
            own = find_tables(suites.generate_tables(spark, suite, job.data or cache.directory()))
    with waiting("Reading the tables' schemas"), jvm.short_errors():
        register(spark, own)

    ended = _ended(results)
    done = [name for name in results.queries if name not in ended]
    if done:
        err.print(
            f"Continuing {file}, which already has the queries {', '.join(done)}", markup=False
        )
    # Fail early if the file is not writable.
    results.save(file)
    left = [name for name in suite.queries if name not in done]
    # A query that ended Spark before could end it again, before its runs are measured.
    if conditions.warmups and not ended:
        stopped = "stopped while Spark warmed up. Run the same command again to go on"
        with stoppable(stopped), waiting("Warming up"):
            warm_up(spark, [suite.queries[name] for name in left[:_WARMING_UP]], conditions)
    for name in counted(left):
        failures = results.queries[name].failures if name in ended else {}
        with stoppable(
            f"stopped while query {name} ran. {file} has the queries before it: run the same "
            "command again to go on"
        ):
            results.queries[name] = run_query(spark, suite.queries[name], conditions, failures)
        results.save(file)
        if results.queries[name].spark_ended:
            break
    return results


def _sweep(job: _Job, memories: list[str], fresh: bool, format: str = "text") -> None:
    """Run the benchmark with each memory, in a process of its own as each needs another JVM."""
    results: dict[str, Results] = {}
    for memory in memories:
        err.print(f"Memory {memory}:", markup=False)
        results[memory] = _measure_apart(job.with_memory(memory), fresh)
        while ended := _ended(results[memory]):
            err.print(f"Spark ended while it ran query {ended[0]}. It starts again.", markup=False)
            before = results[memory]
            results[memory] = _measure_apart(job.with_memory(memory), fresh=False)
            if results[memory] == before:
                fail(f"with {memory}, Spark ends before it has run query {ended[0]}", QUERY_FAILED)
    if format == "json":
        by_memory = {memory: _as_json(measured) for memory, measured in results.items()}
        print(json.dumps(by_memory, indent=2))
    else:
        out.print(report.memory_table(results))
    files = ", ".join(str(job.with_memory(memory).file) for memory in memories)
    note(f"All runs: {files}")
    for measured in results.values():
        _fail_for_problems(measured)


def _measure_apart(job: _Job, fresh: bool) -> Results:
    rest = f"{job.file} has the queries that ran: run the same command again to go on"
    try:
        with stoppable(f"stopped. {rest}"):
            return parallel.in_process(_measure_quietly, job, fresh)
    except BrokenProcessPool:
        fail(f"the process that measures {job.file} was killed. {rest}", QUERY_FAILED)


def _measure_quietly(job: _Job, fresh: bool) -> Results:
    with quiet():
        return _measure(job, fresh)


def _ended(results: Results) -> list[str]:
    """Return the queries whose other variants have to run again, because Spark ended."""
    return [name for name, query in results.queries.items() if query.spark_ended]


def _suite(what: list[str], scale: float | None, tables: Path | None) -> Suite:
    known = ", ".join(suites.GENERATED)
    if not what:
        fail(f"name a suite ({known}) or SQL files")
    if len(what) == 1 and what[0] in suites.GENERATED:
        if tables:
            fail(f"--tables is only for your own queries: the tables of {what[0]} are generated")
        return suites.generated(what[0], 1.0 if scale is None else scale)
    for path in what:
        if path in suites.GENERATED:
            fail(f"the suite {path} cannot be combined with other suites or files")
        if path != "-" and not existing_path(path):
            nearest = did_you_mean(path, suites.GENERATED)
            fail(f"there is no suite or file {path}.{nearest} Suites: {known}")
    if scale is not None:
        fail(f"--scale is only for the suites {known}: your own queries run on --tables")
    name = "stdin" if what[0] == "-" else Path(what[0]).resolve().stem
    return Suite(name, read_queries(what))


def _as_json(results: Results) -> dict[str, Any]:
    return summary.as_json(results, summary.summarise(results))


def _show(results: Results, plot_file: Path | None, format: str) -> list[VariantSummary]:
    """Print the tables, draw the plot if `plot_file` is given, and return the summaries."""
    summaries = summary.summarise(results)
    if format == "json":
        print(json.dumps(_as_json(results), indent=2))
    else:
        out.print(report.queries_table(results))
        out.print(report.variants_table(summaries))
    if results.conditions.plans and format == "text":
        out.print(report.plans_table(results))
    if plot_file:
        plot.draw(results, summaries, plot_file)
        note(f"Plot: {plot_file}")
    return summaries


def _fail_for_problems(results: Results) -> None:
    problems = list(report.problems(results))
    if problems:
        fail("\n".join(problems), QUERY_FAILED)
