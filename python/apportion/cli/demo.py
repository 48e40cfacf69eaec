"""`apportion demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from apportion._spark.jvm import short_errors
from apportion._util import cache
from apportion._util.units import size_text
from apportion.bench import measure
from apportion.bench.measure import Comparison
from apportion.bench.suites import tpc
from apportion.cli.support.console import QUERY_FAILED, fail, out
from apportion.cli.support.progress import query_progress, waiting
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.tables import find_tables, register
from apportion.errors import ApportionError

_ROUNDS = 2
_DEFAULT_QUERIES = "1,3,5,9,18,21"


def demo(
    scale: Annotated[
        float, typer.Option(help="TPC-H scale factor: about that many GB of text.")
    ] = 0.1,
    queries: Annotated[
        str, typer.Option(metavar="N,N,...", help="TPC-H queries to run, of 1 to 22.")
    ] = _DEFAULT_QUERIES,
    data: Annotated[
        Path | None, typer.Option(help="Where generated tables are kept. Default: your cache.")
    ] = None,
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Run TPC-H queries on generated data with Apportion and without, and compare.

    Each query runs in turns both ways; the fastest run of each way counts. The results must be
    equal.

    Exit codes: 0 all ran, 1 a query failed or had another result, 2 wrong usage.
    """
    numbers = _numbers(queries)
    with waiting(f"Generating TPC-H at scale factor {scale:g}"):
        tables = tpc.generate("tpch", scale, data or cache.directory())
    texts = tpc.queries("tpch")
    spark = start(master, assignments or [])
    comparisons: dict[int, Comparison] = {}
    with short_errors():
        register(spark, find_tables(tables))
        with query_progress(spark, "Warming up"):
            measure.run(spark, texts[numbers[0]])
        for done, number in enumerate(numbers):
            with query_progress(spark, f"Query {number} ({done + 1} of {len(numbers)})"):
                comparisons[number] = measure.compare(spark, texts[number], _ROUNDS)
    out.print(_table(comparisons))
    _explain(comparisons)
    _next_steps(tables)
    different = [str(number) for number, each in comparisons.items() if not each.equal]
    if different:
        fail(f"results differ in query {', '.join(different)}", QUERY_FAILED)


def _numbers(text: str) -> list[int]:
    numbers = [int(number) if number.strip().isdecimal() else 0 for number in text.split(",")]
    if not all(1 <= number <= 22 for number in numbers):
        raise ApportionError(f"--queries {text}: write numbers from 1 to 22, such as 3,5,18")
    return numbers


def _table(comparisons: dict[int, Comparison]) -> Table:
    table = Table(title="TPC-H: Spark → Apportion", title_justify="left")
    table.add_column("Query", justify="right")
    table.add_column("Tasks", justify="right")
    table.add_column("Largest task", justify="right")
    table.add_column("Time", justify="right")
    table.add_column("Results")
    for number, each in comparisons.items():
        spark, ours = each.spark, each.apportion
        table.add_row(
            str(number),
            f"{spark.tasks} → {ours.tasks}",
            f"{size_text(spark.largest_task_bytes)} → {size_text(ours.largest_task_bytes)}",
            f"{spark.seconds:.2f} → {ours.seconds:.2f} s",
            "[green]equal" if each.equal else "[red]different",
        )
    return table


def _explain(comparisons: dict[int, Comparison]) -> None:
    decided = [
        (decision, number)
        for number, each in comparisons.items()
        for decision in each.apportion.decisions
        if decision.ranges
    ]
    if not decided:
        return
    decision, number = max(decided, key=lambda each: each[0].input_bytes)
    out.print(
        f"\nThe largest shuffle was read in query {number}, by {escape(decision.operator)}. "
        f"Apportion's reason for its tasks:\n  [bold]{escape(decision.reason)}"
    )


def _next_steps(tables: Path) -> None:
    out.print(
        "\nNext, the same with smaller tasks:\n"
        "  apportion demo --set data_volume_per_task=256KB\n"
        "Your own SQL, on these tables or on yours, with every decision:\n"
        '  echo "SELECT l_orderkey, sum(l_quantity) FROM lineitem GROUP BY 1" |\n'
        f"    apportion run - --tables {escape(str(tables))} --compare\n"
        "In Python: spark = apportion.get_or_create(), then apportion.decisions(spark)."
    )
