"""Reads texts for the functions that need all of their blocks."""

from __future__ import annotations

from apportion.errors import ApportionError
from apportion.sql.blocks import Text, read


class HintError(ApportionError, ValueError):
    """A wrong hint, an unknown block path, or a text without readable blocks."""


def read_or_raise(sql: str) -> Text:
    """Return the blocks of a text. Raises `HintError` if a statement cannot be read."""
    text = read(sql)
    if text.problem is None:
        return text
    place = text.describe(text.problem.start)
    if len(text.statements) > 1:
        unreadable = (statement for statement in text.statements if statement.problem)
        place = f"statement {next(unreadable).number}, {place}"
    raise HintError(f"cannot find the query's blocks: {text.problem.message} ({place})")
