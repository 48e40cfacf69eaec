"""`apportion run`."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from apportion._spark.jvm import short_errors
from apportion._util.tables import FittedTable
from apportion._util.units import count_text, size_text
from apportion.bench import measure
from apportion.bench.measure import Comparison, Run
from apportion.cli.support.console import QUERY_FAILED, fail, out, print_rows
from apportion.cli.support.options import Format, Tables
from apportion.cli.support.progress import query_progress, stoppable, waiting
from apportion.cli.support.sources import errors_in_file, read_statements
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.table_files import find_tables, query_errors, register
from apportion.decision import SHOWN_COLUMNS
from apportion.sql.statements import Statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_command(
    file: Annotated[str, typer.Argument(help="File of SQL statements, or - for standard input.")],
    tables: Tables = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Also run each query without Apportion, and compare."),
    ] = False,
    rows: Annotated[int, typer.Option(min=0, help="Number of result rows to show.")] = 20,
    format: Format = "text",
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Run SQL with Apportion, and show each decision with its reason.

    With `--compare`, each query runs twice with and twice without Apportion, alternating, and the
    faster run counts. Statements that may change data run once, with Apportion.

    Exit codes: 0 all statements ran, 1 a query failed or its results differ, 2 wrong usage or a
    missing file or table.
    """
    statements = read_statements(file)
    known_tables = find_tables(tables) if tables else {}
    spark = start(master, assignments or [])
    reports = []
    try:
        with query_errors(known_tables):
            with short_errors(), waiting("Reading the tables' schemas"):
                register(spark, known_tables)
            with errors_in_file(statements) as each:
                for number, statement in enumerate(each, 1):
                    title = f"Statement {number} of {len(statements)}"
                    with (
                        stoppable(_stopped(title, statement, number)),
                        short_errors(),
                        query_progress(spark, title),
                    ):
                        result = _run(spark, statement, compare, rows)
                    reports.append(_report(statement, result))
                    if format == "text":
                        _print(statement, result)
    finally:
        if format == "json":
            print(json.dumps(_json_value(reports), indent=2, allow_nan=False))
    if any(report.get("equal") is False for report in reports):
        fail("the results with and without Apportion differ", QUERY_FAILED)


def _stopped(title: str, statement: Statement, number: int) -> str:
    place = f"stopped {title.lower()} (line {statement.line})"
    if number == 1:
        return f"{place}. Run the same command again to start over"
    return f"{place}. The statements before it have run: run the rest of the file to go on"


def _run(spark: SparkSession, statement: Statement, compare: bool, head: int) -> Run | Comparison:
    if compare and statement.is_query:
        return measure.compare(spark, statement.text, head=head)
    return measure.run(spark, statement.text, head)


def _print(statement: Statement, result: Run | Comparison) -> None:
    run = result.apportion if isinstance(result, Comparison) else result
    out.rule(Text(statement.title), align="left")
    if run.columns:
        if run.rows:
            out.print(_rows_table(run))
        shown = len(run.rows)
        first = f", first {shown} shown" if 0 < shown < run.row_count else ""
        out.print(f"{count_text(run.row_count, 'row')} in {run.seconds:.2f} s{first}\n")
    if isinstance(result, Comparison):
        out.print(_comparison_table(result))
        out.print("[green]Results are equal.\n" if result.equal else "[red]Results differ.\n")
    if run.decisions:
        cells = [decision.shown_cells() for decision in run.decisions]
        print_rows(SHOWN_COLUMNS, cells, right=range(1, 5))
    else:
        out.print("No decisions: the statement read no shuffle and scanned no files.")


def _rows_table(run: Run) -> FittedTable:
    table = FittedTable("", run.columns)
    for row in run.rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row))
    return table


def _comparison_table(comparison: Comparison) -> FittedTable:
    table = FittedTable("", ("", "Spark", "Apportion"))
    pair = comparison.spark, comparison.apportion
    table.add_row("Tasks", *(str(run.tasks) for run in pair))
    table.add_row("Largest task", *(size_text(run.largest_task_bytes) for run in pair))
    table.add_row("Time", *(f"{run.seconds:.2f} s" for run in pair))
    return table


def _report(statement: Statement, result: Run | Comparison) -> dict[str, Any]:
    run = result.apportion if isinstance(result, Comparison) else result
    report: dict[str, Any] = {
        "statement": statement.text,
        "columns": run.columns,
        "row_count": run.row_count,
        "rows": run.rows,
        **_measures(run),
        "decisions": [dataclasses.asdict(decision) for decision in run.decisions],
    }
    if isinstance(result, Comparison):
        report |= {"spark": _measures(result.spark), "equal": result.equal}
    return report


def _measures(run: Run) -> dict[str, Any]:
    return {
        "seconds": round(run.seconds, 3),
        "tasks": run.tasks,
        "largest_task_bytes": run.largest_task_bytes,
    }


def _json_value(value: object) -> object:
    """Return a value that JSON supports. Map keys and values of other types become text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(_json_value(key)): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case datetime.date() | datetime.time():
            return value.isoformat()
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case _:
            return str(value)
