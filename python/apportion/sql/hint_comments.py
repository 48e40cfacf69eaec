"""Reads hint comments: `/*+ NAME(argument, ...), NAME */`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from apportion.sql.templates import read_effect
from apportion.sql.tokens import Kind, Problem, Token

ArgumentKind = Literal[
    "integer",
    "decimal",
    "name",
    "string",
    "open",  # a parameter (:n, ?) or a template, so the value is not known yet
    "other",
]
_NUMBER = re.compile(
    r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[LSYFDlsyfd])?"
)
_HINT_START: Kind = "hint start"
_UNREADABLE: Kind = "unreadable"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a hint, `sql[start:end]`."""

    tokens: tuple[Token, ...]
    text: str
    start: int
    end: int

    @property
    def kind(self) -> ArgumentKind:
        kinds = [token.kind for token in self.tokens]
        if self.has_template or self.tokens[0].text in (":", "?"):
            return "open"
        number = self._number
        if number:
            return "integer" if number.lstrip("-").isdecimal() else "decimal"
        if set(kinds) == {"string"}:
            return "string"
        if all(token.text == "." for token in self.tokens[1::2]) and all(
            kind in ("word", "quoted") for kind in kinds[::2]
        ):
            return "name"
        return "other"

    @property
    def _number(self) -> str:
        if any(token.kind != "symbol" for token in self.tokens[:-1]):
            return ""
        text = "".join(token.text for token in self.tokens)
        return text if _NUMBER.fullmatch(text) else ""

    @property
    def has_template(self) -> bool:
        """Whether a template renders to a part of the argument, as in `'{{ size }}'`."""
        return any(token.has_template for token in self.tokens)

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
    code: list[Token] = []
    comments: dict[int, HintComment] = {}
    problems: list[Problem] = []
    index = 0
    last_end = max((i for i, token in enumerate(tokens) if token.kind == "hint end"), default=-1)
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "hint start":
            is_closed = index < last_end
            end = index + 1
            while end < len(tokens) and not _ends_comment(tokens[end], is_closed):
                end += 1
            if is_closed and tokens[end].kind == "hint end":
                comment = read_comment(sql, token, tuple(tokens[index + 1 : end]), tokens[end])
                comments[comment.start] = comment
                stop, kind = comment.end, _HINT_START
                index = end
            else:
                message = "the hint comment opened by /*+ is never closed"
                problems.append(Problem(token.start, token.end, "APH001", message))
                stop, kind = tokens[end - 1].end, _UNREADABLE
                index = end - 1
            code.append(Token(kind, sql[token.start : stop], token.start, stop))
        elif token.kind != "comment":
            code.append(token)
        index += 1
    return FoldedTokens(code, comments, problems)


def _ends_comment(token: Token, is_closed: bool) -> bool:
    return token.kind in ("hint end", "unreadable") or (token.text == ";" and not is_closed)


def read_comment(sql: str, start: Token, inner: tuple[Token, ...], end: Token) -> HintComment:
    """Read the tokens between `/*+` and `*/`."""
    tokens = [token for token in inner if not _renders_to_nothing(token)]
    has_control = any(_is_control(token) for token in tokens)
    hints: list[Hint] = []
    stray: Token | None = None
    index = 0
    after_comma = True  # the first hint needs no comma
    while index < len(tokens):
        token = tokens[index]
        if _is_control(token):
            index += 1
            continue
        if token.text == "," and not after_comma:
            after_comma = True
            index += 1
            continue
        if token.kind not in ("word", "quoted", "template"):
            stray = stray or token
            index += 1
            continue
        hint, index, wrong = _read_hint(sql, tokens, index)
        hints.append(hint)
        stray = stray or wrong
        after_comma = False
    if after_comma:
        stray = stray or end  # the comment is empty or ends with a comma
    if has_control:
        stray = None  # the templates decide which tokens Spark reads
    is_open = has_control or any(hint.is_open for hint in hints)
    return HintComment(tuple(hints), stray, inner, start.start, end.end, is_open)


def _renders_to_nothing(token: Token) -> bool:
    is_template = token.kind == "template"
    return token.kind == "comment" or (is_template and read_effect(token.text) == "nothing")


def _is_control(token: Token) -> bool:
    return token.kind == "template" and token.text.startswith("{%")


def _read_hint(sql: str, tokens: list[Token], index: int) -> tuple[Hint, int, Token | None]:
    name = last = tokens[index]
    is_open = name.has_template
    arguments: list[Argument] = []
    stray: Token | None = None
    index += 1
    if index < len(tokens) and tokens[index].text == "(":
        opened = tokens[index]
        close = _find_closing(tokens, index)
        inside, last = tokens[index + 1 : close], tokens[min(close, len(tokens) - 1)]
        index = close + 1
        if close == len(tokens):
            stray = opened
        for part in _split(inside):
            if part:
                start, end = part[0].start, part[-1].end
                arguments.append(Argument(tuple(part), sql[start:end], start, end))
                stray = stray or _find_misfit(part)
            else:
                stray = stray or last
    text = sql[name.start : last.end]
    upper = name.value.upper()
    return Hint(upper, tuple(arguments), text, name.start, last.end, is_open), index, stray


def _find_closing(tokens: list[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
        if depth == 0:
            return index
    return len(tokens)


def _split(tokens: list[Token]) -> list[list[Token]]:
    """Split at the commas outside parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


_OPERANDS = ("word", "quoted", "number")
_BINARY = frozenset("+-*/%=<>|&^~!;") | {"||", "->", "=>"}


def _find_misfit(argument: list[Token]) -> Token | None:
    """Return the first token that ends the single primary expression that Spark allows, or None."""
    depth = 0
    for index, token in enumerate(argument):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        before = argument[index - 1] if index else None
        if depth or token.kind == "template":
            continue
        if token.kind in ("hint start", "hint end"):
            return token
        if token.text in _BINARY and not (token.text == "-" and before is None):
            return token
        if token.kind in _OPERANDS and before is not None and before.kind in (*_OPERANDS, "string"):
            return token
    return None
