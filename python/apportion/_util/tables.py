"""Tables for terminals of any width."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_GAP = 2
# Width of the line and the spaces beside a column.
_BORDER = 3
# A first column with less width would have too many lines.
_LEAST_LABEL = 24
_INDENT = 2


class FittedTable:
    """A table that shows all of its text. Columns that do not fit are below their row.

    rich would cut words, and print numbers in columns of a few characters.
    """

    def __init__(self, title: str, columns: Sequence[str], right: Collection[int] = ()) -> None:
        """Make a table without rows. `right` are the indexes of the columns with numbers."""
        self.columns = list(columns)
        self.rows: list[list[Text]] = []
        self._title = title
        self._right = right
        # The number of rows before each line between rows.
        self._sections: set[int] = set()

    def add_row(self, *cells: str | Text) -> None:
        """Add a row. Cells without a style are plain text."""
        self.rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def add_section(self) -> None:
        """Draw a line below the last row, if all columns fit."""
        self._sections.add(len(self.rows))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = [Text(column) for column in self.columns]
        widths = [max(map(cell_len, _lines([head, *self.rows], i))) for i in range(len(head))]
        # The words of a heading may be on several lines.
        least = [
            max(map(cell_len, [*column.split(), *_lines(self.rows, i)]), default=0)
            for i, column in enumerate(self.columns)
        ]
        room = options.max_width - _BORDER * len(least) - 1
        # So may the words of the first column, which can be a description.
        words = [word for row in (head, *self.rows) for word in row[0].plain.split()]
        label = min(least[0], max(room - sum(least[1:]), *map(cell_len, words), _LEAST_LABEL))
        for boxed in (widths, least, [label, *least[1:]]):
            if sum(boxed) <= room:
                yield self._boxed(boxed)
                return
        # A long first column, such as a description, has lines of its own.
        first = 1 if widths[0] > options.max_width // 3 and len(widths) > 1 else 0
        shown = first + 1
        left = options.max_width - widths[first] - _INDENT * first
        while shown < len(widths) and widths[shown] + _GAP <= left:
            left -= widths[shown] + _GAP
            shown += 1
        if self._title:
            yield Text(self._title, style="italic")
        for row in (head, *self.rows):
            yield from self._narrow(row, widths, first, shown, is_head=row is head)

    def _narrow(
        self, row: list[Text], widths: list[int], first: int, shown: int, *, is_head: bool
    ) -> RenderResult:
        style = "bold" if is_head else ""
        if first:
            yield Text.assemble(row[0], style="bold", overflow="fold")
        cells = []
        for i in range(first, shown):
            cell = row[i].copy()
            padding = " " * (widths[i] - cell_len(cell.plain))
            cells.append(Text(padding) + cell if i in self._right else cell + Text(padding))
        line = Text(" " * _GAP, style=style, overflow="fold").join(cells)
        line.rstrip()
        yield Padding(line, (0, 0, 0, _INDENT * first))
        if is_head:
            return
        rest = [
            Text.assemble(self.columns[i], ": ", row[i])
            for i in range(shown, len(row))
            if row[i].plain
        ]
        if rest:
            yield Padding(Text("; ", overflow="fold").join(rest), (0, 0, 0, _INDENT * (first + 1)))

    def _boxed(self, widths: Sequence[int]) -> Table:
        table = Table(title=Text(self._title) if self._title else None, title_justify="left")
        for i, column in enumerate(self.columns):
            justify: Literal["left", "right"] = "right" if i in self._right else "left"
            heading = "\n".join(textwrap.wrap(column, max(1, widths[i])))
            table.add_column(Text(heading), justify=justify, max_width=widths[i])
        for number, row in enumerate(self.rows, 1):
            table.add_row(*row, end_section=number in self._sections)
        return table


def _lines(rows: Sequence[Sequence[Text]], column: int) -> list[str]:
    return [line for row in rows for line in row[column].plain.splitlines() or [""]]
