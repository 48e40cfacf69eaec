"""Prepares a statement for sqlglot: blanks out comments and hints without moving any character.

sqlglot loses a second hint comment and the hints of pipes, and it fails on a hint with `*/` in a
string. So it gets no comments and no hints. Two constructs are rewritten because sqlglot's time
doubles with each further one: joins without a condition, and nested calls of types as functions.
Every token keeps its offset, so sqlglot's positions are valid in the original text.
"""

from __future__ import annotations

from collections.abc import Iterator

from apportion.sql.blocks import StatementBlocks, Text
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


def prepare(text: Text, statement: StatementBlocks) -> str:
    """Return a statement on one line and at its original length, with blanks for other text."""
    tokens = list(_select_tokens(text, statement))
    characters = [" "] * (statement.end - statement.start)
    changed = {**_joins_without_condition(tokens), **_types_as_functions(tokens)}
    for index, token in enumerate(tokens):
        start = token.start - statement.start
        characters[start : start + len(token.text)] = changed.get(index) or _replace(token)
    return "".join(characters)


def _select_tokens(text: Text, statement: StatementBlocks) -> Iterator[Token]:
    # sqlglot does not parse the query after EXPLAIN, so it gets the query alone.
    in_head = statement.verb in ("EXPLAIN", "DESCRIBE", "DESC")
    in_hint = False
    for token in text.tokens_between(statement.start, statement.end):
        in_hint = in_hint or token.kind == "hint start"
        in_head = in_head and token.word not in ("SELECT", "WITH", "FROM", "INSERT", "(")
        if not (in_hint or in_head or token.kind == "comment"):
            yield token
        in_hint = in_hint and token.kind != "hint end"


def _replace(token: Token) -> str:
    width = len(token.text)
    if token.kind == "template":
        # {{ x }} usually is a name. {% if %} and {# comment #} produce no code.
        return (" " if token.text[:2] in ("{%", "{#") else "x") * width
    if token.kind == "string" and token.text.startswith("$"):
        return "'" + "x" * (width - 2) + "'"
    return token.text.replace("\n", " ").replace("\r", " ")


def _joins_without_condition(tokens: list[Token]) -> dict[int, str]:
    """Return commas, by token index, for the joins with neither ON nor USING."""
    changed: dict[int, str] = {}
    waiting: list[list[int]] = [[]]  # per open parenthesis, the joins without a condition so far
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
    """Return other names, by token index, for types around a call, such as `date(f(a))`.

    `DECIMAL(10, 2)` stays, because it has no call in it.
    """
    changed: dict[int, str] = {}
    around: list[int] = []  # the token before each open parenthesis
    for index, token in enumerate(tokens):
        if token.word == "(":
            for name in around:
                if tokens[name].word in _TYPES:
                    changed[name] = "x" * len(tokens[name].text)
            around.append(max(index - 1, 0))
        elif token.word == ")":
            around.pop()
    return changed
