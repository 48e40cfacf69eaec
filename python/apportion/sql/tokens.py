"""Splits SQL text into tokens with exact offsets: sqlglot's tokenizer with the rules of Spark.

Templates are masked before sqlglot reads the text. A token has the characters of the text itself.
"""

from __future__ import annotations

import gc
import re
from functools import cached_property
from typing import Literal, NamedTuple

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from apportion.sql.templates import FILLER, TAG, Effect, has_template, mask, read_effect

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
    """One token, `sql[start:end]`. `word` is a keyword in upper case, or a symbol, else empty."""

    kind: Kind
    text: str
    start: int
    end: int
    word: str = ""

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
    def effect(self) -> Effect:
        """The effect of a template on the SQL around it, or "value" for every other token."""
        return read_effect(self.text) if self.kind == "template" else "value"

    @property
    def has_template(self) -> bool:
        """Whether the token is a template, or has one in it."""
        return self.kind == "template" or has_template(self.text)


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
_MASKS = FILLER + TAG


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
        TAG: TokenType.UNKNOWN,
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
# A backslash continues a line comment. sqlglot ends it there.
_CONTINUED_COMMENT = re.compile(r"--(?:[^\r\n]*\\\n)+")
_END_OF_STATEMENT = re.compile(r";[ \t]*(?:--[^\r\n]*)?(?=[\r\n]|\Z)")
_PIECE = re.compile(
    rf"""--[^\r\n]*
    | ' (?: \\. | (?!{_END_OF_STATEMENT.pattern}) [^'\\] )* '
    | " (?: \\. | (?!{_END_OF_STATEMENT.pattern}) [^"\\] )* "
    | ` (?: (?!{_END_OF_STATEMENT.pattern}) [^`] )* `
    | (?P<opener> ['"`] | /\* | \$[A-Za-z]*\$ )""",
    re.VERBOSE | re.DOTALL,
)
_TEMPLATES = ("{{", "{%", "{#", "${")
_NOUNS = {"`": "quoted name", "/*": "comment"} | dict.fromkeys(_TEMPLATES, "template")


def tokenize(sql: str) -> TokenizedText:
    """Split a text into tokens.

    A string, comment or template without an end makes the rest of its statement one `unreadable`
    token. Takes time linear in the length of the text.
    """
    # All tokens stay in use, so looking for unused ones would take a third of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return _Reader(sql).run()
    finally:
        if was_enabled:
            gc.enable()


class _Reader:
    """Adds comments to sqlglot's tokens.

    `code` is the text without templates, in which a line comment ends at its line and each `/*+` is
    one symbol. It has the length of the text.
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        masked = mask(sql)
        self._templates = dict(masked.templates)
        code = _HINT.sub(f"{_HINT_START}  ", masked.sql)
        self._code = _CONTINUED_COMMENT.sub(lambda comment: comment[0].replace("\\\n", "  "), code)
        self._tokens: list[Token] = []
        self._problems: list[Problem] = []
        self._end = 0  # of the last token

    def run(self) -> TokenizedText:
        try:
            self._read(0, len(self._sql))
        except TokenError:
            self._read_around_openers()
        return TokenizedText(self._tokens, self._problems)

    def _read_around_openers(self) -> None:
        """Read what is before and behind each statement with a quote or comment without an end.

        A quote that has no end can be in an earlier statement than sqlglot reports, so here a
        quoted text ends before a semicolon at the end of a line.
        """
        start = position = 0
        while match := _PIECE.search(self._code, position):
            position = self._find_end(match)
            if position == -1:
                self._read_or_give_up(start, match.start())
                start = position = self._add_unreadable(match.start(), match[0])
        self._read_or_give_up(start, len(self._code))

    def _find_end(self, piece: re.Match[str]) -> int:
        """Return the end of a comment or of a quoted text, or -1 if it has none."""
        opener = piece["opener"]
        if opener == "/*":
            return self._find_comment_end(piece)
        if opener and opener[0] == "$":
            close = self._code.find(opener, piece.end())
            return -1 if close == -1 else close + len(opener)
        return -1 if opener else piece.end()

    def _read_or_give_up(self, start: int, end: int) -> None:
        try:
            self._read(start, end)
        except TokenError:
            self._add_unreadable(start, self._code[start : start + 1])

    def _read(self, start: int, end: int) -> None:
        # A dollar at the very end of a text is an error for sqlglot.
        tokens = _Tokenizer(dialect=Spark).tokenize(self._code[start:end] + "\n")
        sql, code, add, hint = self._sql, self._code, self._tokens.append, TokenType.HINT
        for token in tokens:
            low, high = token.start + start, token.end + start + 1
            if low < self._end:
                continue  # in a template without an end
            if low > self._end and not code[self._end : low].isspace():
                self._add_comments(low)
            kind = _KINDS.get(token.token_type, "symbol")
            if code[high - 1] in _MASKS and kind in ("word", "symbol"):
                is_whole = not code[low:high].strip(_MASKS)
                if is_whole and (kind == "word" or low in self._templates):
                    kind = "template"
                high = self._templates.get(high - 1, high)
            # To Spark, 0xff is a name. sqlglot divides it.
            if kind == "word" and low == self._end and sql.startswith(("0x", "0X"), low - 1):
                low = self._tokens.pop().start
            text = sql[low:high]
            if kind == "template":
                pass
            elif token.token_type == hint:
                is_start = code[low] == _HINT_START and sql.startswith("/*+", low)
                kind = "hint start" if is_start else "hint end" if text == "*/" else "symbol"
                high = low + 3 if is_start else high
                text = sql[low:high]
            elif text in ("{", "$") and code.startswith(_TEMPLATES, low):
                self._add_unreadable(low, sql[low : low + 2])
                continue
            word = text.upper() if kind == "word" else text if kind == "symbol" else ""
            add(Token(kind, text, low, high, word))
            self._end = high
        if self._end < end and not code[self._end : end].isspace():
            self._add_comments(end)

    def _add_unreadable(self, start: int, opener: str) -> int:
        """Add the rest of a statement as one token. Return its end."""
        end = _END_OF_STATEMENT.search(self._code, start)
        self._end = end.start() if end else len(self._sql)
        self._tokens.append(Token("unreadable", self._sql[start : self._end], start, self._end))
        message = f"the {_NOUNS.get(opener, 'string')} opened by {opener} is never closed"
        self._problems.append(Problem(start, start + len(opener), "APH001", message))
        return self._end

    def _add_comments(self, end: int) -> None:
        position = self._end
        while comment := _COMMENT.search(self._code, position, end):
            start, position = comment.start(), self._find_comment_end(comment)
            if position == -1:
                self._add_unreadable(start, "/*")
                return
            self._tokens.append(Token("comment", self._sql[start:position], start, position))

    def _find_comment_end(self, opener: re.Match[str]) -> int:
        if opener[0] == "/*":
            return self._comment_ends.get(opener.start(), -1)
        end = _LINE_END.search(self._code, opener.start())
        return end.start() if end else len(self._code)

    @cached_property
    def _comment_ends(self) -> dict[int, int]:
        """The end of each comment by its start. Comments nest."""
        ends: dict[int, int] = {}
        opened: list[int] = []
        for edge in _COMMENT_EDGE.finditer(self._code):
            if edge[0] == "/*":
                opened.append(edge.start())
            elif opened:
                ends[opened.pop()] = edge.end()
        return ends
