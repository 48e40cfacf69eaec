"""`apportion slots`."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer
from rich.text import Text

from apportion import resources
from apportion._spark.jvm import short_errors
from apportion._util.units import count_text, seconds_text, size_text
from apportion.cli.support.console import out, print_rows
from apportion.cli.support.options import Format, Tables
from apportion.cli.support.progress import waiting
from apportion.cli.support.sources import errors_in_file, read_statements
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.table_files import find_tables, query_errors, register
from apportion.resources import QuerySlots, TimedPlan
from apportion.sql.statements import Statement

EXAMPLES = """\
More examples:

- `apportion slots report.sql --tables data/ --slots 16`: distribute 16 slots to the stages
"""


def slots_command(
    file: Annotated[str, typer.Argument(help="File of SQL queries, or - for standard input.")],
    tables: Tables = None,
    slots: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of slots to distribute to stages. Default: the slots of this Spark."
        ),
    ] = None,
    finish_within: Annotated[
        str | None,
        typer.Option(
            help="Time within which each query must end, such as '10 min'. Shows the smallest "
            "number of slots with which it does."
        ),
    ] = None,
    format: Format = "text",
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Show the task slots that queries need, without running them.

    Each stage has a minimum, a target and a maximum number of slots. Stages share slots, so a query
    needs as many slots as its largest stage. Stages that run at the same time can use more.

    Exit codes: 0 planned, 1 Spark cannot plan a query, 2 wrong usage or a missing file or table.
    """
    statements = read_statements(file)
    known_tables = find_tables(tables) if tables else {}
    spark = start(master, assignments or [])
    plans: list[tuple[Statement, QuerySlots]] = []
    with query_errors(known_tables), waiting("Planning"):
        with short_errors():
            register(spark, known_tables)
        with errors_in_file(statements) as each, short_errors():
            for statement in each:
                try:
                    plan = resources.plan(spark, statement.text, slots, finish_within=finish_within)
                except Exception:
                    # Spark gave the error the place of the call of a table function.
                    if statement.is_query:
                        spark.sql(statement.text)
                    raise
                plans.append((statement, plan))
    if format == "json":
        entries = [{"statement": s.text, **dataclasses.asdict(plan)} for s, plan in plans]
        print(json.dumps(entries, indent=2))
        return
    for statement, plan in plans:
        out.rule(Text(statement.title), align="left", characters="-")
        _print(plan)


def _print(plan: QuerySlots) -> None:
    columns = ["Stage", "Runs", "Reads", "Input", "Tasks", "Slots", "Share", "Why"]
    rows = [
        (
            f"{stage.number} ({stage.kind})",
            stage.operator,
            ", ".join(map(str, stage.reads)),
            "-" if stage.bytes is None else size_text(stage.bytes),
            str(stage.tasks),
            str(stage.requirement),
            "-" if stage.slots is None else str(stage.slots),
            stage.why,
        )
        for stage in plan.stages
    ]
    print_rows(columns, rows, right=range(3, 7))
    for group in plan.groups if len(plan.groups) > 1 else []:
        out.print(f"Resource profile {group.profile} (min / target / max): {group.requirement}")
    out.print(
        f"Slots (min / target / max): {plan.requirement}. "
        f"Peak concurrency: {count_text(plan.at_once, 'task')}. "
        f"{count_text(plan.slots, 'slot')} available.\n"
    )
    if plan.timed is not None:
        _print_timed(plan.timed)


def _print_timed(plan: TimedPlan) -> None:
    deadline = seconds_text(plan.finish_within)
    if plan.slots is None or plan.seconds is None:
        out.print(
            f"No plan to end within {deadline}: the query has not run before, and no task has "
            "shown how fast bytes are read.\n"
        )
        return
    columns = ["Stage", "Reads", "Tasks", "Slots", "Start", "Time"]
    rows = [
        (
            str(stage.stage),
            ", ".join(map(str, stage.reads)),
            str(stage.tasks),
            str(stage.slots),
            seconds_text(stage.start),
            seconds_text(stage.seconds),
        )
        for stage in plan.stages
    ]
    print_rows(columns, rows, right=range(2, 6))
    slots, seconds = count_text(plan.slots, "slot"), seconds_text(plan.seconds)
    end = f": with {slots}, the query ends after {seconds} (by {plan.source})"
    late = f" cannot be met{end}, and more slots do not help"
    out.print(f"Deadline {deadline}{end if plan.in_time else late}.\n")
