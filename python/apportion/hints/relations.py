"""Finds the tables in the FROM of each block.

The reader follows the rules `fromClause` and `relation` of Spark's SqlBaseParser.g4 and skips all
expressions. So it takes linear time, reads every clause that only Spark knows, and reads templates.
A parser of whole statements, such as sqlglot, needs exponential time for nested calls of types.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

from apportion.sql.blocks import Block
from apportion.sql.code import SET_OPERATORS, Code
from apportion.sql.tokens import Token

_JOIN_TYPES = frozenset(
    ("INNER", "CROSS", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")
)
_CLAUSES = ("WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "SORT", "CLUSTER", "LIMIT")
_ENDS = frozenset((*_CLAUSES, "DISTRIBUTE", "OFFSET", *SET_OPERATORS, "SELECT", "INSERT", "|>"))
_BY = ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE")  # names unless BY follows
_AFTER_TABLE = frozenset(("JOIN", "ON", "USING", "LATERAL", "TABLESAMPLE", "PIVOT", "UNPIVOT"))
_NO_ALIAS = _ENDS | _JOIN_TYPES | _AFTER_TABLE
_TRAVEL = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")


class Relation(NamedTuple):
    """A table, view, subquery or function in the FROM of a block, with its name for hints.

    `names` are the parts of the name in lower case, or the alias alone if one exists. A part is
    None if a template renders to it. `text` is the alias or name in the text.
    """

    names: tuple[str | None, ...]
    text: str
    start: int

    def is_named(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a hint means this relation. As Spark does, compare the last parts."""
        names = self.names[-len(parts) :]
        return len(names) == len(parts) and all(
            own is None or own == part for own, part in zip(names, parts, strict=True)
        )


@dataclass(slots=True)
class Relations:
    """The relations of a block in the order of the text.

    `tables` are the tables with names of one part, as CTEs have: the name in lower case and its
    offset. `unread` is the first token that is not understood, or None. With `is_open`, a template
    can add relations.
    """

    found: list[Relation] = field(default_factory=list)
    tables: list[tuple[str, int]] = field(default_factory=list)
    unread: Token | None = None
    is_open: bool = False
    # Places of the relations by the last part of their names. A later block of a pipeline has all
    # relations of the earlier blocks, so that only the new ones are added.
    _places: dict[str | None, list[int]] = field(default_factory=dict)
    _indexed: int = 0

    def find(self, parts: tuple[str, ...]) -> Relation | None:
        """Return the first relation that a hint means by a name, or None."""
        places = self._index()
        named = heapq.merge(places.get(parts[-1], ()), places.get(None, ()))
        relations = (self.found[place] for place in named)
        return next((each for each in relations if each.is_named(parts)), None)

    @property
    def has_template(self) -> bool:
        """Whether a template renders to a whole relation."""
        places = self._index().get(None, ())
        return any(self.found[place].names == (None,) for place in places)

    def clear(self) -> None:
        """Remove the relations that an alias hides."""
        self.found.clear()
        self._places.clear()
        self._indexed = 0

    def _index(self) -> dict[str | None, list[int]]:
        for place in range(self._indexed, len(self.found)):
            names = self.found[place].names
            if names:
                self._places.setdefault(names[-1], []).append(place)
        self._indexed = len(self.found)
        return self._places


class RelationsReader:
    """Reads the relations of a statement's blocks, in the order of their SELECTs.

    The operators of a pipeline start at the same token, and so do the bodies of a multi-insert.
    Each one is read from the end of the one before it, so that the time stays linear.
    """

    def __init__(self) -> None:
        self._readers: dict[int, _Reader] = {}

    def read(self, block: Block) -> Relations:
        """Return the relations of a block. Its subqueries are blocks of their own.

        The next block that starts at the same token changes the result.
        """
        reader = self._readers.get(block.low)
        if reader is None:
            reader = self._readers[block.low] = _Reader(block.code, block.low)
        reader.read_to(block.high)
        return reader.relations


class _Reader:
    """Reads one block. Each method takes the index of a token and returns the index after it."""

    def __init__(self, code: Code, low: int) -> None:
        self._code = code
        self._low = self._high = low
        self.relations = Relations()

    def read_to(self, high: int) -> None:
        """Read from the end of the tokens that were read before."""
        # The token at this index, `|>` or SELECT, ends every clause before it.
        index, self._high = self._high, high
        if index == self._low and self._word(index) == "TABLE":  # `TABLE t |> SELECT a`
            index = self._read_primary(index + 1)
        while index < self._high:
            word = self._word(index)
            if word == "FROM" and not self._is_distinct_from(index):
                index = self._read_list(index + 1, self._high)
            elif word == "JOIN":  # `|> JOIN t`
                index = self._read_primary(index + 1)
            elif word == "AS" and self._word(index - 1) == "|>":
                self.relations.clear()
                index = self._read_alias(index, index, index, ())
            else:
                index = self._after(index)

    def _word(self, index: int) -> str:
        return self._code.word(index) if self._low <= index < self._high else ""

    def _after(self, index: int) -> int:
        """Return the index after a token, or after its parentheses."""
        return (self._code.closing(index) if self._word(index) == "(" else index) + 1

    def _is_distinct_from(self, index: int) -> bool:
        """Tell whether FROM belongs to `a IS DISTINCT FROM b` or to a name."""
        before = self._word(index - 1)
        is_operator = before == "DISTINCT" and self._word(index - 2) in ("IS", "NOT")
        return is_operator or before == "."

    def _read_list(self, index: int, high: int) -> int:
        """Read relations that commas and joins separate."""
        index = self._read_primary(index)
        while index < high:
            word = self._word(index)
            if word in _ENDS:
                return index
            if word == ",":
                index = self._read_primary(index + 1)
            elif word == "LATERAL" and self._word(index + 1) == "VIEW":
                index = self._read_view(index + 2, high)
            elif word in ("PIVOT", "UNPIVOT"):
                index = self._read_pivot(index + 1)
            elif word in ("ON", "USING") or self._word(index + 1) == "NEAREST":
                index = self._skip_condition(index + 1, high)
            elif (joined := self._skip_join_types(index)) is not None:
                index = self._read_primary(joined)
            elif self._code.tokens[index].kind == "template":
                self.relations.is_open = True
                index += 1
            else:
                self._stop_at(index)
                return high
        return index

    def _stop_at(self, index: int) -> None:
        if self.relations.unread is None:
            self.relations.unread = self._code.tokens[min(index, len(self._code.tokens) - 1)]

    def _skip_join_types(self, index: int) -> int | None:
        """Return the index after `LEFT OUTER JOIN`, or None if no join is here."""
        while self._word(index) in _JOIN_TYPES:
            index += 1
        return index + 1 if self._word(index) == "JOIN" else None

    def _skip_condition(self, index: int, high: int) -> int:
        while index < high:
            word = self._word(index)
            is_view = word == "LATERAL" and self._word(index + 1) == "VIEW"
            if word in _ENDS or word in (",", "ON", "PIVOT", "UNPIVOT") or is_view:
                break
            if self._skip_join_types(index) is not None and self._word(index - 1) != ".":
                break
            index = self._after(index)
        return index

    def _read_primary(self, index: int) -> int:
        """Read one relation with its alias."""
        if self._word(index) == "LATERAL":
            index += 1
        start, word = index, self._word(index)
        if word == "(":
            return self._read_parenthesized(index)
        if word == "VALUES":
            return self._read_values(index)
        if word == "STREAM" and (self._word(index + 1) == "(" or self._is_name(index + 1)):
            index = start = index + 1
            if self._word(index) == "(":
                return self._read_parenthesized(index)
        after = self._skip_name(index)
        is_clause = word in _ENDS and (word not in _BY or self._word(index + 1) == "BY")
        if after == index or is_clause:
            self._stop_at(index)
            return index + 1
        names = self._read_names(index, after)
        if word == "IDENTIFIER" and self._word(after) == "(":
            names = (None,)
            while self._word(after) in (".", "(") or self._word(after - 1) == ".":
                after = self._after(after)
        elif self._word(after) == "(":
            names = ()
            after = self._after(after)
        elif len(names) == 1 and names[0] is not None:
            self.relations.tables.append((names[0], self._code.tokens[start].start))
        return self._read_alias(self._skip_options(after), start, after, names)

    def _read_parenthesized(self, index: int) -> int:
        code, inner, closing = self._code, index + 1, self._code.closing(index)
        count = len(self.relations.found)
        is_query = code.is_query(inner, closing) or self._word(inner) in ("VALUES", "TABLE", "MAP")
        if not is_query and inner < closing:
            self._read_list(inner, closing)
        before = len(self.relations.found)
        after = self._read_alias(self._skip_options(closing + 1), index, closing + 1, ())
        if len(self.relations.found) > before:
            del self.relations.found[count:before]  # the alias hides the names inside
        return after

    def _read_values(self, index: int) -> int:
        """Read `VALUES (1), (2) AS t`, where rows can lack parentheses."""
        index += 1
        while index < self._high:
            ends_row = self._code.tokens[index - 1].kind in ("number", "string")
            ends_row = ends_row or self._word(index - 1) == ")"
            if self._word(index) in _NO_ALIAS or self._word(index) == "AS":
                break
            if ends_row and self._is_name(index):
                break
            index = self._after(index)
        return self._read_alias(index, index, index, ())

    def _read_view(self, index: int, high: int) -> int:
        """Read the rest of `LATERAL VIEW OUTER explode(a) t AS b, c`."""
        if self._word(index) == "OUTER":
            index += 1
        index = self._skip_name(index)
        if self._word(index) != "(":
            self._stop_at(index)
            return high
        index = self._after(index)
        if self._is_name(index) and self._word(index) not in (*_NO_ALIAS, "AS"):
            index = self._add_alias(index)
        while index < high and self._word(index) not in (*_ENDS, "LATERAL"):
            index += 1
        return index

    def _read_pivot(self, index: int) -> int:
        while index < self._high and self._word(index) != "(":
            index += 1
        return self._read_alias(self._after(index), index, index, ())

    def _is_name(self, index: int) -> bool:
        if not self._low <= index < self._high:
            return False
        token = self._code.tokens[index]
        # A string in double quotes is a name with spark.sql.ansi.doubleQuotedIdentifiers.
        return token.kind in ("word", "quoted", "template") or token.text.startswith('"')

    def _skip_name(self, index: int) -> int:
        """Skip a name such as `a.b` or `a_{{ b }}.c`."""
        tokens = self._code.tokens
        after = index
        while self._is_name(after):
            after += 1
            while self._is_name(after) and tokens[after].start == tokens[after - 1].end:
                after += 1
            if self._word(after) != "." or after + 1 >= self._high:
                break
            after += 1
        return after

    def _read_names(self, low: int, high: int) -> tuple[str | None, ...]:
        names: list[str | None] = [""]
        for token in self._code.tokens[low:high]:
            if token.text == ".":
                names.append("")
            elif token.has_template:
                names[-1] = None
            elif names[-1] is not None:
                names[-1] += token.value.lower()
        return tuple(names)

    def _skip_options(self, index: int) -> int:
        """Skip a version, options and a sample between a table and its alias."""
        while True:
            is_travel = self._word(index) == "FOR" and self._word(index + 1) in _TRAVEL
            travel = index + is_travel
            if self._word(travel) in _TRAVEL and self._word(travel + 1) == "AS":
                index = travel + 3
                index += 1 + (self._word(index) == "-")
                index = self._after(index) if self._word(index) == "(" else index
                while self._word(index) in ("+", "-"):
                    index += 2 + 2 * (self._word(index + 1) == "INTERVAL")
            elif self._word(index) == "WITH" and self._word(index + 1) == "(":
                index = self._after(index + 1)
            elif self._word(index) in ("TABLESAMPLE", "REPEATABLE"):
                while index < self._high and self._word(index) != "(":
                    index += 1
                index = self._after(index)
            else:
                return index

    def _read_alias(self, index: int, start: int, end: int, names: tuple[str | None, ...]) -> int:
        """Add a relation by its alias, or by its names if it has none."""
        has_as = self._word(index) == "AS"
        if has_as or (self._is_name(index) and self._word(index) not in _NO_ALIAS):
            return self._add_alias(index + has_as)
        if names:
            self._add(names, start, end)
        return index

    def _add_alias(self, index: int) -> int:
        if not self._is_name(index):
            self._stop_at(index)
            return index + 1
        after = self._skip_name(index)
        is_open = self._word(index) == "IDENTIFIER" and self._word(after) == "("
        self._add((None,) if is_open else self._read_names(index, after), index, after)
        while self._word(after) == "(":
            after = self._after(after)
        return after

    def _add(self, names: tuple[str | None, ...], low: int, high: int) -> None:
        tokens = self._code.tokens[low:high]
        text = "".join(token.text for token in tokens)
        self.relations.found.append(Relation(names, text, tokens[0].start))
