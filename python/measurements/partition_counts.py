"""Measure the cost of too many or too few shuffle partitions.

    python python/measurements/partition_counts.py docs/partition-counts.md

runs queries on Spark with fixed numbers of shuffle partitions and its default coalescing, and on
Apportion with adaptive writes. The runs alternate in one session. Spark's default of 200 is the
baseline.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion._util import cache, figures
from apportion._util.units import count_text
from apportion.bench import suites, summary
from apportion.bench.environment import Environment
from apportion.bench.results import Conditions, Results, resume
from apportion.bench.runner import run_query, warm_up
from apportion.bench.suites import Suite
from apportion.bench.summary import VariantSummary
from apportion.bench.variants import Variant
from apportion.cli.support.console import err
from apportion.cli.support.progress import counted, waiting
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.errors import ApportionError, did_you_mean
from apportion.settings import ENABLED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PARTITIONS = "spark.sql.shuffle.partitions"
_NO_BYPASS = {"spark.shuffle.sort.bypassMergeThreshold": "1"}
DEFAULT = 200
COUNTS = (8, 16, 32, 64, 100, 128, 150, 201, 256, 512, 1024, 2000, 2048)
CHOSEN = "Apportion"
CSV = "measurements/partition-counts.csv"
_SHOWN = {8, 32, 64, 128, 256, 512, 1024, 2048}
_COLUMNS = (
    "part", "partitions", "speedup", "low", "high", "worst_query", "its_speedup", "reduce_tasks",
    "blocks",
)  # fmt: skip
# 12 million rows in groups of 3, so that a partial aggregate does not remove many rows.
_ROWS, _GROUPS = 12_000_000, 4_000_000


@dataclasses.dataclass(frozen=True)
class Part:
    """Queries that are measured in one session."""

    name: str
    title: str
    suite: Callable[[], Suite]
    conf: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rounds: int = 3
    warmups: int = 1
    """Runs of each query with each number, before the measured runs."""


def _tpch(scale: float, queries: str) -> Callable[[], Suite]:
    return lambda: suites.generated("tpch", scale).only(queries)


def _range(maps: int, rows: int = _ROWS) -> Callable[[], Suite]:
    groups = max(1, rows * _GROUPS // _ROWS)
    aggregate = f"""\
SELECT count(*) AS n, max(total) AS most
FROM (
  SELECT id % {groups} AS key, sum(id) AS total
  FROM range(0, {rows}, 1, {maps})
  GROUP BY key
)"""
    # There is no aggregate before the shuffle, so Spark can write it without sorting.
    rows_only = f"""\
SELECT count(*) AS n, max(place) AS most
FROM (
  SELECT row_number() OVER (PARTITION BY id % {groups} ORDER BY id) AS place
  FROM range(0, {max(1, rows // 4)}, 1, {maps})
)"""
    queries = {"aggregate": aggregate, "window": rows_only}
    return lambda: Suite(f"range-{maps}", queries, {"spark.driver.memory": "4g"})


PARTS = [
    Part("tpch-1", "TPC-H at scale factor 1", _tpch(1, "3,5,9,13,18,21")),
    # A run takes half a minute or more, so only the baseline warms up, once.
    Part("tpch-10", "TPC-H at scale factor 10", _tpch(10, "3,18"), rounds=1, warmups=0),
    Part("maps-400", "400 map tasks", _range(400), rounds=2, warmups=0),
    Part(
        "maps-400-no-bypass",
        "400 map tasks, no bypass",
        _range(400),
        _NO_BYPASS,
        rounds=2,
        warmups=0,
    ),
    # For a quick test of this program.
    Part("trial", "Trial", _range(20, 10_000)),
]
_LEFT_OUT = ("trial",)


def variants() -> list[Variant]:
    """Return the variants: Spark's default (the baseline), Spark's fixed numbers, Apportion."""
    fixed = [
        Variant(str(count), {ENABLED: "false", _PARTITIONS: str(count)})
        for count in (DEFAULT, *COUNTS)
    ]
    return [*fixed, Variant(CHOSEN, {ENABLED: "true"})]


def measure(
    part: Part, rounds: int | None, master: str, data: Path, file: Path, until: float
) -> Results:
    """Measure the queries of a part that are not in `file` yet, and save them in `file`.

    If `rounds` is None, the part's own number applies. No query starts after the time `until`.
    """
    suite = part.suite()
    conf = {**suite.conf, **part.conf}
    spark = start(master, [f"{key}={value}" for key, value in conf.items()])
    try:
        conditions = Conditions(
            part.name,
            suite.scale,
            None,
            variants(),
            rounds or part.rounds,
            warmups=part.warmups,
            check=False,
            conf=conf,
        )
        results = resume(file, Results(conditions, Environment.from_session(spark)), suite.queries)
        if suite.scale is not None:
            with waiting(f"Generating {suite.name} at scale {suite.scale:g}"):
                register(spark, find_tables(suites.generate_tables(spark, suite, data)))
        left = [name for name in suite.queries if name not in results.queries]
        if left and time.time() < until:
            with waiting("Warming up"):
                warming = conditions.variants if part.warmups else conditions.variants[:1]
                warm_up(
                    spark,
                    [suite.queries[left[0]]],
                    dataclasses.replace(conditions, variants=warming),
                )
        for name in counted(left, f"{part.name}: query"):
            if time.time() >= until:
                err.print(f"{part.name}: time limit reached before query {name}", markup=False)
                break
            results.queries[name] = run_query(spark, suite.queries[name], conditions)
            results.save(file)
    finally:
        spark.stop()
    return results


def page(results: Mapping[str, Results], picture: str) -> str:
    """Return the results of the parts as a Markdown page."""
    return "\n".join(_page(results, picture)) + "\n"


def _page(results: Mapping[str, Results], picture: str) -> Iterator[str]:
    on = next(iter(results.values())).environment
    yield "# Numbers of shuffle partitions"
    yield ""
    yield (
        f"This page compares Spark's default of {DEFAULT} shuffle partitions with other numbers, "
        "and with Apportion's adaptive writes."
    )
    yield ""
    yield f"![Speedup by the number of shuffle partitions, with Apportion as a line.]({picture})"
    yield ""
    yield (
        f"A speedup is the time with {DEFAULT} partitions divided by the time with the number. It "
        "is the geometric mean over the queries."
    )
    yield ""
    shown = [str(count) for count in COUNTS if count in _SHOWN]
    yield f"| queries | {' | '.join(shown)} | Apportion (95 %) | its worst query |"
    yield f"| --- | {'---: | ' * len(shown)}---: | ---: |"
    for part in PARTS:
        if found := _summaries(results.get(part.name)):
            speedups = " | ".join(f"{found[name].faster.value:.2f}" for name in shown)
            chosen = found[CHOSEN]
            worst = f"{chosen.worst_query}: {chosen.worst_ratio:.2f}"
            yield f"| {part.title} | {speedups} | {chosen.faster} | {worst} |"
    yield ""
    yield (
        f"[All numbers]({CSV}) have 95 % intervals, if there are enough rounds of queries. If an "
        "interval contains 1, the difference is not significant."
    )
    yield ""
    yield from _WHAT_FOLLOWS
    yield ""
    yield "## Conditions"
    yield ""
    yield f"- Spark {on.spark}, {on.master}, {on.cores} cores, Java {on.java}."
    yield "- Fixed numbers ran with Apportion off. Spark coalesced partitions as by default."
    for part in PARTS:
        if part.name in results:
            yield f"- {_conditions(part, results[part.name])}"
    yield "- `make measure-partition-counts` writes this page."
    for part in PARTS:
        if part.name in results:
            yield from _failures(results[part.name])


_WHAT_FOLLOWS = (
    "## How Apportion uses this",
    "",
    "- Few partitions are the fastest, because map tasks write few blocks.",
    "- Up to `spark.shuffle.sort.bypassMergeThreshold` (200), each map task writes one file per "
    "partition. Numbers from about 100 to 200 are the slowest of all.",
    "- With adaptive writes, map tasks write few blocks for any number of partitions.",
    "",
    "[How the number of partitions is decided](adaptive-writes.md) explains adaptive writes.",
)


def _conditions(part: Part, results: Results) -> str:
    of = results.conditions
    settings = ", ".join(f"`{key}={value}`" for key, value in of.conf.items())
    rough = " One run for each number is rough." if of.rounds == 1 else ""
    return (
        f"{part.title}: queries {', '.join(results.queries)}; {count_text(of.rounds, 'round')}; "
        f"{settings}.{rough}"
    )


def results_csv(results: Mapping[str, Results]) -> str:
    """Return a line for each part and number: the speedup with its interval, tasks and blocks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for part in PARTS:
        found = _summaries(results.get(part.name))
        for name in sorted(found, key=lambda each: int(each) if each.isdecimal() else 0):
            each = found[name]
            is_baseline = name == str(DEFAULT)
            bounds = [f"{bound:.2f}" for bound in each.faster.interval or ()] or ["", ""]
            worst = ("", "") if is_baseline else (each.worst_query, f"{each.worst_ratio:.2f}")
            row = [part.name, name, f"{each.faster.value:.2f}", *bounds, *worst]
            writer.writerow([*row, each.reduce_tasks, each.blocks_written])
    return text.getvalue()


def _failures(results: Results) -> Iterator[str]:
    for name, result in results.queries.items():
        for variant, error in result.failures.items():
            yield f"- Query {name} failed with {variant}: {error}"


def _summaries(results: Results | None) -> dict[str, VariantSummary]:
    summaries = summary.summarise(results) if results else []
    return {each.variant: each for each in summaries}


def draw(results: Mapping[str, Results], file: Path) -> None:
    """Draw a panel for each part: the ratio of each fixed number, and a line for Apportion."""
    measured = [part for part in PARTS if _summaries(results.get(part.name))]
    if not measured:
        raise ApportionError("no query ran with every number of partitions: nothing to draw")
    figure = figures.figure()
    rows = (len(measured) + 1) // 2
    figure.set_size_inches(10, 1 + 3 * rows)
    panels = list(figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).flat)
    for part, axes in zip(measured, panels, strict=False):
        _draw(axes, part.title, _summaries(results[part.name]))
    for axes in panels[len(measured) :]:
        axes.set_visible(False)
    figure.supxlabel("spark.sql.shuffle.partitions, log scale")
    figure.supylabel(f"times faster than with {DEFAULT}")
    figures.save(figure, file)


def _draw(axes: Axes, title: str, found: Mapping[str, VariantSummary]) -> None:
    counts = sorted([DEFAULT, *COUNTS])
    values = [found[str(count)].faster for count in counts]
    axes.errorbar(
        counts,
        [each.value for each in values],
        yerr=list(zip(*(each.bars for each in values), strict=True)),
        fmt="o-",
        markersize=4,
        linewidth=1,
        label="Spark, fixed number",
    )
    chosen = found[CHOSEN].faster
    axes.axhline(chosen.value, color="C1", linestyle="--", label=CHOSEN)
    if chosen.interval:
        axes.axhspan(*chosen.interval, color="C1", alpha=0.15, linewidth=0)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title(title, fontsize="medium")
    axes.grid(linewidth=0.3)
    axes.legend(fontsize="small")


def choose(names: str | None) -> list[Part]:
    """Return the parts with these comma-separated names; None means all except the trial."""
    known = {part.name: part for part in PARTS}
    if names is None:
        return [part for part in PARTS if part.name not in _LEFT_OUT]
    for name in names.split(","):
        if name not in known:
            raise ApportionError(
                f"unknown part {name!r}.{did_you_mean(name, known)} Parts: {', '.join(known)}"
            )
    return [known[name] for name in names.split(",")]


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    parts: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Parts to measure: {', '.join(part.name for part in PARTS)}. Default: all except "
            "trial.",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Measured runs per number. Default: 1 to 3, depends on the part."),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(help="Start no query after this time. To continue, run the program again."),
    ] = 120,
    picture: Annotated[
        Path | None,
        typer.Option(help="Plot to write. Default: pictures/partition-counts.png beside FILE."),
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
    """Measure queries with fixed numbers of shuffle partitions and with Apportion."""
    chosen = choose(parts)
    drawn = picture or file.parent / "pictures" / "partition-counts.png"
    drawn.parent.mkdir(parents=True, exist_ok=True)
    figures.check(drawn)
    kept.mkdir(parents=True, exist_ok=True)
    until = time.time() + 60 * minutes
    results: dict[str, Results] = {}
    for part in chosen:
        keeps = kept / f"partition-counts-{part.name}.json"
        if fresh:
            keeps.unlink(missing_ok=True)
        results[part.name] = measure(part, rounds, master, data or cache.directory(), keeps, until)
    results = {name: each for name, each in results.items() if each.queries}
    if not results:
        raise ApportionError("no query was measured: increase --minutes")
    draw(results, drawn)
    file.write_text(page(results, f"{drawn.parent.name}/{drawn.name}"), "utf-8")
    (file.parent / CSV).parent.mkdir(parents=True, exist_ok=True)
    (file.parent / CSV).write_text(results_csv(results), "utf-8")


if __name__ == "__main__":
    typer.run(main)
