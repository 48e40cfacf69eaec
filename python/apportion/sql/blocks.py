"""Query blocks: which SELECTs a text has, how they lie in each other, and the path of each.

A block is one SELECT with all that belongs to it, the place where Spark reads hints. Its path says
where it is, outermost first, from these steps:

    main              the SELECT of a query that is nothing else (left out when steps follow)
    cte NAME          the query that WITH calls NAME
    subquery N        the Nth query in parentheses of the block or query around it
    union branch N    the Nth query of a set operation, counted over all its operators; the word
                      is the operator on its left, for the first one the operator on its right:
                      union, intersect or except
    body N            the Nth SELECT of `FROM t INSERT INTO a SELECT ... INSERT INTO b SELECT ...`
    pipe N            the Nth `|> SELECT`
    statement N       comes first when the text has several statements

such as `main`, `cte a / subquery 1`, `statement 2 / union branch 1`. Names are as written, N counts
from 1 in the order of the text. Parentheses around a whole query or branch add no step.

The structure is read from tokens alone, so it needs no table, and no text that a parser knows.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from apportion.sql.hint_comments import Hint, HintComment, read_comment
from apportion.sql.tokens import Problem, Token, scan

MAIN = "main"

_SET_OPERATORS = {
    "UNION": "union",
    "INTERSECT": "intersect",
    "EXCEPT": "except",
    "MINUS": "except",
}
_QUERY_STARTS = ("SELECT", "WITH", "FROM")
_OPERAND_STARTS = ("SELECT", "WITH", "VALUES", "TABLE", "MAP", "REDUCE")
# Statements whose query may stand in parentheses; in others these are subqueries.
_AROUND_QUERIES = ("INSERT", "CREATE", "REPLACE", "CACHE", "EXPLAIN", "DESCRIBE", "DESC", "ALTER")
_NO_HEAD = ("FROM", "VALUES", "WHERE", "SET")
_AFTER_SET_OPERATION = ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
# SELECT is no reserved word in Spark. Beside these it is the name of something.
_OPERATORS = frozenset((",", ".", "+", "-", "*", "/", "%", "=", "<", ">", "||", "->"))
_NOT_BEFORE_SELECT = _OPERATORS | frozenset(
    ("SELECT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "HAVING", "CASE", "WHEN", "LIKE")
)
_NOT_AFTER_SELECT = frozenset(("FROM", ",", ".", ")", "=", "<", ">", "/", "%", "||", ";", "|>"))
_NOT_AFTER_ALIAS = frozenset(
    ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "INSERT")
)


@dataclass(slots=True, eq=False)
class Query:
    """A query expression, `sql[start:end]`: everything in its parentheses or statement.

    `cte` is the name that WITH gives it, and `scope` the query that the WITH belongs to.
    """

    start: int
    end: int
    cte: str | None = None
    scope: Query | None = None


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT and where it stands.

    `select` is the SELECT keyword. `sql[start:end]` is what belongs to the block in its query, and
    `encloser` the block around it: None for an outermost block, and for the blocks of a CTE, which
    is as if written where it is used. `comments` are the hint comments that Spark reads.
    """

    path: str
    select: Token
    query: Query
    start: int
    end: int
    encloser: Block | None = None
    comments: list[HintComment] = field(default_factory=list)
    takes_hints: bool = True

    @property
    def hints(self) -> list[Hint]:
        """The block's hints in the order of the text."""
        return [hint for comment in self.comments for hint in comment.hints]


@dataclass(slots=True, eq=False)
class Statement:
    """One statement, `sql[start:end]` without its semicolon; `verb` is its first word."""

    start: int
    end: int
    verb: str
    blocks: list[Block] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    @property
    def outermost(self) -> list[Block]:
        """The blocks that nothing encloses: those of CTEs count only where they are used."""
        ctes = [query for query in self.queries if query.cte is not None]
        return [
            block
            for block in self.blocks
            if block.encloser is None
            and not any(cte.start <= block.select.start < cte.end for cte in ctes)
        ]

    def query_at(self, offset: int) -> Query:
        """Return the innermost query around an offset of the statement."""
        around = [query for query in self.queries if query.start <= offset < query.end]
        return min(around, key=lambda query: query.end - query.start)

    def cte_at(self, name: str, offset: int) -> Query | None:
        """Return the query that `name` means at an offset, or None when it is no CTE there."""
        visible = [
            (query.scope.start - query.scope.end, query.start, query)
            for query in self.queries
            if query.cte is not None
            and query.scope is not None
            and query.cte.lower() == name.lower()
            and query.scope.start <= offset < query.scope.end
            and query.end <= offset
        ]
        # The nearest WITH, and in it the last one before.
        return max(visible, key=lambda found: found[:2])[2] if visible else None


@dataclass(slots=True)
class Text:
    """A text as read. With a `problem` there are no statements: they could be anywhere.

    `comments` are all hint comments in the order of the text, also those that Spark does not read,
    each with the code before it.
    """

    sql: str
    tokens: list[Token]
    comments: list[tuple[HintComment, Token | None]]
    statements: list[Statement]
    problem: Problem | None

    def between(self, start: int, end: int) -> Iterator[Token]:
        """Yield the tokens that start in `sql[start:end]`."""
        first = bisect.bisect_left(self.tokens, start, key=lambda token: token.start)
        for token in itertools.islice(self.tokens, first, None):
            if token.start >= end:
                return
            yield token

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all statements in the order of the text."""
        return [block for statement in self.statements for block in statement.blocks]

    def misplaced(self) -> Iterator[tuple[HintComment, Token | None]]:
        """Yield the hint comments that belong to no block, each with the code before it."""
        placed = {comment.start for block in self.blocks for comment in block.comments}
        for comment, before in self.comments:
            if comment.start not in placed:
                yield comment, before


def read(sql: str) -> Text:
    """Read a text into statements and blocks; what stops that is in `problem`, never raised."""
    tokens, problem = scan(sql)
    code, comments, unclosed = _fold_comments(sql, tokens)
    partners, unmatched = _partners(code)
    problem = problem or unclosed or unmatched
    statements: list[Statement] = []
    if problem is None:
        try:
            statements = _Reader(code, comments, partners).statements()
        except RecursionError:
            problem = Problem(0, 1, "APH002", "parentheses are nested too deeply to be read")
    before: Token | None = None
    found: list[tuple[HintComment, Token | None]] = []
    for token in code:
        if token.kind == "hint start":
            found.append((comments[token.start], before))
        else:
            before = token
    return Text(sql, tokens, found, statements, problem)


def _fold_comments(
    sql: str, tokens: list[Token]
) -> tuple[list[Token], dict[int, HintComment], Problem | None]:
    """Return the tokens with each hint comment as one, and the hint comments by their offset."""
    code: list[Token] = []
    comments: dict[int, HintComment] = {}
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind == "hint start":
            end = index + 1
            while end < len(tokens) and tokens[end].kind != "hint end":
                end += 1
            if end == len(tokens):
                message = "the hint comment that /*+ opens here is never closed"
                return code, comments, Problem(token.start, token.end, "APH001", message)
            comment = read_comment(sql, token, tuple(tokens[index + 1 : end]), tokens[end])
            comments[comment.start] = comment
            text = sql[comment.start : comment.end]
            code.append(Token("hint start", text, comment.start, comment.end))
            index = end
        elif token.kind != "comment":
            code.append(token)
        index += 1
    return code, comments, None


def _partners(code: list[Token]) -> tuple[dict[int, int], Problem | None]:
    """Return where each parenthesis that opens is closed."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(code):
        if token.text == "(":
            opened.append(index)
        elif token.text == ")":
            if not opened:
                return partners, _no_partner(token)
            partners[opened.pop()] = index
    return partners, _no_partner(code[opened[-1]]) if opened else None


def _no_partner(token: Token) -> Problem:
    message = f"the parenthesis {token.text} here has no partner"
    return Problem(token.start, token.end, "APH002", message)


_Steps = tuple[str, ...]


class _Part(NamedTuple):
    """A range of the code, the path its subqueries continue, and the block they are in."""

    low: int
    high: int
    steps: _Steps
    block: Block | None


class _Reader:
    """Finds the statements, queries and blocks in code whose parentheses match.

    Ranges are indexes into the code, `low` to before `high`; only what is not in further
    parentheses is looked at in one go.
    """

    def __init__(
        self, code: list[Token], comments: dict[int, HintComment], partners: dict[int, int]
    ) -> None:
        self._code = code
        self._comments = comments
        self._partners = partners
        self._words = [token.word for token in code]
        self._statement: Statement
        self._prefix: _Steps = ()
        self._subqueries: Counter[_Steps] = Counter()
        self._paths: set[str] = set()

    def statements(self) -> list[Statement]:
        ends = [i for i in self._outside_parentheses(0, len(self._code)) if self._word(i) == ";"]
        starts = [0, *(end + 1 for end in ends)]
        ranges = [r for r in zip(starts, [*ends, len(self._code)], strict=True) if r[0] < r[1]]
        statements = []
        for number, (low, high) in enumerate(ranges, 1):
            self._prefix = (f"statement {number}",) if len(ranges) > 1 else ()
            self._subqueries = Counter()
            verb = next((t.word for t in self._code[low:high] if t.kind == "word"), "")
            self._statement = Statement(self._code[low].start, self._code[high - 1].end, verb)
            self._query(low, high, (), None)
            self._statement.blocks.sort(key=lambda block: block.select.start)
            statements.append(self._statement)
        return statements

    def _query(
        self,
        low: int,
        high: int,
        steps: _Steps,
        encloser: Block | None,
        cte: str | None = None,
        scope: Query | None = None,
    ) -> None:
        query = Query(self._code[low].start, self._code[high - 1].end, cte, scope)
        self._statement.queries.append(query)
        pipes = [i for i in self._outside_parentheses(low, high) if self._word(i) == "|>"]
        pipeline = self._pipeline(query, pipes, high, steps, encloser)
        if pipes:
            high, encloser = pipes[0], pipeline[0].block
        low = self._with_list(query, low, high, steps)
        self._branches(query, low, high, steps, encloser)
        for part in pipeline:
            self._parentheses(part.low, part.high, part.steps, part.block)

    def _pipeline(
        self, query: Query, pipes: list[int], high: int, steps: _Steps, encloser: Block | None
    ) -> list[_Part]:
        """Return the parts that `|>` starts, each with its block, or the next one around it."""
        selects = [pipe for pipe in pipes if self._is_select(pipe + 1)]
        parts: list[_Part] = []
        # From the back: what comes later lies around what comes before.
        for pipe, end in zip(reversed(pipes), [high, *reversed(pipes)], strict=False):
            owner = steps
            if pipe in selects:
                owner = (*steps, f"pipe {selects.index(pipe) + 1}")
                encloser = self._block(query, pipe + 1, query.start, end, owner, encloser)
            parts.insert(0, _Part(pipe + 1, end, owner, encloser))
        return parts

    def _branches(
        self, query: Query, low: int, high: int, steps: _Steps, encloser: Block | None
    ) -> None:
        outside = list(self._outside_parentheses(low, high))
        operators = [i for i in outside if self._is_set_operator(i)]
        if not operators:
            self._branch(query, low, high, steps, encloser)
            return
        tail = next((i for i in outside if operators[-1] < i and self._is_tail(i)), high)
        starts = [low, *(operator + 1 for operator in operators)]
        for number, (start, end) in enumerate(zip(starts, [*operators, tail], strict=True), 1):
            operator = operators[max(number - 2, 0)]
            step = f"{_SET_OPERATORS[self._word(operator)]} branch {number}"
            self._branch(query, start, end, (*steps, step), encloser)
        self._parentheses(tail, high, steps, encloser)

    def _branch(
        self, query: Query, low: int, high: int, steps: _Steps, encloser: Block | None
    ) -> None:
        """Read one query of a set operation, or all of a query without one."""
        outside = list(self._outside_parentheses(low, high))
        selects = [i for i in outside if self._is_select(i)]
        if not selects:
            whole = self._query_in_parentheses(outside)
            if whole is not None:
                self._query(whole + 1, self._partners[whole], steps, encloser)
                low = self._partners[whole] + 1
            self._parentheses(low, high, steps, encloser)
            return
        from_first = next((i for i in outside if i < selects[0] and self._word(i) == "FROM"), None)
        head = selects[0] if from_first is None else from_first
        self._parentheses(low, head, steps, encloser)
        ranges = zip(selects, [*selects[1:], high], strict=True)
        for number, (select, end) in enumerate(ranges, 1):
            several = len(selects) > 1
            owner = (*steps, f"body {number}") if several else steps
            start = head if number == 1 or from_first is not None else select
            block = self._block(query, select, self._code[start].start, end, owner, encloser)
            self._parentheses(head if number == 1 else select, end, owner, block)

    def _block(
        self,
        query: Query,
        select: int,
        start: int,
        high: int,
        steps: _Steps,
        encloser: Block | None,
    ) -> Block:
        path = self._unique(" / ".join((*self._prefix, *(steps or (MAIN,)))))
        block = Block(path, self._code[select], query, start, self._code[high - 1].end, encloser)
        after = select + 1
        while after < high and self._code[after].kind == "hint start":
            block.comments.append(self._comments[self._code[after].start])
            after += 1
        if self._is_transform(after):
            block.comments, block.takes_hints = [], False
        self._statement.blocks.append(block)
        return block

    def _unique(self, path: str) -> str:
        """Number what only odd texts have: a second `cte a` in parentheses around a whole query."""
        twins = (f"{path} ({number})" if number > 1 else path for number in itertools.count(1))
        path = next(twin for twin in twins if twin not in self._paths)
        self._paths.add(path)
        return path

    def _parentheses(self, low: int, high: int, steps: _Steps, encloser: Block | None) -> None:
        """Read the queries in parentheses, which are subqueries of what `steps` leads to."""
        for opening in self._outside_parentheses(low, high):
            if self._word(opening) != "(":
                continue
            inside = opening + 1, self._partners[opening]
            if self._is_query(*inside):
                self._subqueries[steps] += 1
                step = f"subquery {self._subqueries[steps]}"
                self._query(*inside, (*steps, step), encloser)
            else:
                self._parentheses(*inside, steps, encloser)

    def _with_list(self, scope: Query, low: int, high: int, steps: _Steps) -> int:
        """Read the queries that WITH names; return where what comes after them starts."""
        rest = low
        for index in self._outside_parentheses(low, high):
            if self._word(index) != "WITH" or index < rest:
                continue
            at = index + 1
            if self._word(at) == "RECURSIVE" and self._word(at + 1) not in ("AS", "("):
                at += 1
            while (body := self._named_query(at)) is not None:
                name = self._code[at].value
                if body + 1 < self._partners[body]:
                    inside = body + 1, self._partners[body]
                    self._query(*inside, (*steps, f"cte {name}"), None, name, scope)
                rest = self._partners[body] + 1
                if self._word(rest) != ",":
                    break
                at = rest + 1
        return rest

    def _named_query(self, at: int) -> int | None:
        """Return the parenthesis before the query in `name [(columns)] [AS] (query)`."""
        if at >= len(self._code) or self._code[at].kind not in ("word", "quoted", "template"):
            return None
        at += 1
        if self._word(at) == "(" and self._word(self._partners[at] + 1) in ("AS", "MAX", "("):
            at = self._partners[at] + 1
        if self._word(at) == "MAX":
            at += 4  # MAX RECURSION LEVEL 100
        sure = self._word(at) == "AS"
        at += sure
        if self._word(at) != "(" or not (sure or self._starts_query(at)):
            return None
        return at

    def _query_in_parentheses(self, outside: list[int]) -> int | None:
        """Return the parenthesis before the whole query, as in `(SELECT ...) ORDER BY a`."""
        for index in outside:
            if self._word(index) == "(" and self._starts_query(index):
                return index
            is_head = self._statement.verb in _AROUND_QUERIES and self._word(index) not in _NO_HEAD
            if not (is_head or self._code[index].kind in ("hint start", "template")):
                return None
        return None

    def _is_query(self, low: int, high: int) -> bool:
        low = self._skip_decoration(low, high)
        if low == high:
            return False
        if self._word(low) == "(":
            after = self._partners[low] + 1
            return after < high and (
                self._is_set_operator(after) or self._is_tail(after) or self._word(after) == "|>"
            )
        if self._word(low) == "SELECT":
            return self._is_select(low)
        return self._word(low) in _QUERY_STARTS

    def _starts_query(self, opening: int) -> bool:
        """Tell whether a query comes first in these parentheses, or in those right inside them."""
        at = opening
        while self._word(at) == "(":
            at = self._skip_decoration(at + 1, len(self._code))
        return self._word(at) in (*_QUERY_STARTS, *_OPERAND_STARTS)

    def _is_select(self, index: int) -> bool:
        if self._word(index) != "SELECT":
            return False
        before, after = index - 1, index + 1
        while before >= 0 and self._code[before].kind == "hint start":
            before -= 1
        word = self._word(before) if before >= 0 else ""
        if word in _NOT_BEFORE_SELECT or after == len(self._code):
            return False
        if self._code[after].kind == "hint start":
            return True
        is_alias = word == "AS" and self._word(after) in _NOT_AFTER_ALIAS
        return not is_alias and self._word(after) not in _NOT_AFTER_SELECT

    def _is_transform(self, index: int) -> bool:
        """Tell `SELECT TRANSFORM (...) USING` from the function transform."""
        if self._word(index) != "TRANSFORM" or self._word(index + 1) != "(":
            return False
        after = self._partners[index + 1] + 1
        return self._word(after) in ("USING", "RECORDWRITER") or (
            self._word(after) == "ROW" and self._word(after + 1) == "FORMAT"
        )

    def _is_set_operator(self, index: int) -> bool:
        if self._word(index) not in _SET_OPERATORS or index == 0:
            return False
        if self._word(index - 1) in ("|>", ".", ",", "SELECT"):
            return False
        after = index + 1
        while self._word(after) in ("ALL", "DISTINCT"):
            after += 1
        after = self._skip_decoration(after, len(self._code))
        if self._word(after) == "(":
            return self._starts_query(after)
        return self._word(after) in _OPERAND_STARTS

    def _is_tail(self, index: int) -> bool:
        """Tell whether ORDER BY, LIMIT or their like begins here."""
        word = self._word(index)
        return word in _AFTER_SET_OPERATION and (
            word in ("LIMIT", "OFFSET") or self._word(index + 1) == "BY"
        )

    def _skip_decoration(self, low: int, high: int) -> int:
        while low < high and self._code[low].kind in ("hint start", "template"):
            low += 1
        return low

    def _outside_parentheses(self, low: int, high: int) -> Iterator[int]:
        """Yield the indexes that are not inside parentheses; those of `(` too, not of `)`."""
        index = low
        while index < high:
            yield index
            index = self._partners.get(index, index) + 1

    def _word(self, index: int) -> str:
        return self._words[index] if index < len(self._words) else ""
