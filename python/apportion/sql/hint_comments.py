"""Reads hint comments: `/*+ NAME(argument, ...), NAME */`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from apportion.sql.tokens import Problem, Token

ArgumentKind = Literal[
    "integer",
    "decimal",
    "name",
    "string",
    "open",  # a parameter (:n, ?) or a template, so the value is not known yet
    "other",
]
_NUMBER = re.compile(
    r"(-?[0-9]+)|-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[LSYFDlsyfd])?"
)
_NAMES = ("word", "quoted")
_OPERANDS = (*_NAMES, "number")
_BINARY = frozenset("+-*/%=<>|&^~!;") | {"||", "->", "=>"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a hint, `sql[start:end]`."""

    tokens: tuple[Token, ...]
    kind: ArgumentKind
    text: str
    start: int
    end: int

    @property
    def integer(self) -> int:
        """The value of an `integer`. More than 20 digits are cut: no hint allows that many."""
        digits = self.tokens[-1].text.lstrip("0")[:20] or "0"
        return -int(digits) if len(self.tokens) > 1 else int(digits)

    @property
    def string(self) -> str:
        """The value of a `name` or a `string`, without quotes and otherwise as in the text."""
        return "".join(token.value for token in self.tokens)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a table name in lower case: `("db", "t")` for `db.t` and `'db.t'`."""
        if self.kind == "string":
            return tuple(part.strip("`").lower() for part in self.string.split("."))
        return tuple(token.value.lower() for token in self.tokens[::2])


@dataclass(frozen=True, slots=True)
class Hint:
    """One hint of a comment, `sql[start:end]`. `name` is in upper case.

    With `is_open`, a template renders to the name or to a part of it.
    """

    name: str
    arguments: tuple[Argument, ...]
    text: str
    start: int
    end: int
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class HintComment:
    """A hint comment, `sql[start:end]`.

    `stray` is the first token that Spark's grammar does not accept, or None. `hints` are all hints
    that can be read, before and after `stray`. `inner` are the tokens between `/*+` and `*/`,
    including comments and templates. With `is_open`, a template decides which hints the comment
    has, as in `/*+ {% if x %} A {% endif %} */`.
    """

    hints: tuple[Hint, ...]
    stray: Token | None
    inner: tuple[Token, ...]
    start: int
    end: int
    is_open: bool = False


class FoldedTokens(NamedTuple):
    """Tokens without comments, where each hint comment is one token of the kind `hint start`.

    `comments` are the hint comments by start offset. A hint comment without an end makes the rest
    of its statement one `unreadable` token and adds a problem.
    """

    code: list[Token]
    comments: dict[int, HintComment]
    problems: list[Problem]


def fold_hint_comments(sql: str, tokens: Sequence[Token]) -> FoldedTokens:
    """Drop ordinary comments, and replace the tokens of each hint comment by one token."""
    folded = FoldedTokens([], {}, [])
    last_end = max((i for i, token in enumerate(tokens) if token.kind == "hint end"), default=-1)
    start: int | None = None  # the index of the `/*+` that has no end yet
    for index, token in enumerate(tokens):
        if start is None:
            if token.kind == "hint start":
                start = index
            elif token.kind != "comment":
                folded.code.append(token)
        elif token.kind == "hint end":
            comment = read_comment(sql, tokens[start], tuple(tokens[start + 1 : index]), token)
            folded.comments[comment.start] = comment
            text = sql[comment.start : comment.end]
            folded.code.append(Token("hint start", text, comment.start, comment.end))
            start = None
        elif token.kind == "unreadable" or (token.text == ";" and start > last_end):
            _add_unclosed(sql, folded, tokens[start], tokens[index - 1].end)
            folded.code.append(token)
            start = None
    if start is not None:
        _add_unclosed(sql, folded, tokens[start], tokens[-1].end)
    return folded


def _add_unclosed(sql: str, folded: FoldedTokens, opener: Token, end: int) -> None:
    folded.code.append(Token("unreadable", sql[opener.start : end], opener.start, end))
    message = "the hint comment opened by /*+ is never closed"
    folded.problems.append(Problem(opener.start, opener.end, "APH001", message))


def read_comment(sql: str, start: Token, inner: tuple[Token, ...], end: Token) -> HintComment:
    """Read the tokens between `/*+` and `*/`."""
    tokens = [each for each in inner if each.kind != "comment" and each.effect != "nothing"]
    has_control = any(token.effect != "value" for token in tokens)
    hints: list[Hint] = []
    stray: Token | None = None
    after_comma = True  # the first hint needs no comma
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind in _NAMES or (token.kind == "template" and token.effect == "value"):
            hint, index, misfit = _read_hint(sql, tokens, index)
            hints.append(hint)
            stray = stray or misfit
            after_comma = False
            continue
        if token.text == "," and not after_comma:
            after_comma = True
        elif token.kind != "template":
            stray = stray or token
        index += 1
    if after_comma:
        stray = stray or end  # the comment is empty or ends with a comma
    if has_control:
        stray = None  # the templates decide which tokens Spark reads
    is_open = has_control or any(hint.is_open for hint in hints)
    return HintComment(tuple(hints), stray, inner, start.start, end.end, is_open)


def _read_hint(sql: str, tokens: list[Token], index: int) -> tuple[Hint, int, Token | None]:
    """Return a hint, the index after it, and its first token that Spark does not accept."""
    name = last = tokens[index]
    stray: Token | None = None
    parts: list[list[Token]] = []
    index += 1
    if index < len(tokens) and tokens[index].text == "(":
        stray = tokens[index]  # unless it is closed
        parts = [[]]
        depth = 0
        while stray and index < len(tokens):
            last = tokens[index]
            depth += {"(": 1, ")": -1}.get(last.text, 0)
            if depth == 0:
                stray = None
            elif last.text == "," and depth == 1:
                parts.append([])
            elif last is not stray:
                parts[-1].append(last)
            index += 1
    arguments: list[Argument] = []
    for part in parts:
        if part:
            start, end = part[0].start, part[-1].end
            kind = _find_kind(part)
            arguments.append(Argument(tuple(part), kind, sql[start:end], start, end))
        stray = stray or (_find_misfit(part) if part else last)
    text = sql[name.start : last.end]
    hint = Hint(name.value.upper(), tuple(arguments), text, name.start, last.end, name.has_template)
    return hint, index, stray


def _find_kind(tokens: list[Token]) -> ArgumentKind:
    kinds = [token.kind for token in tokens]
    if tokens[0].text in (":", "?") or any(token.has_template for token in tokens):
        return "open"
    number = _NUMBER.fullmatch("".join(token.text for token in tokens))
    if number and {*kinds[:-1]} <= {"symbol"}:
        return "integer" if number[1] else "decimal"
    if {*kinds} == {"string"}:
        return "string"
    is_path = all(token.text == "." for token in tokens[1::2])
    return "name" if is_path and all(kind in _NAMES for kind in kinds[::2]) else "other"


def _find_misfit(argument: list[Token]) -> Token | None:
    """Return the first token that ends the single primary expression that Spark allows, or None."""
    depth = 0
    before: Token | None = None
    for token in argument:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.kind != "template":
            is_second = before is not None and before.kind in (*_OPERANDS, "string")
            is_sign = token.text == "-" and before is None
            if (
                token.kind in ("hint start", "hint end")
                or (token.text in _BINARY and not is_sign)
                or (token.kind in _OPERANDS and is_second)
                # Spark reads other letters only in backticks.
                or (token.kind == "word" and not token.text.isascii() and not token.has_template)
            ):
                return token
        before = token
    return before if before is not None and before.text == "." else None
