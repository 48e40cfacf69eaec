"""The tables of each block, and where a statement cannot be parsed: what sqlglot does here."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from apportion.hints.sqlglot_input import plain
from apportion.sql.blocks import Block, Statement, Text
from apportion.sql.tokens import Problem


class Relation(NamedTuple):
    """A table, view, subquery or function in a block, by the name that hints know it by.

    `names` are the parts in lower case: the alias alone where there is one. `table` is the name
    without alias, when it has one part only, as names of CTEs have. `text` is the alias or name as
    it is written.
    """

    names: tuple[str, ...]
    table: str | None
    text: str
    start: int


class Parsed:
    """What sqlglot read of a statement. With a `problem` there are no relations."""

    def __init__(
        self,
        text: Text,
        statement: Statement,
        code: str,
        trees: list[exp.Expr | None],
        problem: Problem | None,
    ) -> None:
        self.problem = problem
        self._sql = text.sql[statement.start : statement.end]
        self._code = code
        self._statement = statement
        self._trees = trees

    def of(self, block: Block) -> list[Relation]:
        """Return the relations of a block of the statement, in the order of the text."""
        return [
            relation
            for relation in self._relations
            if block.start <= relation.start < block.end
            and self._statement.query_at(relation.start) is block.query
        ]

    @cached_property
    def _relations(self) -> list[Relation]:
        nodes = (
            node
            for tree in self._trees
            if tree is not None
            for node in tree.find_all(exp.Table, exp.TableAlias)
        )
        found = (relation for node in nodes for relation in self._relation(node))
        return sorted(found, key=lambda relation: relation.start)

    def _relation(self, node: exp.Expr) -> Iterator[Relation]:
        table: exp.Expr | None = node
        if isinstance(node, exp.Table):
            alias = node.args.get("alias")
            parts = [] if isinstance(alias, exp.TableAlias) and alias.this else node.parts
        else:
            table = node.parent
            alias = node.args.get("this")
            parts = [alias] if alias and not isinstance(table, exp.CTE) else []
        if not parts or not all(map(self._is_written, parts)):
            return
        start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
        names = tuple(part.name.lower() for part in parts)
        is_one_name = isinstance(table, exp.Table) and len(table.parts) == 1
        name = table.name.lower() if table is not None and is_one_name else None
        yield Relation(names, name, self._sql[start:end], self._statement.start + start)

    def _is_written(self, part: exp.Expr) -> bool:
        """Tell names from function calls, and from what sqlglot makes up for pipes."""
        if not isinstance(part, exp.Identifier) or "start" not in part.meta:
            return False
        written = self._code[part.meta["start"] : part.meta["end"] + 1]
        return written.strip("`").replace("``", "`") == part.name


def parse(text: Text, statement: Statement) -> Parsed:
    """Parse one statement of a text."""
    code = plain(text, statement)
    trees: list[exp.Expr | None] = []
    problem = None
    try:
        with _quiet():
            trees += sqlglot.parse(code, read="spark")
    except ParseError as error:
        problem = _problem(statement, error)
    except (SqlglotError, RecursionError):
        problem = _unread(statement)
    if statement.blocks and any(isinstance(tree, exp.Command) for tree in trees):
        problem = _unread(statement)  # kept as text
    return Parsed(text, statement, code, trees, problem)


def _problem(statement: Statement, error: ParseError) -> Problem:
    detail = error.errors[0] if error.errors else {}
    column, near = detail.get("col"), detail.get("highlight")
    if not isinstance(column, int) or not near:
        return _unread(statement)
    start = max(statement.start, statement.start + column - len(near))
    message = f"sqlglot could not parse past {near!r}"
    return Problem(start, start + len(near), "APH003", message)


def _unread(statement: Statement) -> Problem:
    what = f"a statement {statement.verb} of this form" if statement.verb else "this statement"
    message = f"sqlglot could not parse {what}"
    return Problem(statement.start, statement.start + 1, "APH003", message)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep sqlglot from logging that it does not know a statement: that is told in findings."""
    logger = logging.getLogger("sqlglot")
    disabled = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = disabled
