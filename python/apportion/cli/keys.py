"""`apportion keys`."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from apportion._spark.jvm import short_errors
from apportion._util.checks import LARGEST_INT
from apportion._util.figures import check
from apportion._util.identifiers import quoted
from apportion._util.units import count_text
from apportion.cli.support.console import err, fail, out
from apportion.cli.support.options import Format, PlotFile, Tables
from apportion.cli.support.progress import query_progress, waiting
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.tables import find_tables, query_failed, register
from apportion.errors import QueryError
from apportion.keys import key_distribution, plot
from apportion.keys.columns import MOST_TASKS
from apportion.keys.key_distribution import Dealt

EXAMPLES = """\
Examples:

- `apportion keys events --columns tenant --tasks 16 --tables data/`: a column of few values
- `apportion keys events --columns year,month --tasks 8 --tables data/ --plot a.svg`: two, drawn
- `apportion keys events --columns tenant --tasks 16 --subpartitions 64 --tables data/`: for tasks \
that read four subpartitions each
"""

_BAR_WIDTH = 20
_MOST_TASKS = 64


def keys_command(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="A table in --tables, or one that Spark knows."),
    ],
    columns: Annotated[
        str, typer.Option(metavar="NAME,NAME,...", help="What rows are partitioned by.")
    ],
    tasks: Annotated[
        int, typer.Option(metavar="P", min=1, max=MOST_TASKS, help="Tasks that read them.")
    ],
    subpartitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            max=LARGEST_INT,
            help="Tasks read even ranges of so many. Default: one a task.",
        ),
    ] = None,
    tables: Tables = None,
    plot_file: PlotFile = None,
    format: Format = "text",
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Show how the values of columns fall over tasks: by Spark's hash, and with even keys.

    Where a few values share some tasks while others are empty, partition by even keys: the SQL
    function even_key, or spread of the Python module apportion.keys.

    Exit codes: 0 shown, 1 the query failed, 2 wrong usage or a missing file or table.
    """
    if plot_file:
        check(plot_file)
    if subpartitions is not None and subpartitions < tasks:
        fail(f"--subpartitions is {subpartitions}: allowed is {tasks} or more, one for each task")
    found = find_tables(tables) if tables else {}
    spark = start(master, assignments or [])
    try:
        with short_errors(), waiting("Reading the tables' schemas"):
            register(spark, found)
            df = spark.table(quoted(table) if table in found else table)
        with short_errors(), query_progress(spark, "Counting values"):
            names = [name.strip() for name in columns.split(",")]
            dealt = key_distribution.deal(df, names, tasks, subpartitions)
    except QueryError as error:
        query_failed(error, found)
    title = _title(table, dealt)
    if format == "json":
        print(json.dumps({"table": table, **dataclasses.asdict(dealt)}, indent=2))
    else:
        _print(title, dealt)
    if plot_file:
        plot.draw(dealt, title, plot_file)
        err.print(f"Plot: {plot_file}", markup=False, soft_wrap=True)


def _title(table: str, dealt: Dealt) -> str:
    tasks, values = len(dealt.even.values), sum(dealt.even.values)
    return (
        f"{', '.join(dealt.columns)} of {table}: {count_text(values, 'value')} over "
        f"{count_text(tasks, 'task')} of {count_text(dealt.subpartitions, 'subpartition')}"
    )


def _print(title: str, dealt: Dealt) -> None:
    shown = Table("Task", title=Text(title), title_justify="left")
    for name, _ in dealt.deals():
        shown.add_column(f"Values, {name}", justify="right")
        shown.add_column("Rows", justify="right")
        shown.add_column("", width=_BAR_WIDTH)
    tasks = len(dealt.even.rows)
    most = max(*dealt.hashed.rows, *dealt.even.rows)
    for task in range(min(tasks, _MOST_TASKS)):
        cells = [
            (str(deal.values[task]), f"{deal.rows[task]:,}", _bar(deal.rows[task], most))
            for _, deal in dealt.deals()
        ]
        shown.add_row(str(task), *(cell for own in cells for cell in own))
    out.print(shown)
    if tasks > _MOST_TASKS:
        out.print(f"And {tasks - _MOST_TASKS:,} tasks more: --format json has all.")
    for name, deal in dealt.deals():
        out.print(f"{name}: {deal}".capitalize(), markup=False, soft_wrap=True)


def _bar(rows: int, most: int) -> str:
    return "█" * round(_BAR_WIDTH * rows / most) if rows else ""
