"""Splits SQL text into statements, for the programs that run them and for the linter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apportion.errors import ApportionError
from apportion.sql.hint_comments import fold_hint_comments
from apportion.sql.positions import Positions
from apportion.sql.tokens import Token, tokenize

_TITLE_LENGTH = 70
_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


class Statement(NamedTuple):
    """One statement as text.

    `is_query` is true if the statement only reads, so that it may run more than once.
    """

    text: str
    is_query: bool

    @property
    def title(self) -> str:
        """The first line, cut to 70 characters."""
        return self.text.splitlines()[0][:_TITLE_LENGTH]


def split(text: str) -> list[Statement]:
    """Return the statements of `text` unchanged, with their comments and without semicolons.

    Takes time linear in the length of the text. Raises `ApportionError` if a string, comment or
    template never ends, or if the text has no statement.
    """
    tokens, problem = tokenize(text)
    folded = fold_hint_comments(text, tokens)
    problem = problem or folded.problem
    if problem is not None:
        place = Positions(text).describe(problem.start)
        raise ApportionError(
            f"the SQL cannot be split into statements: {problem.message} ({place})"
        )
    statements = list(_read_statements(text, folded.code))
    if not statements:
        raise ApportionError("there is no SQL statement to run")
    return statements


def find_statements(code: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the index range of each statement in `code`: its first index and the one after it.

    `code` comes from `fold_hint_comments`, so it has no semicolons of comments or strings. Every
    other semicolon ends a statement, even in parentheses. Empty statements are left out.
    """
    ends = [index for index, token in enumerate(code) if token.text == ";"]
    starts = [0, *(end + 1 for end in ends)]
    ranges = zip(starts, [*ends, len(code)], strict=True)
    return [(low, high) for low, high in ranges if low < high]


def _read_statements(text: str, code: Sequence[Token]) -> Iterator[Statement]:
    for low, high in find_statements(code):
        words = [token.word for token in code[low:high] if not _is_comment(token)]
        if not words:
            continue
        # `code` has no comments, so the text reaches from semicolon to semicolon to keep them.
        start = code[low - 1].end if low else 0
        end = code[high].start if high < len(code) else len(text)
        is_query = words[0] in _QUERY_STARTS and "INSERT" not in words
        yield Statement(text[start:end].strip(), is_query)


def _is_comment(token: Token) -> bool:
    return token.kind == "hint start" or (token.kind == "template" and token.text.startswith("{#"))
