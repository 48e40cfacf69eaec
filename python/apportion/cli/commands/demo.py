"""`apportion demo`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from apportion.cli.support.progress import query_progress, stoppable, waiting
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.table_files import find_tables, register
from apportion.decision import Decision
from apportion.errors import ApportionError
from apportion.session import confs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS = 2
_DEFAULT_QUERIES = "3,9,18"
# Queries of the suite `skew`: Spark leaves their heaviest keys to one task each.
_SKEWED = ("hot-join", "zipf-join")
# The skewed tables at scale 1 take as long to generate as TPC-H at this scale factor.
_SCALE_OF_SKEW_1 = 0.1


def demo(
    scale: Annotated[
        float, typer.Option(help="TPC-H scale factor. Scale 1 is about 1 GB as text.")
    ] = 0.1,
    queries: Annotated[
        str, typer.Option(metavar="N,N,...", help="TPC-H queries to run, from 1 to 22.")
    ] = _DEFAULT_QUERIES,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the generated tables. Default: apportion in your cache directory."
        ),
    ] = None,
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Run queries on generated data with and without Apportion.

    The queries are some of TPC-H, and joins on skewed keys with a target of 4 MiB per task. Each
    runs twice each way, alternating, and the faster run counts. The results must be equal.

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
            skewed = skew.generate(spark, min(1.0, scale / _SCALE_OF_SKEW_1), folder)
        register(spark, find_tables(tables))
        register(spark, find_tables(skewed))
        with query_progress(spark, "Warming up"):
            measure.run(spark, texts[numbers[0]])
        uniform = _compare(spark, {str(number): texts[number] for number in numbers})
        with confs(spark, skew.CONF):
            split = _compare(spark, {name: skew.queries()[name] for name in _SKEWED})
    out.print(_table("TPC-H: Spark → Apportion", uniform))
    _explain(uniform, "The largest shuffle", lambda decision: bool(decision.ranges))
    out.print()
    out.print(_table("Joins on skewed keys: Spark → Apportion", split))
    _explain(split, "The largest skewed shuffle", lambda decision: decision.layout == "skew")
    _next_steps(tables)
    different = [name for name, each in {**uniform, **split}.items() if not each.equal]
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


def _table(title: str, comparisons: Mapping[str, Comparison]) -> FittedTable:
    columns = ("Query", "Tasks", "Shuffle blocks", "Largest task", "Time", "Results")
    table = FittedTable(title, columns, right=range(5))
    for name, comparison in comparisons.items():
        spark, ours = comparison.spark, comparison.apportion
        table.add_row(
            name,
            f"{spark.tasks} → {ours.tasks}",
            f"{spark.shuffle_blocks:,} → {ours.shuffle_blocks:,}",
            f"{size_text(spark.largest_task_bytes)} → {size_text(ours.largest_task_bytes)}",
            f"{spark.seconds:.2f} → {ours.seconds:.2f} s",
            Text("equal", "green") if comparison.equal else Text("different", "red"),
        )
    return table


def _explain(
    comparisons: Mapping[str, Comparison], what: str, is_shown: Callable[[Decision], bool]
) -> None:
    decided = [
        (decision, name)
        for name, comparison in comparisons.items()
        for decision in comparison.apportion.decisions
        if is_shown(decision)
    ]
    if decided:
        decision, name = max(decided, key=lambda pair: pair[0].input_bytes)
        out.print(
            f"{what} is in query {name}, read by {escape(decision.operator)}. "
            f"Reason:\n  [bold]{escape(decision.reason)}"
        )


def _next_steps(tables: Path) -> None:
    out.print(
        "\nNext, use smaller tasks:\n"
        "  apportion demo --set data_volume_per_task=256KB\n"
        "Run your own SQL on these tables or yours, and show each decision:\n"
        '  echo "SELECT l_orderkey, sum(l_quantity) FROM lineitem GROUP BY 1" |\n'
        f"    apportion run - --tables {escape(str(tables))} --compare\n"
        "In Python, use spark = apportion.get_or_create() and apportion.decisions(spark)."
    )
