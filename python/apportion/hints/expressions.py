"""Hints in sqlglot's expressions: a dialect that checks them, and changes that keep them.

`sqlglot.parse_one(sql, read="apportion")` reads Spark SQL. It raises sqlglot's `ParseError` for a
wrong hint, and keeps the hints of a second hint comment, which sqlglot drops. sqlglot 29 and later
find the dialect by its entry point. For older versions, import this module first.

The hints stay nodes of sqlglot's own classes, so that other tools write and copy them. In its
compiled form, sqlglot allows no subclasses of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import sqlglot
from sqlglot import ErrorLevel, ParseError, exp
from sqlglot.dialects.spark import Spark

from apportion.hints import grammar
from apportion.hints.lint import lint
from apportion.hints.reading import HintError
from apportion.sql.blocks import read
from apportion.sql.hint_comments import Hint

# The common base of expressions is exp.Expr since sqlglot 30.
Sql = TypeVar("Sql", str, "exp.Expr")

_MARK = "APPORTION_SELECT_"


class TypedHint(NamedTuple):
    """A valid hint of Apportion: its name in upper case, and the values of its arguments."""

    name: str
    values: tuple[int | float | str, ...]


class Apportion(Spark):
    """Spark SQL with checked hints."""

    def parse(self, sql: str, **options: Any) -> list[exp.Expr | None]:
        """Return the statements of a text. Raises `ParseError` for a hint that is an error."""
        if options.get("error_level") != ErrorLevel.IGNORE:
            for finding in lint(sql):
                if finding.severity == "error":
                    place = f"line {finding.line}, column {finding.column}"
                    raise ParseError.new(
                        f"{finding.code}: {finding.message} ({place})",
                        finding.message,
                        finding.line,
                        finding.column,
                    )
        return super().parse(_join_comments(sql), **options)


def read_hints(select: exp.Expr) -> list[TypedHint]:
    """Return the hints of Apportion that a SELECT uses, with the types of their values."""
    alone = exp.Select(hint=select.args.get("hint"), expressions=[exp.Literal.number(1)])
    hints = grammar.select_used(read(alone.copy().sql(dialect="spark")).blocks[0].hints)
    return [TypedHint(hint.name, grammar.read_values(hint)) for hint in hints.values()]


def edit(sql: Sql, change: Callable[[str], str]) -> Sql:
    """Apply a change of hints to a text, or to a copy of an expression."""
    return change(sql) if isinstance(sql, str) else _edit_expression(sql, change)


def _edit_expression(expression: exp.Expr, change: Callable[[str], str]) -> exp.Expr:
    copy = expression.copy()
    # The marks tell which block of the text is which SELECT of the expression.
    selects: list[exp.Select] = list(copy.find_all(exp.Select))
    for number, select in enumerate(selects):
        _set_hints(select, [exp.var(f"{_MARK}{number}"), *_hints_of(select)])
    before = copy.sql(dialect="spark")
    old = {block.path: block for block in read(before).blocks}
    for block in read(change(before)).blocks:
        if not block.hints or not block.hints[0].name.startswith(_MARK):
            raise HintError(
                f"sqlglot keeps block {block.path!r} of the expression as text, so its hints "
                "cannot be changed: pass the text of the statement"
            )
        marked = selects[int(block.hints[0].name.removeprefix(_MARK))]
        nodes = _hints_of(marked)[1:]
        if [hint.text for hint in block.hints] != [hint.text for hint in old[block.path].hints]:
            nodes = [_parse_hint(hint) for hint in block.hints[1:]]
        _set_hints(marked, nodes)
    return copy


def _hints_of(select: exp.Select) -> list[Any]:
    hint = select.args.get("hint")
    return list(hint.expressions) if hint else []


def _set_hints(select: exp.Select, nodes: list[Any]) -> None:
    select.set("hint", exp.Hint(expressions=nodes) if nodes else None)


def _parse_hint(hint: Hint) -> exp.Expr:
    select = sqlglot.parse_one(f"SELECT /*+ {hint.text} */ 1", read="spark")
    node: exp.Expr | str = select.args["hint"].expressions[0]
    if isinstance(node, str):
        raise HintError(f"sqlglot cannot read the hint {hint.text}")
    return node


def _join_comments(sql: str) -> str:
    """Move the hints of additional hint comments into the first one of each SELECT."""
    pieces: list[str] = []
    position = 0
    for block in sorted(read(sql).blocks, key=lambda block: block.select.start):
        if len(block.comments) > 1:
            hints = ", ".join(hint.text for hint in block.hints)
            pieces += (sql[position : block.comments[0].start], f"/*+ {hints} */")
            position = block.comments[-1].end
    return "".join((*pieces, sql[position:]))
