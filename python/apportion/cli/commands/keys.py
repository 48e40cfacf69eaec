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
from apportion.cli.support.console import fail, note, out
from apportion.cli.support.options import Force, Format, PlotFile, Tables
from apportion.cli.support.outputs import check_outputs
from apportion.cli.support.progress import query_progress, waiting
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.table_files import find_tables, query_errors, register
from apportion.keys import key_distribution, plot
from apportion.keys.columns import MOST_TASKS
from apportion.keys.key_distribution import KeyDistribution

EXAMPLES = """\
More examples:

- `apportion keys events --columns year,month --tasks 8 --tables data/ --plot a.svg`: use two \
columns, and draw a plot
"""

_BAR_WIDTH = 20
# Width of the columns without bars, for numbers of nine digits.
_OTHER_COLUMNS = 70
_MOST_TASKS = 64


def keys_command(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Table in --tables, or in Spark's catalog."),
    ],
    columns: Annotated[
        str, typer.Option(metavar="NAME,NAME,...", help="Columns that rows are partitioned by.")
    ],
    tasks: Annotated[
        int,
        typer.Option(
            metavar="P", min=1, max=MOST_TASKS, help="Number of tasks that read the shuffle."
        ),
    ],
    subpartitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            max=LARGEST_INT,
            help="Number of shuffle partitions. Each task reads an even share. Default: one per "
            "task.",
        ),
    ] = None,
    tables: Tables = None,
    plot_file: PlotFile = None,
    force: Force = False,
    format: Format = "text",
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Show how the values of columns spread over tasks.

    With few values, Spark's hash often puts several values into one task and none into another. In
    this case, use the SQL function `even_key`, or `spread` in the Python module `apportion.keys`.

    Exit codes: 0 shown, 1 the query failed, 2 wrong usage or a missing file or table.
    """
    if plot_file:
        check(plot_file)
    if subpartitions is not None and subpartitions < tasks:
        fail(f"--subpartitions is {subpartitions}: allowed is {tasks} or more, one for each task")
    known_tables = find_tables(tables) if tables else {}
    read = [table.path for table in known_tables.values()]
    check_outputs("keys", [("--plot", plot_file)], read, force)
    spark = start(master, assignments or [])
    with query_errors(known_tables):
        with short_errors(), waiting("Reading the tables' schemas"):
            register(spark, known_tables)
            # Spark ignores the case of names of views.
            is_file = table.lower() in map(str.lower, known_tables)
            df = spark.table(quoted(table) if is_file else table)
        with short_errors(), query_progress(spark, "Counting values"):
            names = [name.strip() for name in columns.split(",")]
            distribution = key_distribution.measure_distribution(df, names, tasks, subpartitions)
    title = _title(table, distribution)
    if format == "json":
        print(json.dumps({"table": table, **dataclasses.asdict(distribution)}, indent=2))
    else:
        _print(title, distribution)
    if plot_file:
        plot.draw(distribution, title, plot_file)
        note(f"Plot: {plot_file}")


def _title(table: str, distribution: KeyDistribution) -> str:
    tasks, values = len(distribution.even.values), sum(distribution.even.values)
    return (
        f"{', '.join(distribution.columns)} of {table}: {count_text(values, 'value')}, "
        f"{count_text(tasks, 'task')}, "
        f"{count_text(distribution.subpartitions, 'shuffle partition')}"
    )


def _print(title: str, distribution: KeyDistribution) -> None:
    width = max(1, min(_BAR_WIDTH, (out.width - _OTHER_COLUMNS) // 2))
    shown = Table("Task", title=Text(title), title_justify="left")
    for name, _ in distribution.loads():
        shown.add_column(f"Values, {name}", justify="right", overflow="fold")
        shown.add_column("Rows", justify="right", no_wrap=True)
        shown.add_column("", width=width)
    tasks = len(distribution.even.rows)
    most = max(*distribution.hashed.rows, *distribution.even.rows)
    for task in range(min(tasks, _MOST_TASKS)):
        cells = [
            (str(loads.values[task]), f"{loads.rows[task]:,}", _bar(loads.rows[task], most, width))
            for _, loads in distribution.loads()
        ]
        shown.add_row(str(task), *(cell for own in cells for cell in own))
    out.print(shown)
    if tasks > _MOST_TASKS:
        hidden = count_text(tasks - _MOST_TASKS, "more task")
        out.print(f"{hidden}: --format json shows all.")
    for name, loads in distribution.loads():
        out.print(f"{name}: {loads}".capitalize(), markup=False, soft_wrap=True)


def _bar(rows: int, most: int, width: int) -> str:
    return "█" * round(width * rows / most) if rows else ""
