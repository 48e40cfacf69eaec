"""Splits SQL text into tokens with exact offsets: sqlglot's tokenizer with the rules of Spark.

Templates are masked before sqlglot reads the text. A token has the characters of the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from sqlglot import Token as SqlglotToken
from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from apportion.sql.templates import FILLER, mask

Kind = Literal[
    "word",  # a keyword or a plain identifier, which can have templates in it
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
        return self.kind == "template" or any(each in self.text for each in ("{{", "{%", "${"))


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


_HINT_START = "\ue001"


# ruff: noqa: RUF012 - sqlglot declares these attributes.
class _Tokenizer(Spark.Tokenizer):
    """Reads single words and symbols, and hints in every place, as Spark's lexer does."""

    KEYWORDS = {
        "*/": TokenType.HINT,
        "|>": TokenType.PIPE,
        "||": TokenType.DPIPE,
        "->": TokenType.ARROW,
        "=>": TokenType.FARROW,
        "::": TokenType.DCOLON,
    }
    COMMENTS = ["--", ("/*", "*/")]
    SINGLE_TOKENS = {
        **Spark.Tokenizer.SINGLE_TOKENS,
        "!": TokenType.NOT,
        "\ufeff": TokenType.UNKNOWN,
        _HINT_START: TokenType.HINT,
    }
    STRING_ESCAPES = ["\\", "'", '"']
    NUMERIC_LITERALS = {}
    HEREDOC_STRINGS = ["$"]
    HEREDOC_TAG_IS_IDENTIFIER = True
    HEREDOC_STRING_ALTERNATIVE = TokenType.PARAMETER
    BIT_STRINGS = []
    HEX_STRINGS = []


_KINDS: dict[TokenType, Kind] = {
    TokenType.STRING: "string",
    TokenType.RAW_STRING: "string",
    TokenType.HEREDOC_STRING: "string",
    TokenType.IDENTIFIER: "quoted",
    TokenType.NUMBER: "number",
    TokenType.VAR: "word",
}
# After a star, `/*+` is the end of a comment and a plus.
_HINT = re.compile(r"(?<!\*)/\*\+")
_COMMENT = re.compile(r"--|/\*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_LINE_END = re.compile(r"[\r\n]|\Z")
_END_OF_STATEMENT = re.compile(r";[ \t]*(?:--[^\r\n]*)?(?=[\r\n]|\Z)")
_EDGE = re.compile(rf"/\*|\*/|\$[A-Za-z]*\$|{_END_OF_STATEMENT.pattern}")
_DOLLARS = re.compile(r"\$[A-Za-z]*\$")
_MOST_DOLLARS = 5
_TEMPLATES = ("{{", "{%", "{#", "${")
_NOUNS = {"`": "quoted name", "/*": "comment"} | dict.fromkeys(_TEMPLATES, "template")


def tokenize(sql: str) -> TokenizedText:
    """Split a text into tokens.

    A string, comment or template without an end makes the rest of its statement one `unreadable`
    token. Takes time linear in the length of the text.
    """
    return _Reader(sql).run()


class _Reader:
    """Adds comments and templates to sqlglot's tokens.

    `code` is the text without templates, in which a line comment ends at its line and each `/*+` is
    one symbol. It has the length of the text.
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        masked, self._templates = mask(sql)
        self._code = _end_line_comments(_HINT.sub(f"{_HINT_START}  ", masked))
        self._tokens: list[Token] = []
        self._problems: list[Problem] = []
        self._template = 0  # the first template that may follow the last token
        self._end = 0  # of the last token

    def run(self) -> TokenizedText:
        try:
            self._add_all(_scan(self._code), 0)
        except TokenError:
            for start, end in self._find_statements():
                self._read_statement(start, end)
        self._read_gap(len(self._sql))
        return TokenizedText(self._tokens, self._problems)

    def _find_statements(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges between semicolons at the ends of lines.

        A quote that has no end can be in an earlier statement than sqlglot reports, so each
        statement is read on its own. Comments and function bodies between dollars are not divided.
        """
        start, awaited = 0, ""
        for edge in _EDGE.finditer(self._code):
            if awaited:
                awaited = "" if edge[0] == awaited else awaited
            elif edge[0][0] == ";":
                yield start, edge.start()
                start = edge.start()
            elif edge[0] != "*/":
                closer = "*/" if edge[0] == "/*" else edge[0]
                awaited = closer if self._code.find(closer, edge.end()) != -1 else ""
        yield start, len(self._code)

    def _read_statement(self, start: int, end: int) -> None:
        code = self._code[start:end]
        try:
            self._add_all(_scan(code), start)
        except TokenError:
            opener, tokens = _close(code)
            if opener == "/*":
                self._add_all(tokens, start)
                unclosed = self._read_gap(end)
            else:
                self._add_all(tokens[:-1], start)
                unclosed = start + tokens[-1].start if tokens else start
            self._add_unreadable(self._sql.find(opener, unclosed), end, opener)

    def _add_all(self, tokens: list[SqlglotToken], offset: int) -> None:
        for token in tokens:
            start, end = token.start + offset, token.end + offset + 1
            if start < self._end:
                continue  # in a template without an end
            if start > self._end:
                self._read_gap(start)
            kind = _KINDS.get(token.token_type, "symbol")
            if self._sql.startswith("/*+", start) and token.token_type == TokenType.HINT:
                kind, end = "hint start", start + 3
            elif token.token_type == TokenType.HINT and end == start + 2:
                kind = "hint end"
            elif kind == "word" and not self._code[start:end].strip(FILLER):
                kind = "template"
            elif self._code.startswith(_TEMPLATES, start):
                unread = _END_OF_STATEMENT.search(self._code, start)
                end = unread.start() if unread else len(self._sql)
                self._add_unreadable(start, end, self._sql[start : start + 2])
                continue
            self._tokens.append(Token(kind, self._sql[start:end], start, end))
            self._end = end

    def _add_unreadable(self, start: int, end: int, opener: str) -> None:
        self._tokens.append(Token("unreadable", self._sql[start:end], start, end))
        message = f"the {_NOUNS.get(opener, 'string')} opened by {opener} is never closed"
        self._problems.append(Problem(start, start + len(opener), "APH001", message))
        self._end = end

    def _read_gap(self, end: int) -> int:
        """Add the comments and templates before `end`. Return the start of an unclosed comment."""
        position = self._end
        while True:
            while self._is_before(position):
                self._template += 1
            template = self._templates[self._template] if self._is_before(end) else None
            limit = template[0] if template else end
            comment = _COMMENT.search(self._code, position, limit)
            if comment:
                position = self._find_comment_end(comment)
                if position == -1:
                    return comment.start()
                self._add_gap("comment", comment.start(), position)
            elif template:
                position = template[1]
                self._add_gap("template", *template)
            else:
                return end

    def _is_before(self, position: int) -> bool:
        """Tell whether the next template starts before a position."""
        return (
            self._template < len(self._templates) and self._templates[self._template][0] < position
        )

    def _add_gap(self, kind: Kind, start: int, end: int) -> None:
        self._tokens.append(Token(kind, self._sql[start:end], start, end))

    def _find_comment_end(self, opener: re.Match[str]) -> int:
        position = opener.start()
        if opener[0] == "--":
            end = _LINE_END.search(self._code, position)
            return end.start() if end else len(self._code)
        depth = 0
        while edge := _COMMENT_EDGE.search(self._code, position):
            position = edge.end()
            depth += 1 if edge[0] == "/*" else -1
            if depth == 0:
                return position
        return -1


def _scan(code: str) -> list[SqlglotToken]:
    # A dollar at the very end of a text is an error for sqlglot.
    return _Tokenizer(dialect=Spark).tokenize(code + "\n")


def _close(code: str) -> tuple[str, list[SqlglotToken]]:
    """Return the opener that has no end, and the tokens of the code up to it.

    sqlglot does not tell the opener, but it can read the code with the right closer behind it. The
    last token is the one of the opener, unless it is a comment.
    """
    dollars = dict.fromkeys(_DOLLARS.findall(code))
    for opener in ("'", '"', "`", "/*", *list(dollars)[:_MOST_DOLLARS]):
        closer = "*/" * code.count("/*") if opener == "/*" else opener
        try:
            tokens = _scan(f"{code}\n{closer}")
        except TokenError:
            continue
        return opener, [token for token in tokens if token.start < len(code)]
    return code.lstrip()[:1], []


def _end_line_comments(code: str) -> str:
    """Join the lines of a line comment that a backslash continues. sqlglot ends it there."""
    if "\\\n" not in code:
        return code
    lines = code.split("\n")
    is_comment = False
    for index, line in enumerate(lines):
        is_comment = line.endswith("\\") and (is_comment or "--" in line)
        lines[index] = f"{line[:-1]}  " if is_comment else f"{line}\n"
    return "".join(lines)[:-1]
