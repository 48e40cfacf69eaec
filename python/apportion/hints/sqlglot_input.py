"""A statement as sqlglot gets it: what it need not know is blanked, every character in its place.

Comments are gone, and hints with them: sqlglot loses a second hint comment, and those in pipes, and
fails on a string in a hint that has `*/` in it. Two things are rewritten because sqlglot's time for
them doubles with each one more: joins without a condition, and types called as functions in each
other. As all else stays where it is, sqlglot's positions are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from apportion.sql.blocks import Statement, Text
from apportion.sql.tokens import Token

_JOIN_TYPES = frozenset(
    ("INNER", "CROSS", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")
)
_CLAUSES = ("WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "SORT", "CLUSTER", "LIMIT")
_ENDS_OF_JOINS = frozenset(
    (*_CLAUSES, "DISTRIBUTE", "UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT", "|>", ",", ";")
)
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_TYPES = frozenset((*_NUMBERS, "BOOLEAN", "BINARY", "STRING", "DATE", "TIMESTAMP", "STRUCT"))


def plain(text: Text, statement: Statement) -> str:
    """Return a statement of a text on one line, at its length, without what is not code."""
    tokens = list(_code(text, statement))
    characters = [" "] * (statement.end - statement.start)
    changed = {**_joins_without_condition(tokens), **_types_as_functions(tokens)}
    for index, token in enumerate(tokens):
        at = token.start - statement.start
        characters[at : at + len(token.text)] = changed.get(index) or _stand_in(token)
    return "".join(characters)


def _code(text: Text, statement: Statement) -> Iterator[Token]:
    # sqlglot keeps what follows EXPLAIN as text. Without the word it is parsed.
    in_head = statement.verb in ("EXPLAIN", "DESCRIBE", "DESC")
    in_hint = False
    for token in text.between(statement.start, statement.end):
        in_hint = in_hint or token.kind == "hint start"
        in_head = in_head and token.word not in ("SELECT", "WITH", "FROM", "INSERT", "(")
        if not (in_hint or in_head or token.kind == "comment"):
            yield token
        in_hint = in_hint and token.kind != "hint end"


def _stand_in(token: Token) -> str:
    width = len(token.text)
    if token.kind == "template":
        # {{ x }} mostly is a name, {% if %} and {# comment #} are nothing.
        return (" " if token.text[:2] in ("{%", "{#") else "x") * width
    if token.kind == "string" and token.text.startswith("$"):
        return "'" + "x" * (width - 2) + "'"
    return token.text.replace("\n", " ").replace("\r", " ")


def _joins_without_condition(tokens: list[Token]) -> dict[int, str]:
    """Return commas for the joins that have neither ON nor USING, by their index."""
    changed: dict[int, str] = {}
    waiting: list[list[int]] = [[]]  # for each parenthesis around, the joins without one yet
    for index, token in enumerate(tokens):
        if token.word == "JOIN":
            waiting[-1].append(index)
        elif token.word in ("ON", "USING") and waiting[-1]:
            waiting[-1].pop()
        elif token.word == "(":
            waiting.append([])
        elif token.word == ")":
            changed |= _as_commas(tokens, waiting.pop())
        elif token.word in _ENDS_OF_JOINS:
            changed |= _as_commas(tokens, waiting[-1])
            waiting[-1] = []
    return changed | _as_commas(tokens, waiting[-1])


def _as_commas(tokens: list[Token], joins: list[int]) -> dict[int, str]:
    changed: dict[int, str] = {}
    for join in joins:
        first = join
        while first and tokens[first - 1].word in _JOIN_TYPES:
            first -= 1
        if first and tokens[first - 1].word != "|>":
            changed[join] = ",".ljust(len(tokens[join].text))
            changed |= {index: " " * len(tokens[index].text) for index in range(first, join)}
    return changed


def _types_as_functions(tokens: list[Token]) -> dict[int, str]:
    """Return other names for types in `date(f(a))`; `DECIMAL(10, 2)` has no call in it."""
    changed: dict[int, str] = {}
    around: list[int] = []  # the word before each parenthesis around
    for index, token in enumerate(tokens):
        if token.word == "(":
            for name in around:
                if tokens[name].word in _TYPES:
                    changed[name] = "x" * len(tokens[name].text)
            around.append(max(index - 1, 0))
        elif token.word == ")":
            around.pop()
    return changed
