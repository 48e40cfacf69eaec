"""`apportion slots`."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apportion import resources
from apportion._spark.jvm import short_errors
from apportion._util.units import count_text, size_text
from apportion.cli.support.console import out
from apportion.cli.support.options import Format, Tables
from apportion.cli.support.progress import waiting
from apportion.cli.support.sources import read_statements
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.tables import find_tables, query_failed, register
from apportion.errors import QueryError
from apportion.resources import QuerySlots
from apportion.sql.statements import Statement

EXAMPLES = """\
Examples:

- `apportion slots report.sql --tables data/`: slots that each stage needs, and the query
- `apportion slots report.sql --tables data/ --slots 16`: how 16 would be dealt to its stages
- `apportion slots report.sql --tables data/ --set mode=active`: if the cluster were asked for them
"""


def slots_command(
    file: Annotated[str, typer.Argument(help="A file of SQL queries, or - for standard input.")],
    tables: Tables = None,
    slots: Annotated[
        int | None,
        typer.Option(min=1, help="Slots to deal to stages. Default: those of the Spark that runs."),
    ] = None,
    format: Format = "text",
    assignments: Assignments = None,
    master: Master = None,
) -> None:
    """Plan the slots that queries need, without running them.

    Each stage declares slots: the least that it starts with, those it would like, and the most that
    it can use. Stages share slots, so a query needs as many as its largest stage; stages that can
    run at once would use more.

    Exit codes: 0 planned, 1 Spark cannot plan a query, 2 wrong usage or a missing file or table.
    """
    statements = read_statements(file)
    found = find_tables(tables) if tables else {}
    spark = start(master, assignments or [])
    plans: list[tuple[Statement, QuerySlots]] = []
    try:
        with short_errors(), waiting("Planning"):
            register(spark, found)
            plans += [(each, resources.plan(spark, each.text, slots)) for each in statements]
    except QueryError as error:
        query_failed(error, found)
    if format == "json":
        entries = [{"statement": s.text, **dataclasses.asdict(plan)} for s, plan in plans]
        print(json.dumps(entries, indent=2))
        return
    for statement, plan in plans:
        out.rule(Text(statement.title), align="left", characters="-")
        _print(plan)


def _print(plan: QuerySlots) -> None:
    table = Table("Stage", "Runs", "Reads", "Input", "Tasks", "Slots", "Of them", "Why")
    for column in table.columns[3:7]:
        column.justify = "right"
    for stage in plan.stages:
        table.add_row(
            f"{stage.number} ({stage.kind})",
            escape(stage.operator),
            ", ".join(map(str, stage.reads)),
            "-" if stage.bytes is None else size_text(stage.bytes),
            str(stage.tasks),
            str(stage.requirement),
            "-" if stage.slots is None else str(stage.slots),
            escape(stage.why),
        )
    out.print(table)
    for group in plan.groups if len(plan.groups) > 1 else []:
        out.print(f"Stages of profile {group.profile}: {group.requirement} slots")
    out.print(
        f"The query: {plan.requirement} slots (least / would like / can use). Its stages have "
        f"{count_text(plan.at_once, 'task')} at once at most; here are "
        f"{count_text(plan.slots, 'slot')}.\n"
    )
