"""What the commands share to talk to people: results on standard output, the rest on error."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from apportion.decision import Decision
from apportion.units import size_text

QUERY_FAILED = 1
USAGE_ERROR = 2
_PIPED_WIDTH = 160


def _width(is_terminal: bool) -> int | None:
    # Piped output has no width of its own, and rich's 80 columns would fold the tables.
    return None if is_terminal or "COLUMNS" in os.environ else _PIPED_WIDTH


out = Console(width=_width(sys.stdout.isatty()), highlight=False)
err = Console(stderr=True, highlight=False)


def fail(message: str, code: int = USAGE_ERROR) -> NoReturn:
    """End the command with an error message and an exit code."""
    err.print("[bold red]Error:[/]", end=" ")
    err.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(code)


def decisions_table(decisions: list[Decision]) -> Table:
    """Return one line for each group of shuffles or scan: what reads it, its tasks, and why."""
    table = Table("Read by", "Input", "Subpartitions", "Tasks", "Largest task", "Why")
    for column in table.columns[1:5]:
        column.justify = "right"
    for decision in decisions:
        table.add_row(
            decision.operator,
            size_text(decision.input_bytes),
            str(decision.subpartitions or "-"),
            str(decision.tasks),
            size_text(decision.largest_task_bytes),
            escape(decision.reason),
        )
    return table
