"""Splits SQL text into tokens with exact offsets, by the rules of Spark's lexer.

Templates are one addition to Spark's rules, because SQL files often contain them: `{{ x }}`,
`{% if x %}`, `{# x #}` and `${x}` are one token each. None of these is valid code in Spark SQL.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

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


class Problem(NamedTuple):
    """The place `sql[start:end]` where reading stopped; `code` is a code of the linter."""

    start: int
    end: int
    code: str
    message: str


class TokenizedText(NamedTuple):
    """The tokens of a text without white space; with a problem, the tokens before it."""

    tokens: list[Token]
    problem: Problem | None


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
    | (?P<template> \{\{.*?\}\} | \{%.*?%\} | \{\#.*?\#\} | \$\{.*?\} )
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
    "number": "number",
    "word": "word",
    "symbol": "symbol",
}

_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")

_UNCLOSED = {
    "'": "string",
    '"': "string",
    "`": "quoted name",
}


def tokenize(sql: str) -> TokenizedText:
    """Split a text into tokens. Stop at the first string, comment or template without an end.

    Takes time linear in the length of the text.
    """
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.match(sql, position):
        group, end = match.lastgroup or "", match.end()
        if group == "bracketed":
            end = _find_comment_end(sql, position)
        elif group == "dollar":
            end = _find_dollar_string_end(sql, match)
        problem = _find_unclosed(sql, group, match, end)
        if problem is not None:
            return TokenizedText(tokens, problem)
        if group != "space":
            tokens.append(Token(_KINDS[group], sql[position:end], position, end))
        position = end
    return TokenizedText(tokens, None)


def _find_comment_end(sql: str, start: int) -> int:
    """Return the end of a comment, or -1. Comments nest, but `/*+` inside one opens nothing."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return -1


def _find_dollar_string_end(sql: str, tag: re.Match[str]) -> int:
    """Return the end of `$tag$ text $tag$`, or -1."""
    close = sql.find(tag.group(), tag.end())
    return -1 if close == -1 else close + len(tag.group())


def _find_unclosed(sql: str, group: str, match: re.Match[str], end: int) -> Problem | None:
    start, text = match.start(), match.group()
    if end == -1:
        noun = "comment" if group == "bracketed" else "string"
    elif group == "symbol" and text in _UNCLOSED:
        noun = _UNCLOSED[text]
    elif group == "symbol" and sql[start : start + 2] in ("{{", "{%", "{#", "${"):
        noun, text = "template", sql[start : start + 2]
    else:
        return None
    end = start + len(text)
    return Problem(start, end, "APH001", f"the {noun} opened by {text} is never closed")
