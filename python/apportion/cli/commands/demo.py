"""`apportion demo`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

from apportion._spark import jvm
from apportion._spark.jvm import short_errors
from apportion._util import cache
from apportion._util.tables import FittedTable
from apportion._util.units import size_text
from apportion.bench import measure
from apportion.bench.measure import Comparison
from apportion.bench.suites import skew, tpc
from apportion.cli.support.console import QUERY_FAILED, fail, out
from apportion.cli.support.options import DataFolder
from apportion.cli.support.progress import query_progress, stoppable, waiting
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.table_files import find_tables, register
from apportion.errors import ApportionError
from apportion.session import confs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS = 2
# Query 6 has no shuffle to decide, so it shows what planning costs.
_DEFAULT_QUERIES = "3,6,18"
# A query of the suite `skew`, and its tables: Spark leaves its heaviest keys to one task each.
_SKEWED = {"skewed join": "hot-join"}
_SKEWED_TABLES = ("hot", "keys")
_MANY_MAP_TASKS = """\
SELECT count(*) AS visitors, max(visits) AS most
FROM (SELECT id * 7 AS visitor, count(*) AS visits FROM range(0, 1000000, 1, 100) GROUP BY visitor)
"""
# A ratio nearer to 1 is noise: times of queries below a second differ by this much.
_NOISE = 1.1
_EXPLAINED = 2
# The skewed tables at scale 1 take as long to generate as TPC-H at this scale factor.
_SCALE_OF_SKEW_1 = 0.1


def demo_command(
    scale: Annotated[
        float, typer.Option(help="TPC-H scale factor. Scale 1 is about 1 GB as text.")
    ] = 0.1,
    queries: Annotated[
        str, typer.Option(metavar="N,N,...", help="TPC-H queries to run, from 1 to 22.")
    ] = _DEFAULT_QUERIES,
    data: DataFolder = None,
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Run queries on generated data with and without Apportion.

    There is an aggregate with 100 map tasks, and a join on skewed keys with a target of 4 MiB per
    task. The others are queries of TPC-H. Each runs twice each way, alternating, and the faster run
    counts. The results must be equal.

    Exit codes: 0 all queries ran, 1 a query failed or its results differ, 2 wrong usage.
    """
    numbers = _numbers(queries)
    folder = data or cache.directory()
    with (
        stoppable("stopped while tables were generated. Run the same command again to start over"),
        waiting(f"Generating TPC-H at scale factor {scale:g}"),
    ):
        tables = tpc.generate("tpch", scale, folder)
    texts = tpc.queries("tpch")
    spark = start(master, assignments or [])
    with short_errors():
        jvm.watch_stages(spark)
        with waiting("Generating skewed tables"):
            skewed = skew.generate(
                spark, min(1.0, scale / _SCALE_OF_SKEW_1), folder, _SKEWED_TABLES
            )
        register(spark, find_tables(tables))
        register(spark, find_tables(skewed))
        with query_progress(spark, "Warming up"):
            measure.run(spark, texts[numbers[0]])
        compared = _compare(spark, {"100 map tasks": _MANY_MAP_TASKS})
        with confs(spark, skew.CONF):
            compared |= _compare(spark, {name: skew.queries()[q] for name, q in _SKEWED.items()})
        compared |= _compare(spark, {f"TPC-H {number}": texts[number] for number in numbers})
    out.print(_table(compared))
    out.print(_verdict(compared))
    _explain(compared)
    _next_steps(tables)
    different = [name for name, each in compared.items() if not each.equal]
    if different:
        fail(f"results differ in query {', '.join(different)}", QUERY_FAILED)


def _compare(spark: SparkSession, queries: Mapping[str, str]) -> dict[str, Comparison]:
    comparisons: dict[str, Comparison] = {}
    for done, (name, sql) in enumerate(queries.items()):
        stopped = f"stopped while query {name} ran. Run the same command again: it has its tables"
        what = f"Query {name} ({done + 1} of {len(queries)})"
        with stoppable(stopped), query_progress(spark, what):
            comparisons[name] = measure.compare(spark, sql, _ROUNDS)
    return comparisons


def _numbers(text: str) -> list[int]:
    numbers = [int(number) if number.strip().isdecimal() else 0 for number in text.split(",")]
    if not all(1 <= number <= 22 for number in numbers):
        raise ApportionError(f"--queries {text}: write numbers from 1 to 22, such as 3,5,18")
    return numbers


def _table(comparisons: Mapping[str, Comparison]) -> FittedTable:
    columns = (
        "Query", "Time", "Times faster", "Tasks", "Largest task", "Shuffle blocks", "Results",
    )  # fmt: skip
    table = FittedTable("Spark → Apportion", columns, right=range(1, 6))
    for name, comparison in comparisons.items():
        spark, ours = comparison.spark, comparison.apportion
        table.add_row(
            name,
            f"{spark.seconds:.2f} → {ours.seconds:.2f} s",
            Text(f"{_ratio(comparison):.2f}", _STYLES[_outcome(comparison)]),
            f"{spark.tasks} → {ours.tasks}",
            f"{size_text(spark.largest_task_bytes)} → {size_text(ours.largest_task_bytes)}",
            f"{spark.shuffle_blocks:,} → {ours.shuffle_blocks:,}",
            Text("equal", "green") if comparison.equal else Text("different", "red"),
        )
    return table


_STYLES = {"Faster with Apportion": "green", "Slower": "red", "No clear difference": ""}


def _ratio(comparison: Comparison) -> float:
    return comparison.spark.seconds / comparison.apportion.seconds


def _outcome(comparison: Comparison) -> str:
    faster, slower, equal = _STYLES
    ratio = _ratio(comparison)
    return faster if ratio > _NOISE else slower if ratio < 1 / _NOISE else equal


def _verdict(comparisons: Mapping[str, Comparison]) -> str:
    """Return a sentence for each outcome, with its queries."""
    by_outcome = {
        outcome: [name for name, each in comparisons.items() if _outcome(each) == outcome]
        for outcome in _STYLES
    }
    return " ".join(
        f"{outcome}: {', '.join(names)}." for outcome, names in by_outcome.items() if names
    )


def _explain(comparisons: Mapping[str, Comparison]) -> None:
    """Print the reason of the largest shuffle of the queries with the highest ratios."""
    by_ratio = sorted(comparisons.items(), key=lambda pair: -_ratio(pair[1]))
    for name, comparison in by_ratio[:_EXPLAINED]:
        decided = [each for each in comparison.apportion.decisions if each.ranges]
        if decided:
            largest = max(decided, key=lambda decision: decision.input_bytes)
            out.print(f"{name}, {escape(largest.operator)}: [bold]{escape(largest.reason)}")


def _next_steps(tables: Path) -> None:
    out.print(
        "\nNext, use smaller tasks:\n"
        "  apportion demo --set data_volume_per_task=256KB\n"
        "Run your own SQL on these tables or yours, and show each decision:\n"
        '  echo "SELECT l_orderkey, sum(l_quantity) FROM lineitem GROUP BY 1" |\n'
        f"    apportion run - --tables {escape(str(tables))} --compare\n"
        "In Python, use spark = apportion.get_or_create() and apportion.decisions(spark)."
    )
