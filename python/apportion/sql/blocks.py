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
    statement N       the first step if the text has several statements, and the next step if a SQL
                      script has several statements

Examples are `main`, `cte a / subquery 1` and `statement 2 / union branch 1`. Names keep their
spelling. N counts from 1 in the order of the text. Parentheses around a whole query or branch add
no step.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apportion.sql.code import SET_OPERATORS, Code
from apportion.sql.hint_comments import Hint, HintComment
from apportion.sql.statements import SplitText, split_tokens
from apportion.sql.templates import read_effect
from apportion.sql.tokens import Problem, Token

MAIN = "main"
# SELECT is a privilege in these statements.
_WITHOUT_QUERY = ("GRANT", "REVOKE", "DENY")

_Steps = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Query:
    """A query expression, `sql[start:end]`: the content of its parentheses or its statement.

    `cte` is the name that WITH gives the query, or None if the query is not a CTE. `parent` is the
    query around it: for a CTE, the query that contains the WITH. `ctes` are the queries of its own
    WITH, by name in lower case. `last_join` is the offset of its last JOIN, or -1.
    """

    start: int
    end: int
    cte: str | None = None
    parent: Query | None = None
    ctes: dict[str, list[Query]] = field(default_factory=dict)
    last_join: int = -1

    def find_cte(self, name: str, offset: int) -> Query | None:
        """Return the CTE that `name` refers to at an offset, or None if it refers to no CTE."""
        query: Query | None = self
        while query is not None:
            # The innermost WITH decides, and in it the last definition before the offset.
            for cte in reversed(query.ctes.get(name.lower(), [])):
                if cte.end <= offset:
                    return cte
            query = query.parent
        return None

    @property
    def is_in_cte(self) -> bool:
        """Whether the query is a CTE or inside one."""
        query: Query | None = self
        while query is not None and query.cte is None:
            query = query.parent
        return query is not None


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT and its place.

    `select` is the SELECT keyword. `sql[start:end]` is the part of the query that belongs to the
    block. `encloser` is the block around it. An outermost block has None, and so has a block of a
    CTE, because Spark treats a CTE as if it were written at each place of use. `comments` are the
    hint comments that Spark reads for the block. `takes_hints` is false for SELECT TRANSFORM.
    `code[low:high]` are the tokens of the block. `tables` are the names without a database in its
    FROM, which can be CTEs, each with its offset. With `has_open_hints`, a template decides which
    hints the block has.
    """

    path: str
    select: Token
    query: Query
    start: int
    end: int
    code: Code
    low: int
    high: int
    encloser: Block | None = None
    comments: list[HintComment] = field(default_factory=list)
    tables: list[tuple[str, int]] = field(default_factory=list)
    takes_hints: bool = True
    has_open_hints: bool = False

    @property
    def hints(self) -> list[Hint]:
        """The hints of the block in the order of the text."""
        return [hint for comment in self.comments for hint in comment.hints]


@dataclass(slots=True, eq=False)
class StatementBlocks:
    """The blocks and queries of one statement, `sql[start:end]` without its semicolon.

    `number` counts the statements of the text from 1. The statements in a SQL script have the
    number of the script. `verb` is the first word. `comments` are all hint comments, each with the
    token before it. With a `problem`, there are no blocks. Without `is_complete`, the alternatives
    of templates have not been read, because their parentheses do not match.
    """

    start: int
    end: int
    number: int
    verb: str
    comments: list[tuple[HintComment, Token | None]]
    blocks: list[Block] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    problem: Problem | None = None
    is_complete: bool = True

    @property
    def outermost(self) -> list[Block]:
        """The blocks without an encloser, except blocks of CTEs."""
        return [
            block for block in self.blocks if block.encloser is None and not block.query.is_in_cte
        ]

    def misplaced_comments(self) -> Iterator[tuple[HintComment, Token | None]]:
        """Yield the hint comments that belong to no block, each with the token before it."""
        placed = {comment.start for block in self.blocks for comment in block.comments}
        for comment, before in self.comments:
            if comment.start not in placed:
                yield comment, before


@dataclass(slots=True)
class Text:
    """A text, its tokens with comments, and its statements."""

    sql: str
    tokens: list[Token]
    statements: list[StatementBlocks]

    def tokens_between(self, start: int, end: int) -> Iterator[Token]:
        """Yield the tokens that start in `sql[start:end]`."""
        first = bisect.bisect_left(self.tokens, start, key=lambda token: token.start)
        # islice would read the tokens before the first one.
        for index in range(first, len(self.tokens)):
            if self.tokens[index].start >= end:
                return
            yield self.tokens[index]

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all statements in the order of the text."""
        return [block for statement in self.statements for block in statement.blocks]

    @property
    def problem(self) -> Problem | None:
        """The first problem of all statements."""
        problems = (statement.problem for statement in self.statements)
        return min((problem for problem in problems if problem), default=None)


def read(sql: str) -> Text:
    """Read the statements and blocks of a text. An unreadable statement gets a `problem`."""
    split = split_tokens(sql)
    return Text(sql, split.tokens, list(_read_statements(split)))


def _read_statements(split: SplitText) -> Iterator[StatementBlocks]:
    unreadable = {problem.start: problem for problem in split.problems}
    paths: set[str] = set()
    for statement in split.statements:
        for number, tokens in enumerate(statement.parts, 1):
            prefix: _Steps = ()
            if len(split.statements) > 1:
                prefix += (f"statement {statement.number}",)
            if len(statement.parts) > 1:
                prefix += (f"statement {number}",)
            words = (token.word for token in tokens if token.kind == "word")
            part = StatementBlocks(
                tokens[0].start,
                tokens[-1].end,
                statement.number,
                next(words, ""),
                list(_find_comments(tokens, split.comments)),
            )
            problems = (unreadable.get(token.start) for token in tokens)
            part.problem = next((problem for problem in problems if problem), None)
            if part.problem is None:
                _find_blocks(part, tokens, split.comments, prefix, paths)
            yield part


def _find_comments(
    tokens: Sequence[Token], comments: dict[int, HintComment]
) -> Iterator[tuple[HintComment, Token | None]]:
    before: Token | None = None
    for token in tokens:
        if token.kind == "hint start":
            yield comments[token.start], before
        elif not token.text.startswith("{#"):
            before = token


def _find_blocks(
    statement: StatementBlocks,
    tokens: Sequence[Token],
    comments: dict[int, HintComment],
    prefix: _Steps,
    paths: set[str],
) -> None:
    """Add the blocks to a statement, or the problem that hides them."""
    if statement.verb in _WITHOUT_QUERY:
        return
    code = Code(_select_code(tokens, all_alternatives=True))
    if code.problem is not None and any(_effect(token) == "else" for token in tokens):
        # Each alternative can open a parenthesis that all of them close together.
        statement.is_complete = False
        code = Code(_select_code(tokens, all_alternatives=False))
    if code.problem is not None:
        statement.problem = code.problem
        return
    if not code.tokens:
        return
    try:
        _BlockFinder(statement, code, comments, prefix, paths).run()
    except RecursionError:
        statement.blocks, statement.queries = [], []
        start = statement.start
        message = "parentheses are nested too deeply"
        statement.problem = Problem(start, start + 1, "APH002", message)


def _effect(token: Token) -> str:
    return read_effect(token.text) if token.kind == "template" else "value"


def _select_code(tokens: Sequence[Token], *, all_alternatives: bool) -> list[Token]:
    """Return the tokens without templates that render to nothing.

    Without `all_alternatives`, also leave out what follows `{% else %}` or `{% elif x %}`.
    """
    code: list[Token] = []
    is_left_out = [False]
    for token in tokens:
        effect = _effect(token)
        if effect == "if":
            is_left_out.append(is_left_out[-1])
        elif effect == "else":
            is_left_out[-1] = not all_alternatives
        elif effect == "endif" and len(is_left_out) > 1:
            is_left_out.pop()
        elif effect == "value" and not is_left_out[-1]:
            code.append(token)
    return code


class _Part(NamedTuple):
    """A range of the code, the path that its subqueries continue, and the block around them."""

    low: int
    high: int
    steps: _Steps
    block: Block | None


class _BlockFinder:
    """Finds the queries and blocks of a statement in code with matching parentheses.

    `low` and `high` are a range of the code. `steps` is the path of its query or block without the
    `prefix`, and `encloser` is the block around it. A method reads one level of parentheses, and
    `_read_parentheses` reads the next level. `paths` are the paths of earlier statements.
    """

    def __init__(
        self,
        statement: StatementBlocks,
        code: Code,
        comments: dict[int, HintComment],
        prefix: _Steps,
        paths: set[str],
    ) -> None:
        self._code = code
        self._tokens = code.tokens
        self._comments = comments
        self._statement = statement
        self._prefix = prefix
        self._subqueries: Counter[_Steps] = Counter()
        self._paths = paths
        self._after_templates = {
            comment.start
            for comment, before in statement.comments
            if before is not None and before.kind == "template"
        }
        self._copies: dict[str, int] = defaultdict(int)
        # Without CTEs, the names of tables are not needed.
        self._has_ctes = any(token.word == "WITH" for token in code.tokens)
        # The `(` of each CTE that has been read.
        self._ctes: set[int] = set()

    def run(self) -> None:
        self._read_query(0, len(self._tokens), (), None)
        self._statement.blocks.sort(key=lambda block: block.select.start)

    def _read_query(
        self,
        low: int,
        high: int,
        steps: _Steps,
        encloser: Block | None,
        parent: Query | None = None,
        cte: str | None = None,
    ) -> None:
        query = Query(self._tokens[low].start, self._tokens[high - 1].end, cte, parent)
        self._statement.queries.append(query)
        if cte is not None and parent is not None:
            parent.ctes.setdefault(cte.lower(), []).append(query)
        outside = list(self._code.outside_parentheses(low, high))
        pipes = [index for index in outside if self._code.word(index) == "|>"]
        self._find_last_join(query, outside)
        pipeline = self._read_pipeline(query, low, pipes, high, steps, encloser)
        if pipes:
            high, encloser = pipes[0], pipeline[0].block
        low = self._read_with_list(query, low, high, steps)
        self._read_branches(query, low, high, steps, encloser)
        for part in pipeline:
            self._read_parentheses(query, part.low, part.high, part.steps, part.block)

    def _find_last_join(self, query: Query, indexes: Iterable[int]) -> None:
        for index in indexes:
            if self._code.word(index) == "JOIN":
                query.last_join = max(query.last_join, self._tokens[index].start)

    def _read_pipeline(
        self,
        query: Query,
        low: int,
        pipes: list[int],
        high: int,
        steps: _Steps,
        encloser: Block | None,
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
                encloser = self._add_block(query, pipe + 1, low, end, owner, encloser)
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
        self._read_parentheses(query, tail, high, steps, encloser)

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
                self._read_query(opening + 1, code.closing(opening), steps, encloser, query)
                low = code.closing(opening) + 1
            self._read_parentheses(query, low, high, steps, encloser)
            return
        from_first = next((i for i in outside if i < selects[0] and code.word(i) == "FROM"), None)
        head = selects[0] if from_first is None else from_first
        self._read_parentheses(query, low, head, steps, encloser)
        ranges = zip(selects, [*selects[1:], high], strict=True)
        shared: list[tuple[str, int]] = []
        for number, (select, end) in enumerate(ranges, 1):
            owner = (*steps, f"body {number}") if len(selects) > 1 else steps
            start = head if number == 1 or from_first is not None else select
            block = self._add_block(query, select, start, end, owner, encloser)
            self._read_parentheses(query, head if number == 1 else select, end, owner, block)
            if from_first is not None and number == 1:
                shared = [table for table in block.tables if table[1] < block.select.start]
            else:
                block.tables += shared

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
        tokens = self._tokens
        begin, end = tokens[start].start, tokens[high - 1].end
        block = Block(path, tokens[select], query, begin, end, self._code, start, high, encloser)
        after = select + 1
        while after < high and tokens[after].kind == "hint start":
            block.comments.append(self._comments[tokens[after].start])
            after += 1
        if self._code.is_transform(after):
            block.comments, block.takes_hints = [], False
        block.has_open_hints = any(
            comment.is_open or comment.start in self._after_templates for comment in block.comments
        )
        self._statement.blocks.append(block)
        return block

    def _make_unique(self, path: str) -> str:
        """Return a path with a number if it is taken, as by a second `cte a` in parentheses."""
        unique = path
        while unique in self._paths:
            self._copies[path] += 1
            unique = f"{path} ({self._copies[path] + 1})"
        self._paths.add(unique)
        return unique

    def _read_parentheses(
        self,
        query: Query,
        low: int,
        high: int,
        steps: _Steps,
        encloser: Block | None,
        is_from: bool = False,
    ) -> None:
        """Read the tables of a range, and the queries in its parentheses as subqueries."""
        code = self._code
        has_table = is_from  # at the next token
        for index in code.outside_parentheses(low, high):
            if code.word(index) == "(" and index not in self._ctes:
                inside = index + 1, code.closing(index)
                if code.is_query(*inside):
                    self._subqueries[steps] += 1
                    step = f"subquery {self._subqueries[steps]}"
                    self._read_query(*inside, (*steps, step), encloser, query)
                else:
                    self._find_last_join(query, code.outside_parentheses(*inside))
                    self._read_parentheses(query, *inside, steps, encloser, has_table)
            elif not self._has_ctes:
                continue
            elif has_table and encloser is not None:
                token = self._tokens[index]
                if token.kind in ("word", "quoted") and code.word(index + 1) not in (".", "("):
                    encloser.tables.append((token.value, token.start))
            is_from = code.is_from(index) or (is_from and not code.is_end_of_from(index))
            has_table = (
                code.is_from(index)
                or code.word(index) in ("JOIN", "LATERAL", "TABLE")
                or (is_from and code.word(index) == ",")
            )

    def _read_with_list(self, scope: Query, low: int, high: int, steps: _Steps) -> int:
        """Read the queries that WITH names. Return the index after their list.

        Alternatives of a template can have a list each, or none. A SELECT before a list stays.
        """
        code = self._code
        rest, after_first = low, None
        has_select = False
        for index in code.outside_parentheses(low, high):
            if index < rest:
                continue
            has_select = has_select or code.is_select(index) or code.starts_query(index)
            if code.word(index) != "WITH":
                continue
            if has_select and after_first is None:
                after_first = low
            name = index + 1
            if code.word(name) == "RECURSIVE" and code.word(name + 1) not in ("AS", "("):
                name += 1
            while (opening := code.find_named_query(name)) is not None:
                closing = code.closing(opening)
                self._ctes.add(opening)
                if opening + 1 < closing:
                    cte = self._tokens[name].value
                    inside = opening + 1, closing
                    self._read_query(*inside, (*steps, f"cte {cte}"), None, scope, cte)
                rest = closing + 1
                if code.word(rest) != ",":
                    break
                name = rest + 1
            after_first = rest if after_first is None else after_first
        return low if after_first is None else after_first
