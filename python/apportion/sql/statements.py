"""Splits SQL text into statements."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import TokenType, tokenize
from sqlglot.errors import TokenError

from apportion.errors import ApportionError

_TITLE_LENGTH = 70
_QUERY_STARTS = {
    TokenType.SELECT,
    TokenType.WITH,
    TokenType.FROM,
    TokenType.VALUES,
    TokenType.TABLE,
    TokenType.L_PAREN,
}


class Statement(NamedTuple):
    """The text of one statement, and whether it only reads: then it may run more than once."""

    text: str
    is_query: bool

    @property
    def title(self) -> str:
        """Its first line, cut where that is long."""
        return self.text.splitlines()[0][:_TITLE_LENGTH]


def split(text: str) -> list[Statement]:
    """Return the statements of `text`, as they are written, without the semicolons.

    Raises `ApportionError` when a string or comment does not end, or there is no statement.
    """
    try:
        tokens = tokenize(text, read="spark")
    except TokenError as error:
        raise ApportionError(f"the SQL cannot be split into statements: {error}") from error
    statements: list[Statement] = []
    start, types = 0, list[TokenType]()
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            types.append(token.token_type)
            continue
        statements += _statement(text[start : token.start], types)
        start, types = token.end + 1, []
    statements += _statement(text[start:], types)
    if not statements:
        raise ApportionError("there is no SQL statement to run")
    return statements


def _statement(text: str, types: list[TokenType]) -> list[Statement]:
    if not types:
        return []
    is_query = types[0] in _QUERY_STARTS and TokenType.INSERT not in types
    return [Statement(text.strip(), is_query)]
