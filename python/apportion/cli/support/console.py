"""Console output of the commands: results on standard output, all else on standard error."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NoReturn

import typer
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from apportion._util.paths import write_text
from apportion.redaction import printable

QUERY_FAILED = 1
USAGE_ERROR = 2
_PIPED_WIDTH = 160
# A column of long text needs this width. In a narrower terminal, the text is below its row.
_LEAST_TEXT = 25


class Console(RichConsole):
    """A console whose texts have no control characters, which a terminal would obey."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def write(self, text: str) -> None:
        """Write a text as it is, without a style."""
        self.file.write(printable(text))


# Piped output has no width. Rich would assume 80 columns and wrap the tables.
_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
# emoji=False, because rows and SQL of the user can contain text such as `:key:`.
out = Console(width=_WIDTH, highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)


def fail(message: str, code: int = USAGE_ERROR) -> NoReturn:
    """End the command with an error message and an exit code."""
    err.print("[bold red]Error:[/]", end=" ")
    note(message)
    raise typer.Exit(code)


def note(message: str) -> None:
    """Print a line about the output, on standard error."""
    err.print(message, markup=False, soft_wrap=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the logs and warnings of packages, because the commands report errors themselves.

    pyspark logs query errors with their Java stack, and warns about its own imports.
    """
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def writing(file: Path | None) -> Iterator[Console]:
    """Yield a console that writes to `file`, or to standard output if `file` is None.

    A file is replaced at the end of the block, so that an error in the block leaves the old file.
    """
    if file is None:
        yield out
        return
    text = io.StringIO()
    yield Console(file=text, width=out.width, highlight=False, emoji=False)
    try:
        write_text(file, text.getvalue())
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")


def print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int] = ()
) -> None:
    """Print a table. The long text in the last column is below its row in a narrow terminal.

    `right` are the indexes of the columns with numbers.
    """
    *widths, _ = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    if out.width - sum(widths) - 3 * len(columns) >= _LEAST_TEXT:
        table = Table()
        for place, name in enumerate(columns):
            justify: Literal["left", "right"] = "right" if place in right else "left"
            table.add_column(name, justify=justify, overflow="fold")
        for cells in rows:
            table.add_row(*map(Text, cells))
        out.print(table)
        return
    for *cells, text in [(*columns[:-1], ""), *rows]:
        line = "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        out.print(Text(line.rstrip(), style="bold"), soft_wrap=True)
        if text:
            out.print(Padding(Text(text), (0, 0, 0, 2)))
