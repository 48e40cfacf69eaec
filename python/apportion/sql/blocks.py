"""Finds the query blocks of a text: its SELECTs, their nesting, and the path of each.

A block is one SELECT with its FROM, WHERE and other clauses. Spark reads hints per block. The path
names the place of a block from the outside in. It consists of these steps:

    main              the SELECT of a query without further steps (left out when steps follow)
    cte NAME          the query that WITH defines as NAME
    subquery N        the Nth query in parentheses of the surrounding block or query
    union branch N    the Nth query of a set operation, counted over all its operators. The word is
                      union, intersect or except, after the operator on the left of the query. The
                      first query takes the operator on its right.
    body N            the Nth SELECT of `FROM t INSERT INTO a SELECT ... INSERT INTO b SELECT ...`
    pipe N            the Nth `|> SELECT`
    statement N       the first step if the text has several statements

Examples are `main`, `cte a / subquery 1` and `statement 2 / union branch 1`. Names keep their
spelling. N counts from 1 in the order of the text. Parentheses around a whole query or branch add
no step.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from apportion.sql.code import SET_OPERATORS, Code
from apportion.sql.hint_comments import Hint, HintComment, fold_hint_comments
from apportion.sql.statements import find_statements
from apportion.sql.tokens import Problem, Token, tokenize

MAIN = "main"


@dataclass(slots=True, eq=False)
class Query:
    """A query expression, `sql[start:end]`: the content of its parentheses or its statement.

    `cte` is the name that WITH gives the query, and `scope` is the query that contains the WITH.
    Both are None if the query is not a CTE.
    """

    start: int
    end: int
    cte: str | None = None
    scope: Query | None = None


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT and its place.

    `select` is the SELECT keyword. `sql[start:end]` is the part of the query that belongs to the
    block. `encloser` is the block around it. An outermost block has None, and so has a block of a
    CTE, because Spark treats a CTE as if it were written at each place of use. `comments` are the
    hint comments that Spark reads for the block. `takes_hints` is false for SELECT TRANSFORM.
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
        """The hints of the block in the order of the text."""
        return [hint for comment in self.comments for hint in comment.hints]


@dataclass(slots=True, eq=False)
class StatementBlocks:
    """The blocks and queries of one statement, `sql[start:end]` without its semicolon.

    `verb` is the first word of the statement.
    """

    start: int
    end: int
    verb: str
    blocks: list[Block] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    @property
    def outermost(self) -> list[Block]:
        """The blocks without an encloser, except blocks of CTEs."""
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
        """Return the CTE that `name` refers to at an offset, or None if it refers to no CTE."""
        visible = [
            (query.scope.start - query.scope.end, query.start, query)
            for query in self.queries
            if query.cte is not None
            and query.scope is not None
            and query.cte.lower() == name.lower()
            and query.scope.start <= offset < query.scope.end
            and query.end <= offset
        ]
        # The innermost WITH decides, and in it the last definition before the offset.
        return max(visible, key=lambda candidate: candidate[:2])[2] if visible else None


@dataclass(slots=True)
class Text:
    """A text and its statements. With a `problem` there are no statements.

    `comments` are all hint comments in the order of the text, including comments that Spark does
    not read as hints. Each comes with the token before it.
    """

    sql: str
    tokens: list[Token]
    comments: list[tuple[HintComment, Token | None]]
    statements: list[StatementBlocks]
    problem: Problem | None

    def tokens_between(self, start: int, end: int) -> Iterator[Token]:
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

    def misplaced_comments(self) -> Iterator[tuple[HintComment, Token | None]]:
        """Yield the hint comments that belong to no block, each with the token before it."""
        placed = {comment.start for block in self.blocks for comment in block.comments}
        for comment, before in self.comments:
            if comment.start not in placed:
                yield comment, before


def read(sql: str) -> Text:
    """Read the statements and blocks of a text. An unreadable text gets a `problem`, no error."""
    tokens, problem = tokenize(sql)
    folded = fold_hint_comments(sql, tokens)
    code = Code(folded.code)
    problem = problem or folded.problem or code.problem
    statements: list[StatementBlocks] = []
    if problem is None:
        try:
            statements = _BlockFinder(code, folded.comments).find_statements()
        except RecursionError:
            problem = Problem(0, 1, "APH002", "parentheses are nested too deeply")
    before: Token | None = None
    comments: list[tuple[HintComment, Token | None]] = []
    for token in folded.code:
        if token.kind == "hint start":
            comments.append((folded.comments[token.start], before))
        else:
            before = token
    return Text(sql, tokens, comments, statements, problem)


_Steps = tuple[str, ...]


class _Part(NamedTuple):
    """A range of the code, the path that its subqueries continue, and the block around them."""

    low: int
    high: int
    steps: _Steps
    block: Block | None


class _BlockFinder:
    """Finds the statements, queries and blocks in code with matching parentheses.

    `low` and `high` are a range of the code. `steps` is the path of its query or block without the
    statement, and `encloser` is the block around it. A method reads one level of parentheses, and
    `_read_parentheses` reads the next level.
    """

    def __init__(self, code: Code, comments: dict[int, HintComment]) -> None:
        self._code = code
        self._tokens = code.tokens
        self._comments = comments
        self._statement: StatementBlocks
        self._prefix: _Steps = ()
        self._subqueries: Counter[_Steps] = Counter()
        self._paths: set[str] = set()

    def find_statements(self) -> list[StatementBlocks]:
        ranges = find_statements(self._tokens)
        statements = []
        for number, (low, high) in enumerate(ranges, 1):
            self._prefix = (f"statement {number}",) if len(ranges) > 1 else ()
            self._subqueries = Counter()
            words = (token.word for token in self._tokens[low:high] if token.kind == "word")
            start, end = self._tokens[low].start, self._tokens[high - 1].end
            self._statement = StatementBlocks(start, end, next(words, ""))
            self._read_query(low, high, (), None)
            self._statement.blocks.sort(key=lambda block: block.select.start)
            statements.append(self._statement)
        return statements

    def _read_query(
        self,
        low: int,
        high: int,
        steps: _Steps,
        encloser: Block | None,
        cte: str | None = None,
        scope: Query | None = None,
    ) -> None:
        query = Query(self._tokens[low].start, self._tokens[high - 1].end, cte, scope)
        self._statement.queries.append(query)
        outside = self._code.outside_parentheses(low, high)
        pipes = [index for index in outside if self._code.word(index) == "|>"]
        pipeline = self._read_pipeline(query, pipes, high, steps, encloser)
        if pipes:
            high, encloser = pipes[0], pipeline[0].block
        low = self._read_with_list(query, low, high, steps)
        self._read_branches(query, low, high, steps, encloser)
        for part in pipeline:
            self._read_parentheses(part.low, part.high, part.steps, part.block)

    def _read_pipeline(
        self, query: Query, pipes: list[int], high: int, steps: _Steps, encloser: Block | None
    ) -> list[_Part]:
        """Return one part for each `|>`, with its own block or the block around it."""
        number = sum(self._code.is_select(pipe + 1) for pipe in pipes)
        parts: list[_Part] = []
        # Go backwards, because a later operator encloses the earlier ones.
        for pipe, end in zip(reversed(pipes), [high, *reversed(pipes)], strict=False):
            owner = steps
            if self._code.is_select(pipe + 1):
                owner = (*steps, f"pipe {number}")
                number -= 1
                encloser = self._add_block(query, pipe + 1, query.start, end, owner, encloser)
            parts.append(_Part(pipe + 1, end, owner, encloser))
        return parts[::-1]

    def _read_branches(
        self, query: Query, low: int, high: int, steps: _Steps, encloser: Block | None
    ) -> None:
        """Read the branches of a set operation, or a query without set operators."""
        code = self._code
        outside = list(code.outside_parentheses(low, high))
        operators = [index for index in outside if code.is_set_operator(index)]
        if not operators:
            self._read_branch(query, low, high, steps, encloser)
            return
        tail = next((i for i in outside if operators[-1] < i and code.is_tail(i)), high)
        starts = [low, *(operator + 1 for operator in operators)]
        for number, (start, end) in enumerate(zip(starts, [*operators, tail], strict=True), 1):
            operator = operators[max(number - 2, 0)]
            step = f"{SET_OPERATORS[code.word(operator)]} branch {number}"
            self._read_branch(query, start, end, (*steps, step), encloser)
        self._read_parentheses(tail, high, steps, encloser)

    def _read_branch(
        self, query: Query, low: int, high: int, steps: _Steps, encloser: Block | None
    ) -> None:
        """Read one branch of a set operation, or a query without set operators."""
        code = self._code
        outside = list(code.outside_parentheses(low, high))
        selects = [index for index in outside if code.is_select(index)]
        if not selects:
            opening = code.find_whole_query(outside, self._statement.verb)
            if opening is not None:
                self._read_query(opening + 1, code.closing(opening), steps, encloser)
                low = code.closing(opening) + 1
            self._read_parentheses(low, high, steps, encloser)
            return
        from_first = next((i for i in outside if i < selects[0] and code.word(i) == "FROM"), None)
        head = selects[0] if from_first is None else from_first
        self._read_parentheses(low, head, steps, encloser)
        ranges = zip(selects, [*selects[1:], high], strict=True)
        for number, (select, end) in enumerate(ranges, 1):
            owner = (*steps, f"body {number}") if len(selects) > 1 else steps
            start = head if number == 1 or from_first is not None else select
            block = self._add_block(query, select, self._tokens[start].start, end, owner, encloser)
            self._read_parentheses(head if number == 1 else select, end, owner, block)

    def _add_block(
        self,
        query: Query,
        select: int,
        start: int,
        high: int,
        steps: _Steps,
        encloser: Block | None,
    ) -> Block:
        path = self._make_unique(" / ".join((*self._prefix, *(steps or (MAIN,)))))
        block = Block(
            path, self._tokens[select], query, start, self._tokens[high - 1].end, encloser
        )
        after = select + 1
        while after < high and self._tokens[after].kind == "hint start":
            block.comments.append(self._comments[self._tokens[after].start])
            after += 1
        if self._code.is_transform(after):
            block.comments, block.takes_hints = [], False
        self._statement.blocks.append(block)
        return block

    def _make_unique(self, path: str) -> str:
        """Return a path with a number if it is taken, as by a second `cte a` in parentheses."""
        numbered = (f"{path} ({number})" if number > 1 else path for number in itertools.count(1))
        unique = next(candidate for candidate in numbered if candidate not in self._paths)
        self._paths.add(unique)
        return unique

    def _read_parentheses(self, low: int, high: int, steps: _Steps, encloser: Block | None) -> None:
        """Read the queries in parentheses of a range as subqueries of the path `steps`."""
        code = self._code
        for opening in code.outside_parentheses(low, high):
            if code.word(opening) != "(":
                continue
            inside = opening + 1, code.closing(opening)
            if code.is_query(*inside):
                self._subqueries[steps] += 1
                step = f"subquery {self._subqueries[steps]}"
                self._read_query(*inside, (*steps, step), encloser)
            else:
                self._read_parentheses(*inside, steps, encloser)

    def _read_with_list(self, scope: Query, low: int, high: int, steps: _Steps) -> int:
        """Read the queries that WITH names. Return the index after them."""
        code = self._code
        rest = low
        for index in code.outside_parentheses(low, high):
            if code.word(index) != "WITH" or index < rest:
                continue
            name = index + 1
            if code.word(name) == "RECURSIVE" and code.word(name + 1) not in ("AS", "("):
                name += 1
            while (opening := code.find_named_query(name)) is not None:
                closing = code.closing(opening)
                if opening + 1 < closing:
                    cte = self._tokens[name].value
                    inside = opening + 1, closing
                    self._read_query(*inside, (*steps, f"cte {cte}"), None, cte, scope)
                rest = closing + 1
                if code.word(rest) != ",":
                    break
                name = rest + 1
        return rest
