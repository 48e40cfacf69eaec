"""Recognizes the parts of queries in the tokens of a text: SELECTs, subqueries, set operators.

It needs no table and no parser, so it also reads statements that no parser knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from apportion.sql.tokens import Problem, Token

SET_OPERATORS = {
    "UNION": "union",
    "INTERSECT": "intersect",
    "EXCEPT": "except",
    "MINUS": "except",
}
_QUERY_STARTS = ("SELECT", "WITH", "FROM")
_OPERAND_STARTS = ("SELECT", "WITH", "VALUES", "TABLE", "MAP", "REDUCE")
# Statements that allow parentheses around their query. In other statements, a query in parentheses
# is a subquery.
_AROUND_QUERIES = ("INSERT", "CREATE", "REPLACE", "CACHE", "EXPLAIN", "DESCRIBE", "DESC", "ALTER")
_NO_HEAD = ("FROM", "VALUES", "WHERE", "SET")
_AFTER_SET_OPERATION = ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
# SELECT is not a reserved word in Spark. Next to these tokens it is a name.
_OPERATORS = frozenset((",", ".", "+", "-", "*", "/", "%", "=", "<", ">", "||", "->"))
_NOT_BEFORE_SELECT = _OPERATORS | frozenset(
    ("SELECT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "HAVING", "CASE", "WHEN", "LIKE")
)
_NOT_AFTER_SELECT = frozenset(("FROM", ",", ".", ")", "=", "<", ">", "/", "%", "||", ";", "|>"))
_NOT_AFTER_ALIAS = frozenset(
    ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "INSERT")
)


# The clauses after a FROM. Before BY, these words start a clause too. Else they are names.
_CLAUSES = ("WHERE", "HAVING", "WINDOW", "QUALIFY", "LIMIT", "OFFSET", "SELECT", "INSERT", "|>")
_BEFORE_BY = ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE")
_JOIN_TYPES = ("INNER", "CROSS", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")
_MOST_JOIN_TYPES = 3  # NATURAL LEFT OUTER JOIN


class Code:
    """Tokens from `fold_hint_comments`, with their matching parentheses.

    All positions are indexes into the tokens. Ranges go from `low` to before `high`. With a
    `problem`, the parentheses do not match and only `problem` may be used.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._words = [token.word for token in tokens]
        self._partners, self.problem = _match_parentheses(tokens)

    def word(self, index: int) -> str:
        """Return the keyword or symbol at an index, or an empty string after the end."""
        return self._words[index] if index < len(self._words) else ""

    def closing(self, opening: int) -> int:
        """Return the index of the `)` that closes the `(` at `opening`."""
        return self._partners[opening]

    def outside_parentheses(self, low: int, high: int) -> Iterator[int]:
        """Yield the indexes of a range outside its parentheses. `(` is included, `)` is not."""
        index = low
        while index < high:
            yield index
            index = self._partners.get(index, index) + 1

    def is_query(self, low: int, high: int) -> bool:
        """Tell whether the content of a pair of parentheses is a query."""
        low = self._skip_decoration(low, high)
        if low == high:
            return False
        if self.word(low) == "(":
            after = self._partners[low] + 1
            return after < high and (
                self.is_set_operator(after) or self.is_tail(after) or self.word(after) == "|>"
            )
        if self.word(low) == "SELECT":
            return self.is_select(low)
        return self.word(low) in _QUERY_STARTS

    def is_select(self, index: int) -> bool:
        """Tell whether a SELECT starts here. SELECT can also be a name."""
        if self.word(index) != "SELECT":
            return False
        before, after = index - 1, index + 1
        while before >= 0 and self.tokens[before].kind == "hint start":
            before -= 1
        word = self.word(before) if before >= 0 else ""
        if word in _NOT_BEFORE_SELECT or after == len(self.tokens):
            return False
        if self.tokens[after].kind == "hint start":
            return True
        is_alias = word == "AS" and self.word(after) in _NOT_AFTER_ALIAS
        return not is_alias and self.word(after) not in _NOT_AFTER_SELECT

    def is_transform(self, index: int) -> bool:
        """Tell `SELECT TRANSFORM (...) USING` from a call of the function `transform`."""
        if self.word(index) != "TRANSFORM" or self.word(index + 1) != "(":
            return False
        after = self._partners[index + 1] + 1
        return self.word(after) in ("USING", "RECORDWRITER") or (
            self.word(after) == "ROW" and self.word(after + 1) == "FORMAT"
        )

    def is_from(self, index: int) -> bool:
        """Tell whether tables follow. FROM can also be a name or part of IS DISTINCT FROM."""
        before = self.word(index - 1) if index else ""
        is_operator = before == "DISTINCT" and self.word(index - 2) in ("IS", "NOT")
        return self.word(index) == "FROM" and before != "." and not is_operator

    def is_end_of_from(self, index: int) -> bool:
        """Tell whether the clause after a FROM starts here."""
        word = self.word(index)
        return (
            word in _CLAUSES
            or word in SET_OPERATORS
            or (word in _BEFORE_BY and self.word(index + 1) == "BY")
        )

    def is_join(self, index: int) -> bool:
        """Tell whether a join starts here, with or without its type. JOIN can also be a name."""
        if index and self.word(index - 1) == ".":
            return False
        types = 0
        while types < _MOST_JOIN_TYPES and self.word(index + types) in _JOIN_TYPES:
            types += 1
        return self.word(index + types) == "JOIN"

    def is_next_relation(self, index: int) -> bool:
        """Tell whether the condition of a join ends here."""
        word = self.word(index)
        is_view = word == "LATERAL" and self.word(index + 1) == "VIEW"
        return word in (",", "PIVOT", "UNPIVOT") or is_view or self.is_join(index)

    def is_set_operator(self, index: int) -> bool:
        """Tell whether this token combines two queries. `* EXCEPT (a)` does not."""
        if self.word(index) not in SET_OPERATORS or index == 0:
            return False
        if self.word(index - 1) in ("|>", ".", ",", "SELECT"):
            return False
        after = index + 1
        while self.word(after) in ("ALL", "DISTINCT"):
            after += 1
        after = self._skip_decoration(after, len(self.tokens))
        if self.word(after) == "(":
            return self.starts_query(after)
        return self.word(after) in _OPERAND_STARTS

    def is_tail(self, index: int) -> bool:
        """Tell whether a clause that follows set operations starts here, such as ORDER BY."""
        word = self.word(index)
        return word in _AFTER_SET_OPERATION and (
            word in ("LIMIT", "OFFSET") or self.word(index + 1) == "BY"
        )

    def find_whole_query(self, outside: Iterable[int], verb: str) -> int | None:
        """Return the `(` around a whole query, as in `(SELECT ...) ORDER BY a`, or None.

        `outside` are the indexes outside parentheses, and `verb` is the statement's first word.
        """
        for index in outside:
            if self.word(index) == "(" and self.starts_query(index):
                return index
            is_head = verb in _AROUND_QUERIES and self.word(index) not in _NO_HEAD
            if not (is_head or self.tokens[index].kind in ("hint start", "template")):
                return None
        return None

    def find_named_query(self, index: int) -> int | None:
        """Return the `(` before the query in `name [(columns)] [AS] (query)`, or None."""
        named = index < len(self.tokens)
        if not named or self.tokens[index].kind not in ("word", "quoted", "template"):
            return None
        index += 1
        if self.word(index) == "(" and self.word(self._partners[index] + 1) in ("AS", "MAX", "("):
            index = self._partners[index] + 1
        if self.word(index) == "MAX":
            index += 4  # MAX RECURSION LEVEL 100
        has_as = self.word(index) == "AS"
        index += has_as
        if self.word(index) != "(" or not (has_as or self.starts_query(index)):
            return None
        return index

    def starts_query(self, opening: int) -> bool:
        """Tell whether a query starts after this `(` and any further `(` directly after it."""
        if self.word(opening) != "(":
            return False
        index = opening
        while self.word(index) == "(":
            index = self._skip_decoration(index + 1, len(self.tokens))
        return self.word(index) in (*_QUERY_STARTS, *_OPERAND_STARTS)

    def _skip_decoration(self, low: int, high: int) -> int:
        while low < high and self.tokens[low].kind in ("hint start", "template"):
            low += 1
        return low


def _match_parentheses(tokens: Sequence[Token]) -> tuple[dict[int, int], Problem | None]:
    """Return the index of `)` for each `(`. Parentheses must match within each statement."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.text == "(":
            opened.append(index)
        elif token.text == ")":
            if not opened:
                return partners, _report_unmatched(token)
            partners[opened.pop()] = index
        elif token.text == ";" and opened:
            break
    return partners, _report_unmatched(tokens[opened[-1]]) if opened else None


def _report_unmatched(token: Token) -> Problem:
    return Problem(token.start, token.end, "APH002", f"unmatched parenthesis {token.text}")
