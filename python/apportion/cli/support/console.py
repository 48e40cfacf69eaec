"""Console output of the commands: results on standard output, all else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from apportion._util.units import size_text
from apportion.decision import Decision

QUERY_FAILED = 1
USAGE_ERROR = 2
_PIPED_WIDTH = 160


def _width(is_terminal: bool) -> int | None:
    # Piped output has no width. Rich would assume 80 columns and wrap the tables.
    return None if is_terminal or "COLUMNS" in os.environ else _PIPED_WIDTH


# emoji=False, because rows and SQL of the user can contain text such as `:key:`.
out = Console(width=_width(sys.stdout.isatty()), highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def fail(message: str, code: int = USAGE_ERROR) -> NoReturn:
    """End the command with an error message and an exit code."""
    err.print("[bold red]Error:[/]", end=" ")
    err.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(code)


@contextmanager
def writing(file: Path | None) -> Iterator[Console]:
    """Yield a console that writes to `file`, or to standard output if `file` is None."""
    if file is None:
        yield out
        return
    try:
        with file.open("w", encoding="utf-8") as opened:
            yield Console(file=opened, width=out.width, highlight=False, emoji=False)
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")


def decisions_table(decisions: list[Decision]) -> Table:
    """Return a table of decisions, with one row for each group of shuffles or scan."""
    table = Table("Read by", "Input", "Shuffle partitions", "Tasks", "Largest task", "Why")
    for column in table.columns[1:5]:
        column.justify = "right"
    for decision in decisions:
        table.add_row(
            escape(decision.operator),
            size_text(decision.input_bytes),
            str(decision.subpartitions or "-"),
            str(decision.tasks),
            size_text(decision.largest_task_bytes),
            escape(decision.reason),
        )
    return table
