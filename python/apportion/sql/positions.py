"""Converts offsets into a text to lines and columns."""

from __future__ import annotations

import bisect
import re

_LINE_END = re.compile(r"\r\n|\n|\r")


class Positions:
    """Lines and columns of one text. Both count from 1; columns count characters."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._starts = [0, *(end.end() for end in _LINE_END.finditer(sql))]

    def line_column(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of the character at `offset`."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def describe(self, offset: int) -> str:
        """Return the place of an offset, such as `line 3, column 7`."""
        line, column = self.line_column(offset)
        return f"line {line}, column {column}"

    def text_of_line(self, line: int) -> str:
        """Return a line without its line end."""
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self._sql)
        return self._sql[start:end].rstrip("\r\n")
