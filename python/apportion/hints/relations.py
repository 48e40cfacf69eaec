"""Finds the tables of each block with sqlglot."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from apportion.hints.sqlglot_input import prepare
from apportion.sql.blocks import Block, StatementBlocks, Text
from apportion.sql.tokens import Problem


class Relation(NamedTuple):
    """A table, view, subquery or function in the FROM of a block, with its name for hints.

    `names` are the parts of the name in lower case, or the alias alone if one exists. `table` is
    the name without alias if it has only one part, as CTEs do, else None. `text` is the alias or
    name in the text.
    """

    names: tuple[str, ...]
    table: str | None
    text: str
    start: int


class Parsed:
    """A statement as parsed by sqlglot. With a `problem` there are no relations."""

    def __init__(
        self,
        text: Text,
        statement: StatementBlocks,
        code: str,
        trees: list[exp.Expr | None],
        problem: Problem | None,
    ) -> None:
        self.problem = problem
        self._sql = text.sql[statement.start : statement.end]
        self._code = code
        self._statement = statement
        self._trees = trees

    def relations_in(self, block: Block) -> list[Relation]:
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
        relations = (relation for node in nodes for relation in self._find_relation(node))
        return sorted(relations, key=lambda relation: relation.start)

    def _find_relation(self, node: exp.Expr) -> Iterator[Relation]:
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
        """Tell whether a name is in the text. sqlglot invents names for pipes and functions."""
        if not isinstance(part, exp.Identifier) or "start" not in part.meta:
            return False
        written = self._code[part.meta["start"] : part.meta["end"] + 1]
        return written.strip("`").replace("``", "`") == part.name


def parse(text: Text, statement: StatementBlocks) -> Parsed:
    """Return one statement of a text, parsed by sqlglot."""
    code = prepare(text, statement)
    trees: list[exp.Expr | None] = []
    problem = None
    try:
        with _silence_sqlglot():
            trees += sqlglot.parse(code, read="spark")
    except ParseError as error:
        problem = _locate_problem(statement, error)
    # sqlglot raises ValueError for some numbers, such as `LIMIT 3WITH`.
    except (SqlglotError, RecursionError, ValueError):
        problem = _report_unparsed(statement)
    if statement.blocks and any(isinstance(tree, exp.Command) for tree in trees):
        problem = _report_unparsed(statement)  # a Command is unparsed text
    return Parsed(text, statement, code, trees, problem)


def _locate_problem(statement: StatementBlocks, error: ParseError) -> Problem:
    detail = error.errors[0] if error.errors else {}
    column, near = detail.get("col"), detail.get("highlight")
    if not isinstance(column, int) or not near:
        return _report_unparsed(statement)
    start = max(statement.start, statement.start + column - len(near))
    message = f"sqlglot could not parse the statement at {near!r}"
    return Problem(start, start + len(near), "APH003", message)


def _report_unparsed(statement: StatementBlocks) -> Problem:
    kind = f"{statement.verb} statement" if statement.verb else "statement"
    message = f"sqlglot could not parse this {kind}"
    return Problem(statement.start, statement.start + 1, "APH003", message)


@contextmanager
def _silence_sqlglot() -> Iterator[None]:
    """Turn off sqlglot's warnings about unknown statements. The linter reports those itself."""
    logger = logging.getLogger("sqlglot")
    disabled = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = disabled
