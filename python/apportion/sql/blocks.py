"""Finds the query blocks of a text: its SELECTs, their nesting, their tables, and their paths.

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

The blocks are found in one pass over the tokens, so a statement that no parser knows has blocks
too. sqlglot's parser alone takes longer than the linter, and such statements would need this pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apportion.sql.hint_comments import Hint, HintComment
from apportion.sql.positions import Positions
from apportion.sql.relations import SET_OPERATORS, RelationReader, Relations, State
from apportion.sql.statements import SplitText, split_tokens
from apportion.sql.tokens import Problem, Token

MAIN = "main"
# SELECT is a privilege in these statements.
_WITHOUT_QUERY = ("GRANT", "REVOKE", "DENY")
# Spark's own parser fails before this depth.
_DEEPEST = 1500

_QUERY_STARTS = ("SELECT", "WITH", "FROM")
_OPERAND_STARTS = ("SELECT", "WITH", "VALUES", "TABLE", "MAP", "REDUCE")
# Statements that allow parentheses around their query. In other statements, a query in parentheses
# is a subquery.
_AROUND_QUERIES = ("INSERT", "CREATE", "REPLACE", "CACHE", "EXPLAIN", "DESCRIBE", "DESC", "ALTER")
_QUANTIFIERS = ("ALL", "DISTINCT")  # of a set operation
_DECORATION = ("hint start", "template")
_NO_HEAD = ("FROM", "VALUES", "WHERE", "SET")
_AFTER_SET_OPERATION = ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
# Words that can start a part of a query.
_STARTS = frozenset(("SELECT", "WITH", "|>", "FROM", *SET_OPERATORS, *_AFTER_SET_OPERATION))
# SELECT is not a reserved word in Spark. Next to these tokens it is a name.
_OPERATORS = frozenset((",", ".", "+", "-", "*", "/", "%", "=", "<", ">", "||", "->"))
_NOT_BEFORE_SELECT = _OPERATORS | frozenset(
    ("SELECT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "HAVING", "CASE", "WHEN", "LIKE")
)
_NOT_AFTER_SELECT = frozenset(("FROM", ",", ".", ")", "=", "<", ">", "/", "%", "||", ";", "|>"))
_NOT_AFTER_ALIAS = frozenset(
    ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "INSERT")
)

_Steps = tuple[str, ...]


class Query:
    """A query expression, the content of its parentheses or its statement, with its parts.

    `around` is the part around it, which for a CTE has the WITH. `name` is the name that WITH gives
    the query, or None if the query is not a CTE. `cte` is the CTE that the query is or that is
    around it. `ctes` are the queries of its own WITH, by name in lower case. `last_join` is the
    offset of its last JOIN, or -1. `steps` is its path.
    """

    def __init__(self, low: int, end: int, around: _Part | None, name: str | None = None) -> None:
        self.low = low
        self.end = end
        self.around = around
        self.name = name
        outer = around.query.cte if around else None
        self.cte: Query | None = outer if name is None else self
        self.ctes: dict[str, list[Query]] = {}
        self.last_join = -1
        self.operators: list[str] = []
        self.is_whole = around is None  # whether it adds no step to the path
        self.steps: _Steps = ()
        self.parts = [_Part(self, low, 1)]

    def find_cte(self, name: str, offset: int) -> Query | None:
        """Return the CTE that `name` refers to at an offset, or None if it refers to no CTE."""
        query: Query | None = self
        while query is not None:
            # The innermost WITH decides, and in it the last definition before the offset.
            for cte in reversed(query.ctes.get(name.lower(), [])):
                if cte.end <= offset:
                    return cte
            query = query.around.query if query.around else None
        return None


class _Part:
    """A part of a query with at most one block.

    It is a branch of a set operation, or one of several SELECTs of a branch, or an operator of a
    pipeline, or the clauses behind a set operation. The last two have the branch 0.
    """

    def __init__(self, query: Query, low: int, branch: int, is_pipe: bool = False) -> None:
        self.query = query
        self.low = low
        self.high = low
        self.branch = branch
        self.is_pipe = is_pipe
        self.relations = Relations()
        self.from_start: int | None = None  # of a FROM before its SELECT
        self.block: Block | None = None
        self.encloser: Block | None = None
        self.steps: _Steps = ()


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT and its place.

    `select` is the SELECT keyword. `sql[start:end]` is the part of the query that belongs to the
    block. `encloser` is the block around it. An outermost block has None, and so has a block of a
    CTE, because Spark treats a CTE as if it were written at each place of use. `comments` are the
    hint comments that Spark reads for the block. `takes_hints` is false for SELECT TRANSFORM.
    `relations` are those of its FROM, and those behind the block in the same pipeline. `users` are
    the blocks that read its result: the encloser, or the blocks that use its CTE. With
    `has_open_hints`, a template decides which hints the block has.
    """

    select: Token
    query: Query
    start: int
    relations: Relations
    path: str = ""
    end: int = 0
    encloser: Block | None = None
    comments: list[HintComment] = field(default_factory=list)
    users: dict[Block, None] = field(default_factory=dict)
    takes_hints: bool = True
    has_open_hints: bool = False

    @property
    def is_outermost(self) -> bool:
        """Whether the block has no encloser and is no block of a CTE."""
        return self.encloser is None and self.query.cte is None

    @property
    def is_branch(self) -> bool:
        """Whether the block is outermost, and a branch of a set operation."""
        query: Query | None = self.query
        while query and not query.operators:
            query = query.around.query if query.around else None
        return self.is_outermost and query is not None

    @property
    def hints(self) -> list[Hint]:
        """The hints of the block in the order of the text."""
        return [hint for comment in self.comments for hint in comment.hints]


@dataclass(slots=True, eq=False)
class StatementBlocks:
    """The blocks of one statement, `sql[start:end]` without its semicolon.

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
    problem: Problem | None = None
    is_complete: bool = True


@dataclass(slots=True)
class Text:
    """A text, its tokens with comments, and its statements."""

    sql: str
    tokens: list[Token]
    statements: list[StatementBlocks]

    @property
    def blocks(self) -> list[Block]:
        """The blocks of all statements in the order of the text."""
        return [block for statement in self.statements for block in statement.blocks]

    @property
    def problem(self) -> Problem | None:
        """The first problem of all statements."""
        problems = (statement.problem for statement in self.statements)
        return min((problem for problem in problems if problem), default=None)

    def describe(self, offset: int) -> str:
        """Return the place of an offset, such as `line 3, column 7`."""
        return Positions(self.sql).describe(offset)


def read(sql: str, *, only_hinted: bool = False) -> Text:
    """Read the statements and blocks of a text. An unreadable statement gets a `problem`.

    With `only_hinted`, statements without hint comments have no blocks.
    """
    split = split_tokens(sql)
    return Text(sql, split.tokens, list(_read_statements(split, only_hinted)))


def _read_statements(split: SplitText, only_hinted: bool) -> Iterator[StatementBlocks]:
    problems = {problem.start: problem for problem in split.problems}
    for number, statement in enumerate(split.statements, 1):
        for place, tokens in enumerate(statement.parts, 1):
            prefix: _Steps = ()
            if len(split.statements) > 1:
                prefix += (f"statement {number}",)
            if len(statement.parts) > 1:
                prefix += (f"statement {place}",)
            part = StatementBlocks(
                tokens[0].start,
                tokens[-1].end,
                number,
                next((token.word for token in tokens if token.kind == "word"), ""),
                list(_find_comments(tokens, split.comments)),
            )
            unreadable = (token for token in tokens if token.kind == "unreadable")
            part.problem = next((problems[token.start] for token in unreadable), None)
            is_wanted = part.comments or not only_hinted
            if is_wanted and part.problem is None and part.verb not in _WITHOUT_QUERY:
                _find_blocks(part, tokens, prefix)
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


def _find_blocks(statement: StatementBlocks, tokens: Sequence[Token], prefix: _Steps) -> None:
    """Add the blocks to a statement, or the problem that hides them."""
    code = _select_code(tokens)
    partners, problem = _match_parentheses(code)
    if problem is not None and len(first := _select_code(tokens, only_first=True)) < len(code):
        # Each alternative can open a parenthesis that all of them close together.
        statement.is_complete = False
        code = first
        partners, problem = _match_parentheses(code)
    statement.problem = problem
    if problem is None and code:
        statement.blocks = _BlockFinder(statement, code, partners).run(prefix)


def _select_code(tokens: Sequence[Token], *, only_first: bool = False) -> list[Token]:
    """Return the tokens without templates that render to nothing.

    With `only_first`, also without the tokens that follow `{% else %}` or `{% elif x %}`.
    """
    code: list[Token] = []
    is_left_out = [False]
    for token in tokens:
        effect = token.effect
        if effect == "value":
            if not is_left_out[-1]:
                code.append(token)
        elif effect == "if":
            is_left_out.append(is_left_out[-1])
        elif effect == "else":
            is_left_out[-1] = only_first
        elif effect == "endif" and len(is_left_out) > 1:
            is_left_out.pop()
    return code


def _match_parentheses(code: Sequence[Token]) -> tuple[dict[int, int], Problem | None]:
    """Return the index of `)` for each `(`."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(code):
        if token.text == "(":
            opened.append(index)
            if len(opened) > _DEEPEST:
                start, message = code[0].start, "parentheses are nested too deeply"
                return partners, Problem(start, start + 1, "APH002", message)
        elif token.text == ")":
            if not opened:
                return partners, _report_unmatched(token)
            partners[opened.pop()] = index
    return partners, _report_unmatched(code[opened[-1]]) if opened else None


def _report_unmatched(token: Token) -> Problem:
    return Problem(token.start, token.end, "APH002", f"unmatched parenthesis {token.text}")


class _Level(NamedTuple):
    """Parentheses up to the index `high`. With `is_query`, they are those of the query."""

    high: int
    query: Query
    is_query: bool
    reader: RelationReader


class _BlockFinder:
    """Finds the blocks of a statement in one pass over code with matching parentheses."""

    def __init__(
        self, statement: StatementBlocks, code: list[Token], partners: dict[int, int]
    ) -> None:
        self._verb = statement.verb
        self._comments = {
            comment.start: (comment, before) for comment, before in statement.comments
        }
        self._code = code
        # No index of a following word is behind the end.
        self._words = [*(token.word for token in code), *[""] * 6]
        self._partners = partners
        # The first token behind each `(` and any further `(` directly behind it.
        self._inner: dict[int, int] = {}
        for opening in sorted(partners, reverse=True):
            first = self._skip_decoration(opening + 1)
            self._inner[opening] = self._inner.get(first, first)
        self._ctes: dict[int, str] = {}  # the name of each CTE by its `(`
        self._queries: list[Query] = []

    def run(self, prefix: _Steps) -> list[Block]:
        code, words = self._code, self._words
        levels = [self._open_query(len(code), Query(0, code[-1].end, None))]
        for index, word in enumerate(words[: len(code) + 1]):
            level = levels[-1]
            if index == level.high:
                if level.is_query:
                    self._end_part(level.query, index)
                levels.pop()
            elif word == "(":
                levels.append(self._open(level, index))
            else:
                if word == "JOIN" and words[index - 1] != ".":
                    level.query.last_join = code[index].start
                if level.is_query and word in _STARTS:
                    self._start_part(level, index, word)
                if level.reader.state:
                    level.reader.read(level.query.parts[-1].relations, index)
        blocks = sorted(self._name_blocks(prefix), key=lambda block: block.select.start)
        if self._ctes:
            self._find_users(blocks)
        return blocks

    def _open_query(self, high: int, query: Query) -> _Level:
        self._queries.append(query)
        state: State = "table" if self._words[query.low] == "TABLE" else ""
        return _Level(high, query, True, RelationReader(self._code, self._words, state))

    def _open(self, level: _Level, opening: int) -> _Level:
        """Return the level of the parentheses that are opened."""
        high, part = self._partners[opening], level.query.parts[-1]
        end = self._code[high].end
        cte = self._ctes.get(opening)
        if cte is not None and opening + 1 < high:
            query = Query(opening + 1, end, part, cte)
            part.query.ctes.setdefault(cte.lower(), []).append(query)
            return self._open_query(high, query)
        is_query = self._is_query(opening)
        reader = level.reader.open(part.relations, opening, is_query=is_query)
        is_whole = level.is_query and self._is_whole_query(part, opening)
        if not is_query and not is_whole:
            return _Level(high, level.query, False, reader)
        query = Query(opening + 1, end, part)
        query.is_whole = is_whole
        if is_whole:
            part.low = high + 1
        return self._open_query(high, query)

    def _start_part(self, level: _Level, index: int, word: str) -> None:
        query, reader = level.query, level.reader
        part = query.parts[-1]
        if word == "SELECT":
            if self._is_select(index):
                self._add_block(query, index)
        elif word == "WITH":
            self._read_with_list(part, index)
            if self._words[part.low] == "TABLE":
                reader.start(part.low, "table")
        elif word == "FROM":
            if self._is_from(index):
                reader.start(index + 1, "table")
                if part.block is None and part.from_start is None and not part.is_pipe:
                    part.from_start = index
        elif word == "|>":
            is_alias = self._words[index + 1] == "AS"
            reader.start(index + 1, "alias" if is_alias else "pipe")
            relations = Relations() if is_alias else part.relations
            self._add_part(query, index, _Part(query, index + 1, 0, is_pipe=True), relations)
        elif word in SET_OPERATORS:
            if self._is_set_operator(index):
                query.operators.append(SET_OPERATORS[word])
                self._add_part(query, index, _Part(query, index + 1, len(query.operators) + 1))
        elif query.operators and part.branch and self._is_tail(index):
            self._add_part(query, index, _Part(query, index, 0))

    def _add_part(
        self, query: Query, end: int, part: _Part, relations: Relations | None = None
    ) -> None:
        self._end_part(query, end)
        part.relations = relations or part.relations
        query.parts.append(part)

    def _end_part(self, query: Query, end: int) -> None:
        part = query.parts[-1]
        part.high = end
        if part.block is not None:
            part.block.end = self._code[end - 1].end

    def _add_block(self, query: Query, index: int) -> None:
        first = query.parts[-1]
        if first.block is not None:
            relations = None if first.from_start is None else first.relations
            self._add_part(query, index, _Part(query, index, first.branch), relations)
            query.parts[-1].from_start = first.from_start
        part, code = query.parts[-1], self._code
        start = query.low if part.is_pipe else index if part.from_start is None else part.from_start
        block = Block(code[index], query, code[start].start, part.relations)
        after = index + 1
        while after < len(code) and code[after].kind == "hint start":
            comment, before = self._comments[code[after].start]
            block.comments.append(comment)
            block.has_open_hints |= comment.is_open or (
                before is not None and before.kind == "template"
            )
            after += 1
        if self._is_transform(after):
            block.comments, block.takes_hints = [], False
        part.block = block

    def _name_blocks(self, prefix: _Steps) -> Iterator[Block]:
        """Yield the blocks with their paths and enclosers, the outer scopes first."""
        subqueries: Counter[_Steps] = Counter()
        copies: Counter[str] = Counter()
        for query in self._queries:
            around, encloser = query.around, None
            if around is None:
                query.steps = prefix
            elif query.name is not None:
                query.steps = (*around.query.steps, f"cte {query.name}")
            elif query.is_whole and around.block is None:
                query.steps, encloser = around.steps, around.encloser
            else:
                subqueries[around.steps] += 1
                query.steps = (*around.steps, f"subquery {subqueries[around.steps]}")
                encloser = (None if query.is_whole else around.block) or around.encloser
            # A later operator of a pipeline encloses the earlier ones.
            for part in reversed(query.parts):
                part.encloser = encloser
                encloser = (part.block if part.is_pipe else None) or encloser
            self._name_parts(query)
            for part in query.parts:
                block = part.block
                if block is not None:
                    path = " / ".join(part.steps if part.steps != prefix else (*prefix, MAIN))
                    copies[path] += 1
                    block.path = path if copies[path] == 1 else f"{path} ({copies[path]})"
                    block.encloser = part.encloser
                    block.users = {part.encloser: None} if part.encloser else {}
                    yield block

    def _name_parts(self, query: Query) -> None:
        bodies = Counter(part.branch for part in query.parts if part.block and not part.is_pipe)
        numbers: Counter[int | str] = Counter()
        for part in query.parts:
            part.steps = query.steps
            if query.operators and part.branch:
                operator = query.operators[max(part.branch - 2, 0)]
                part.steps += (f"{operator} branch {part.branch}",)
            if part.block and part.is_pipe:
                numbers["pipe"] += 1
                part.steps += (f"pipe {numbers['pipe']}",)
            elif part.block and bodies[part.branch] > 1:
                numbers[part.branch] += 1
                part.steps += (f"body {numbers[part.branch]}",)

    def _find_users(self, blocks: list[Block]) -> None:
        blocks_of_cte: dict[Query, list[Block]] = defaultdict(list)
        for block in blocks:
            if block.encloser is None and block.query.cte is not None:
                blocks_of_cte[block.query.cte].append(block)
        for part in (part for query in self._queries for part in query.parts):
            user = part.block or part.encloser
            low = part.low if part.from_start is None else part.from_start
            if user is None or low >= part.high:
                continue
            first, last = self._code[low].start, self._code[part.high - 1].end
            relations = part.relations
            for each in relations.found[relations.before(first) : relations.before(last)]:
                cte = part.query.find_cte(each.table, each.start) if each.table else None
                for block in blocks_of_cte[cte] if cte else ():
                    block.users[user] = None

    def _skip_decoration(self, index: int) -> int:
        while index < len(self._code) and self._code[index].kind in _DECORATION:
            index += 1
        return index

    def _is_select(self, index: int) -> bool:
        """Tell whether a SELECT starts here. SELECT can also be a name."""
        before, after = index - 1, index + 1
        while before >= 0 and self._code[before].kind == "hint start":
            before -= 1
        word = self._words[before] if before >= 0 else ""
        if word in _NOT_BEFORE_SELECT or after == len(self._code):
            return False
        if self._code[after].kind == "hint start":
            return True
        is_alias = word == "AS" and self._words[after] in _NOT_AFTER_ALIAS
        return not is_alias and self._words[after] not in _NOT_AFTER_SELECT

    def _is_transform(self, index: int) -> bool:
        """Tell `SELECT TRANSFORM (...) USING` from a call of the function `transform`."""
        if self._words[index] != "TRANSFORM" or self._words[index + 1] != "(":
            return False
        after = self._partners[index + 1] + 1
        return self._words[after] in ("USING", "RECORDWRITER") or (
            self._words[after : after + 2] == ["ROW", "FORMAT"]
        )

    def _is_from(self, index: int) -> bool:
        """Tell whether tables follow. FROM can also be a name or part of IS DISTINCT FROM."""
        before = self._words[index - 1] if index else ""
        is_operator = before == "DISTINCT" and self._words[index - 2] in ("IS", "NOT")
        return before != "." and not is_operator

    def _is_set_operator(self, index: int) -> bool:
        """Tell whether this token combines two queries. `* EXCEPT (a)` does not."""
        if index == 0 or self._words[index - 1] in ("|>", ".", ",", "SELECT"):
            return False
        after = index + 1
        while self._words[after] in _QUANTIFIERS:
            after += 1
        after = self._skip_decoration(after)
        return self._starts_query(after) or self._words[after] in _OPERAND_STARTS

    def _is_tail(self, index: int) -> bool:
        """Tell whether a clause that follows set operations starts here, such as ORDER BY."""
        word = self._words[index]
        return word in ("LIMIT", "OFFSET") or (
            word in _AFTER_SET_OPERATION and self._words[index + 1] == "BY"
        )

    def _is_query(self, opening: int) -> bool:
        """Tell whether the content of parentheses is a query."""
        first, closing = self._skip_decoration(opening + 1), self._partners[opening]
        word = self._words[first]
        if word == "(":
            after = self._partners[first] + 1
            follows = self._words[after]
            return after < closing and (
                (follows in SET_OPERATORS and self._is_set_operator(after))
                or self._is_tail(after)
                or follows == "|>"
            )
        is_start = first < closing and word in _QUERY_STARTS
        return is_start and (word != "SELECT" or self._is_select(first))

    def _starts_query(self, opening: int) -> bool:
        """Tell whether a query starts after this `(` and any further `(` directly after it."""
        first = self._inner.get(opening)
        return first is not None and self._words[first] in (*_QUERY_STARTS, *_OPERAND_STARTS)

    def _is_whole_query(self, part: _Part, opening: int) -> bool:
        """Tell whether parentheses are around the query of a part, as in `(SELECT a) ORDER BY a`.

        Only the head of a statement, such as INSERT INTO t, or the ALL of UNION ALL can be before
        them.
        """
        if part.block is not None or not self._starts_query(opening):
            return False
        index = part.low
        while index < opening:
            word = self._words[index]
            is_head = self._verb in _AROUND_QUERIES and word not in _NO_HEAD
            is_skipped = word in _QUANTIFIERS or self._code[index].kind in _DECORATION
            if not is_head and not is_skipped:
                return False
            index = self._partners.get(index, index) + 1
        return True

    def _read_with_list(self, part: _Part, index: int) -> None:
        """Find the queries that WITH names. The part starts after them.

        Alternatives of a template can have a list each.
        """
        name = index + 1
        if self._words[name] == "RECURSIVE" and self._words[name + 1] not in ("AS", "("):
            name += 1
        while (opening := self._find_named_query(name)) is not None:
            self._ctes[opening] = self._code[name].value
            after = self._partners[opening] + 1
            if part.block is None:
                part.low = after
            if self._words[after] != ",":
                break
            name = after + 1

    def _find_named_query(self, index: int) -> int | None:
        """Return the `(` before the query in `name [(columns)] [AS] (query)`, or None."""
        words = self._words
        if index >= len(self._code) or self._code[index].kind not in ("word", "quoted", "template"):
            return None
        index += 1
        if words[index] == "(":
            after = self._partners[index] + 1
            index = after if words[after] in ("AS", "MAX", "(") else index
        if words[index] == "MAX":
            index += 4  # MAX RECURSION LEVEL 100
        has_as = words[index : index + 1] == ["AS"]
        index += has_as
        is_query = words[index : index + 1] == ["("] and (has_as or self._starts_query(index))
        return index if is_query else None
