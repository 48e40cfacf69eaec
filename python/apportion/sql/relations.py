"""Finds the tables in the FROM of a block, in the same pass as the blocks."""

from __future__ import annotations

import bisect
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from apportion.sql.tokens import Token

State = Literal[
    "",  # outside of a FROM
    "table",  # a table is next
    "alias",  # the next part of a name, or an alias
    "rest",  # a comma, a join or a condition
    "condition",
    "values",  # rows of VALUES
    "columns",  # columns of LATERAL VIEW
    "pipe",  # an operator of a pipeline
]
# The clauses after a FROM. Before BY, the second words start a clause too. Else they are names.
_CLAUSES = frozenset(
    ("WHERE", "HAVING", "WINDOW", "QUALIFY", "LIMIT", "OFFSET", "SELECT", "INSERT", "|>")
)
_BEFORE_BY = frozenset(("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"))
SET_OPERATORS = {"UNION": "union", "INTERSECT": "intersect", "EXCEPT": "except", "MINUS": "except"}
_ENDS = _CLAUSES | _BEFORE_BY | SET_OPERATORS.keys()
_JOIN_TYPES = ("INNER", "CROSS", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")
_VERSIONS = ("TIMESTAMP", "VERSION", "SYSTEM_TIME", "SYSTEM_VERSION")
_BEFORE_ALIAS = frozenset(
    (".", "AS", "FOR", "WITH", "TABLESAMPLE", "REPEATABLE", "INCLUDE", "EXCLUDE", "NULLS")
)
_NAMES = ("word", "quoted", "template")


@dataclass(slots=True, eq=False)
class Relation:
    """A table, view, subquery or function in the FROM of a block, with its name for hints.

    `names` are the parts of the name in lower case, or the alias alone if one exists. A part is
    None if a template renders to it. `text` is the alias or name in the text. `table` is the name
    of a table without a database, which can be a CTE.
    """

    names: tuple[str | None, ...]
    text: str
    start: int
    end: int
    table: str | None = None

    def is_named(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a hint means this relation. As Spark does, compare the last parts."""
        names = self.names[-len(parts) :]
        return len(names) == len(parts) and all(
            own is None or own == part for own, part in zip(names, parts, strict=True)
        )

    def may_be_named(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a hint may mean this table by a database that is not in the text."""
        is_alias = len(self.names) == 1 and (self.table or "").lower() != self.names[0]
        return not is_alias and parts[-len(self.names) :] == self.names


class Relations:
    """Relations in the order of the text.

    With `is_open`, there may be others, because of a template or of syntax that is not known.
    """

    def __init__(self) -> None:
        self.found: list[Relation] = []
        self.is_open = False

    def before(self, end: int) -> int:
        """Return the number of relations before an offset."""
        return bisect.bisect_left(self.found, end, key=lambda relation: relation.start)

    @cached_property
    def by_name(self) -> dict[str | None, list[Relation]]:
        """The relations by the last part of their names. Read them after the whole text."""
        relations: dict[str | None, list[Relation]] = defaultdict(list)
        for relation in self.found:
            relations[relation.names[-1]].append(relation)
        return relations


class RelationReader:
    """Reads the relations at one level of parentheses, token by token."""

    def __init__(self, code: list[Token], words: list[str], state: State = "") -> None:
        self._code = code
        self._words = words
        self.state: State = state
        self._next = 0  # the index of the next token to read
        self._last: Relation | None = None  # the relation that an alias would rename
        self._is_view = False
        self._group: int | None = None  # the first relation of `(a JOIN b)` before an alias

    def start(self, index: int, state: State) -> None:
        """Expect this state at an index."""
        self.state, self._next, self._last = state, index, None

    def open(self, relations: Relations, opening: int, *, is_query: bool) -> RelationReader:
        """Return the reader of the parentheses that are opened."""
        inner: State = ""
        before = self._code[opening - 1]
        if self.state and before.word == "IDENTIFIER":
            relations.is_open = True
        if self.state == "table" and opening >= self._next:
            inner = "" if is_query else "table"
            self.state, self._last = "alias", None
            self._group = len(relations.found)
        elif self.state == "alias" and self._last and self._last.end == before.end:
            # A function has no name for hints.
            relations.found.pop()
            self._last = None
        return RelationReader(self._code, self._words, inner)

    def read(self, relations: Relations, index: int) -> None:
        """Read a token outside of inner parentheses."""
        word, following, state = self._words[index], self._words[index + 1], self.state
        if index < self._next:
            return
        if word in _ENDS and (word not in _BEFORE_BY or following == "BY"):
            relations.is_open |= state == "table"
            self.state = ""
        elif word == "JOIN" and self._words[index - 1] != ".":
            self.state = "table"
        elif state == "pipe":
            return
        elif word == ",":
            self.state = state if state in ("values", "columns") else "table"
        elif word == "LATERAL":
            self._is_view = following == "VIEW"
            self.start(index + 1 + self._is_view, "table")
        elif word in ("PIVOT", "UNPIVOT"):
            self.state, self._last, self._group = "alias", None, None
        elif word in ("ON", "USING"):
            self.state = "condition"
        elif word in _JOIN_TYPES and state != "table":
            self.state = state if following == "(" else "rest"
        elif state == "table":
            self._read_table(relations, index)
        elif state == "alias":
            self._read_alias(relations, index)
        elif state == "values":
            is_operand = self._words[index - 1] == ")" or not self._words[index - 1]
            if word == "AS" or (is_operand and self._code[index].kind in _NAMES):
                self.state = "alias"
                self._read_alias(relations, index)
        elif state == "rest":
            relations.is_open = True

    def _read_table(self, relations: Relations, index: int) -> None:
        token, word = self._code[index], self._words[index]
        # Since Spark 4.1, STREAM(t) is a table.
        if word in ("TABLE", "OUTER") or (word == "STREAM" and self._words[index + 1] == "("):
            return
        self.state, self._last = "values" if word == "VALUES" else "alias", None
        self._group = None
        if token.kind not in _NAMES:
            relations.is_open = True
        elif word != "VALUES":
            name = None if token.has_template else token.value.lower()
            self._last = Relation((name,), token.text, token.start, token.end, token.value)
            relations.found.append(self._last)

    def _read_alias(self, relations: Relations, index: int) -> None:
        token, word, last = self._code[index], self._words[index], self._last
        name = None if token.has_template else token.value.lower()
        if word in _VERSIONS and self._words[index + 1] == "AS":
            self._next = index + 4  # VERSION AS OF 3
        elif word == "AS" and last is None and self._is_view:
            self.state, self._is_view = "columns", False
        elif word in _BEFORE_ALIAS:
            return
        elif token.kind not in _NAMES:
            relations.is_open = True
        elif self._words[index - 1] != ".":
            if last is None:
                # An alias of `(a JOIN b)` hides their names.
                for hidden in relations.found[self._group :] if self._group is not None else ():
                    hidden.names, hidden.text = ("",), ""
                last = Relation((), "", 0, 0)
                relations.found.append(last)
            last.names, last.text, last.start, last.end = (
                (name,),
                token.text,
                token.start,
                token.end,
            )
            self.state = "columns" if self._is_view else "rest"
            self._is_view = False
        elif last is not None:
            last.names, last.text = (*last.names, name), f"{last.text}.{token.text}"
            last.end, last.table = token.end, None
