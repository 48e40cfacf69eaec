"""Finds the statements of a token sequence, and the statements inside SQL scripts.

A script is one statement for Spark: `BEGIN ... END` with its own statements between semicolons.
The grammar is `singleCompoundStatement` in Spark's SqlBaseParser.g4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from apportion.sql.tokens import Token

_LOOPS = ("WHILE", "FOR", "REPEAT", "LOOP")


class StatementRange(NamedTuple):
    """One statement, `tokens[low:high]`, without its semicolon.

    `parts` are the ranges of the statements in a script. Another statement is its own only part.
    """

    low: int
    high: int
    parts: list[tuple[int, int]]


def find_ranges(tokens: Sequence[Token]) -> list[StatementRange]:
    """Return the statements of tokens in which each hint comment is one token.

    Every semicolon ends a statement, even in parentheses, unless it is in a script. A script
    without END reaches to the end. Empty statements are left out. Takes linear time.
    """
    return _RangeFinder(tokens).run()


class _RangeFinder:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._words = [token.word for token in tokens]
        self._ranges: list[StatementRange] = []
        self._opened: list[str] = []  # the keywords of the blocks around the current token
        self._start = 0
        self._parts: list[tuple[int, int]] = []

    def run(self) -> list[StatementRange]:
        index, count = 0, len(self._tokens)
        while index < count:
            if not self._opened:
                self._start = index
            index = self._read_one(index)
        if self._opened:
            self._finish(count)
        return self._ranges

    def _word(self, index: int) -> str:
        return self._words[index] if index < len(self._words) else ""

    def _finish(self, high: int) -> None:
        if self._start < high:
            parts = self._parts or [(self._start, high)]
            self._ranges.append(StatementRange(self._start, high, parts))
        self._parts = []

    def _read_one(self, index: int) -> int:
        """Read a statement or the start or end of a block. Return the index after it."""
        first = self._skip_templates(index)
        labeled = self._skip_label(first)
        word = self._word(labeled)
        if word == "BEGIN":
            self._opened.append(word)
            index = labeled + 1
            return index + 2 * (self._word(index) == "NOT")
        if not self._opened:
            index = self._find(index, (";",))
            self._finish(index)
            return index + 1
        if word in ("IF", "CASE", "WHILE", "FOR"):
            end = self._find_after_condition(labeled, "DO" if word in _LOOPS else "THEN")
            if end is not None:
                self._opened.append(word)
                return end
        elif word in ("REPEAT", "LOOP"):
            self._opened.append(word)
            return labeled + 1
        elif word in ("ELSEIF", "WHEN"):
            end = self._find_after_condition(first, "THEN")
            if end is not None:
                return end
        elif word == "UNTIL":
            end = self._find_after_condition(first, "END")
            if end is not None:
                return end - 1
        elif word == "ELSE":
            return first + 1
        elif word == "END":
            return self._read_end(first)
        elif word == "DECLARE":
            head = self._skip_handler(first)
            if head is not None:
                return head
        end = self._find(index, (";",))
        if first < end:
            self._parts.append((index, end))
        return end + 1

    def _read_end(self, index: int) -> int:
        keyword = self._opened.pop()
        index += 1
        if self._word(index) == keyword != "BEGIN":
            index += 1
        if self._opened:
            return self._find(index, (";",)) + 1
        # Only a label can follow END. Other tokens belong to no statement.
        index = self._find(index, (";",))
        self._finish(index)
        return index + 1

    def _skip_templates(self, index: int) -> int:
        while index < len(self._tokens) and self._tokens[index].kind == "template":
            index += 1
        return index

    def _skip_label(self, index: int) -> int:
        """Skip `name :` before a block."""
        has_label = self._word(index + 1) == ":" and self._word(index + 2) in ("BEGIN", *_LOOPS)
        return index + 2 if has_label else index

    def _find(self, index: int, words: tuple[str, ...]) -> int:
        while index < len(self._tokens) and self._words[index] not in words:
            index += 1
        return index

    def _find_after_condition(self, index: int, end: str) -> int | None:
        """Add a condition as a part. Return the index after the keyword behind it, or None."""
        cases, start = 0, index
        index += 1
        while index < len(self._tokens) and self._words[index] != ";":
            word = self._words[index]
            if word == end and cases == 0:
                self._parts.append((start, index))
                return index + 1
            is_name = self._words[index - 1] == "."
            cases += (word == "CASE" and not is_name) - (word == "END" and cases > 0)
            if word == "WHEN" and self._words[start] == "CASE" and cases == 0:
                start = index  # `CASE x WHEN y THEN`
            index += 1
        return None

    def _skip_handler(self, index: int) -> int | None:
        """Return the index of the statement in `DECLARE EXIT HANDLER FOR condition statement`."""
        if self._word(index + 2) != "HANDLER" or self._word(index + 3) != "FOR":
            return None
        index += 4
        while True:
            if self._word(index) == "SQLSTATE":
                index += 1 + (self._word(index + 1) == "VALUE")
            elif self._word(index) == "NOT":
                index += 1
            index += 1
            if self._word(index) != ",":
                return min(index, len(self._tokens))
            index += 1
