"""Splits SQL text into tokens with exact offsets, by the rules of Spark's lexer.

Templates are one addition to Spark's rules, because SQL files often contain them: `{{ x }}`,
`{% if x %}`, `{# x #}` and `${x}` are one token each. None of these is valid code in Spark SQL.
A string or comment continues behind a template in it, as in `'{{ var('day') }}'`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from apportion.sql import templates

Kind = Literal[
    "word",  # a keyword or a plain identifier
    "quoted",  # `an identifier`
    "string",  # 'text', "text", r'text', $$text$$
    "number",
    "comment",  # -- or /* */
    "hint start",  # /*+
    "hint end",  # */
    "template",
    "symbol",
    "unreadable",  # the rest of a statement after a string or comment without an end
]


class Token(NamedTuple):
    """One token, `sql[start:end]`."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The keyword in upper case, or the symbol; empty for every other kind."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def value(self) -> str:
        """The value of an identifier or a string: its text without the quotes."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`")
        if self.kind == "string":
            quote = self.text.find("$", 1) + 1 if self.text[0] == "$" else 1
            return self.text.lstrip("rR")[quote:-quote]
        return self.text

    @property
    def has_template(self) -> bool:
        """Whether the token is a template, or has one in it."""
        return self.kind == "template" or "{{" in self.text or "{%" in self.text


class Problem(NamedTuple):
    """The place `sql[start:end]` where reading stopped; `code` is a code of the linter."""

    start: int
    end: int
    code: str
    message: str


class TokenizedText(NamedTuple):
    """The tokens of a text without white space, and a problem for each `unreadable` token."""

    tokens: list[Token]
    problems: list[Problem]


_TOKEN = re.compile(
    r"""
      (?P<space> \s+ )
    | (?P<comment> -- (?: \\\n | [^\r\n] )* )
    | (?P<hint_start> /\*\+ )
    | (?P<bracketed> /\* )
    | (?P<hint_end> \*/ )
    | (?P<string> [rR]'[^']*' | [rR]"[^"]*"
        | '[^'\\]*(?:(?:\\.|'')[^'\\]*)*'
        | "[^"\\]*(?:(?:\\.|"")[^"\\]*)*" )
    | (?P<quoted> `[^`]*(?:``[^`]*)*` )
    | (?P<dollar> \$[A-Za-z]*\$ )
    | (?P<template> \{[{%\#] )
    | (?P<variable> \$\{ )
    | (?P<number> [0-9]+[eE][+-][0-9]+
        | (?: [0-9]+\.[0-9]* | \.[0-9]+ | [0-9]+ ) (?: [eE][+-]?[0-9]+ )?
          (?: [bB][dD] | [LSYFDlsyfd] )? (?! \w ) )
    | (?P<word> \w+ )
    | (?P<symbol> \|> | \|\| | -> | => | :: | . )
    """,
    re.VERBOSE | re.DOTALL,
)

_KINDS: dict[str, Kind] = {
    "comment": "comment",
    "hint_start": "hint start",
    "bracketed": "comment",
    "hint_end": "hint end",
    "string": "string",
    "quoted": "quoted",
    "dollar": "string",
    "template": "template",
    "variable": "template",
    "number": "number",
    "word": "word",
    "symbol": "symbol",
}

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/|\{[{%#]")
_QUOTED_EDGE = re.compile(r"\\.|(['\"`])|\{[{%#]", re.DOTALL)
_LINE_EDGE = re.compile(r"\\\n|[\r\n]|\{[{%#]|\Z")
_TEMPLATE_EDGE = re.compile(r"\{[{%#]")
_END_OF_STATEMENT = re.compile(r";[ \t]*(?:--[^\r\n]*)?(?=[\r\n]|\Z)")

# Limits of the search for templates in strings and comments. SQL without Jinja can have the start
# of a template there, and the search must not read the whole text for each of them.
_LONGEST_INNER_TEMPLATE = 2000
_MOST_INNER_FAILURES = 100
_UNCLOSED = {"'": "string", '"': "string", "`": "quoted name"}
_NOUNS = {"bracketed": "comment", "template": "template", "variable": "template"}


def tokenize(sql: str) -> TokenizedText:
    """Split a text into tokens.

    A string, comment or template without an end makes the rest of its statement one `unreadable`
    token. Takes time linear in the length of the text.
    """
    return _Tokenizer(sql).run()


class _Tokenizer:
    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._tokens: list[Token] = []
        self._problems: list[Problem] = []
        # The first string with the end of a statement in it, which may be two unclosed strings.
        self._suspect: Token | None = None
        self._end_of_raw = 0
        self._is_jinja_valid = True
        self._budget = 4 * len(sql) + 100_000  # of characters to read again
        self._inner_failures = 0

    def run(self) -> TokenizedText:
        position = 0
        while match := _TOKEN.match(self._sql, position):
            group = match.lastgroup or ""
            end = self._find_end(group, match)
            if end == -1:
                position = self._recover(group, match)
                continue
            if group != "space":
                is_raw = group == "template" and end == position + 1
                kind = "symbol" if is_raw else _KINDS[group]
                token = Token(kind, self._sql[position:end], position, end)
                self._tokens.append(token)
                # The body of a function between dollars can have several statements.
                is_string = group in ("string", "quoted")
                if is_string and self._suspect is None and _END_OF_STATEMENT.search(token.text):
                    self._suspect = token
            position = end
        return TokenizedText(self._tokens, self._problems)

    def _find_end(self, group: str, match: re.Match[str]) -> int:
        """Return the end of a token, or -1 if it has none."""
        sql, start, end = self._sql, match.start(), match.end()
        if group == "template":
            return self._find_template_end(start)
        if group == "variable":
            return sql.find("}", end) + 1 or -1
        if group == "bracketed":
            return self._find_comment_end(start)
        if group == "dollar":
            close = sql.find(match.group(), end)
            return -1 if close == -1 else close + len(match.group())
        if group == "comment" and self._has_template(start, end):
            return self._find_line_end(start)
        if group in ("string", "quoted") and self._has_template(start, end):
            quoted_end = self._find_quoted_end(start)
            return end if quoted_end == -1 else quoted_end
        if group == "symbol" and match.group() in _UNCLOSED:
            return self._find_quoted_end(start) if self._has_template(start, len(sql)) else -1
        return end

    def _has_template(self, start: int, end: int) -> bool:
        is_raw = start < self._end_of_raw
        return not is_raw and _TEMPLATE_EDGE.search(self._sql, start, end) is not None

    def _find_template_end(self, start: int) -> int:
        sql = self._sql
        if start < self._end_of_raw:
            return start + 1
        end = templates.find_end(sql, start, len(sql)) if self._is_jinja_valid else -1
        if end == -1:
            # Jinja fails on this text. Every further search could read all of the text in vain.
            self._is_jinja_valid = False
            end = templates.find_next_closer(sql, start)
        if end != -1 and templates.starts_raw(sql[start:end]):
            self._end_of_raw = templates.find_end_of_raw(sql, end)
        return end

    def _skip_inner_template(self, start: int, *, is_on_one_line: bool) -> int:
        """Return the end of a template in a string or comment, or the end of its first brackets."""
        if self._inner_failures == _MOST_INNER_FAILURES:
            return start + 2
        limit = min(len(self._sql), start + _LONGEST_INNER_TEMPLATE)
        if is_on_one_line:
            line_end = self._sql.find("\n", start, limit)
            limit = limit if line_end == -1 else line_end
        end = templates.find_end(self._sql, start, limit)
        self._inner_failures += end == -1
        return start + 2 if end == -1 else end

    def _find_quoted_end(self, start: int) -> int:
        """Return the end of a string or quoted name with templates in it."""
        sql = self._sql
        is_raw = sql[start] in "rR"
        quote = sql[start + is_raw]
        position = start + is_raw + 1
        while edge := _QUOTED_EDGE.search(sql, position):
            text, position = edge.group(), edge.end()
            if text[0] == "{":
                position = self._skip_inner_template(edge.start(), is_on_one_line=True)
            elif text[0] == "\\" and (is_raw or quote == "`"):
                position = edge.start() + 1
            elif text == quote:
                if is_raw or not sql.startswith(quote, position):
                    return position
                position += 1
        return -1

    def _find_line_end(self, start: int) -> int:
        """Return the end of a line comment with templates in it."""
        position = start
        while edge := _LINE_EDGE.search(self._sql, position):
            if edge.group()[:1] == "{":
                position = self._skip_inner_template(edge.start(), is_on_one_line=False)
            elif edge.group()[:1] == "\\":
                position = edge.end()
            else:
                return edge.start()
        return len(self._sql)

    def _find_comment_end(self, start: int) -> int:
        """Return the end of a comment, or -1. Comments nest, but `/*+` in one opens nothing."""
        depth, position = 0, start
        while edge := _COMMENT_EDGE.search(self._sql, position):
            position = edge.end()
            if edge.group()[0] == "{":
                position = self._skip_inner_template(edge.start(), is_on_one_line=False)
                continue
            depth += 1 if edge.group() == "/*" else -1
            if depth == 0:
                return position
        return -1

    def _recover(self, group: str, match: re.Match[str]) -> int:
        """Add an `unreadable` token and a problem. Return the place to continue at."""
        sql, start, opener = self._sql, match.start(), match.group()
        noun = _NOUNS.get(group) or _UNCLOSED.get(opener, "string")
        end = _END_OF_STATEMENT.search(sql, start)
        suspect = self._suspect
        if suspect is not None and noun in _UNCLOSED.values():
            # The quote of an earlier statement is the more likely error.
            start, opener = suspect.start, suspect.text.lstrip("rR")[0]
            noun = _UNCLOSED[opener]
            end = _END_OF_STATEMENT.search(sql, start)
            while self._tokens and self._tokens[-1].start >= start:
                self._tokens.pop()
        resume = end.start() if end else len(sql)
        self._budget -= len(sql) - resume
        if self._budget < 0:
            resume = len(sql)
        self._suspect = None
        self._tokens.append(Token("unreadable", sql[start:resume], start, resume))
        message = f"the {noun} opened by {opener} is never closed"
        self._problems.append(Problem(start, start + len(opener), "APH001", message))
        return resume
