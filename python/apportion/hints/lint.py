"""The linter: finds hints that Spark or Apportion would ignore, reject or read differently."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import exp

from apportion.hints import grammar
from apportion.hints.expressions import write
from apportion.hints.findings import CODES, Complaint, Finding
from apportion.hints.relations import Relation, Relations, RelationsReader
from apportion.hints.schema import check as check_schema
from apportion.hints.schema import find_table_in
from apportion.sql.blocks import Block, StatementBlocks, Text, read
from apportion.sql.hint_comments import Argument, Hint, HintComment
from apportion.sql.positions import Positions
from apportion.sql.tokens import Token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `/* + NAME(` and `--+ NAME(`, or names without arguments.
_LIKE_A_HINT = re.compile(r"(?:/\*|--)\s*\+\s*(\w+)\s*(\(|,|\*/|$)")
# A hint comment, or a comment that looks like one. Other texts have no findings.
_MAYBE_A_HINT = re.compile(r"(?:/\*|--)\s*\+")
# Statements that join their query, or that keep it for joins of later queries.
_JOINING = ("MERGE", "UPDATE", "DELETE", "CREATE", "ALTER", "CACHE")
# Names in a message, and names that are compared with a wrong name.
_SHOWN_NAMES = 20
_NEAR_NAMES = 200


def lint(
    sql: str | exp.Expr, schema: Mapping[str, Any] | SparkSession | None = None
) -> list[Finding]:
    """Return the problems with the hints of a text, in the order of the text.

    A schema, `{table: {column: type}}` or a session, finds more: hints for tables that it does not
    have, and hints of blocks that shuffle nothing. Raises `InputError` for another form of schema.

    The places in an expression of sqlglot are those in its Spark SQL, `sql.sql(dialect="spark")`.

    The text may have several statements, SQL scripts, comments and Jinja templates. Hints that
    Spark cannot parse are a finding and raise no error. A statement without hints has no findings.
    Takes time linear in the length of the text.
    """
    sql = write(sql)
    if not _MAYBE_A_HINT.search(sql):
        return []
    text = read(sql)
    positions = Positions(sql)
    reader = RelationsReader(sql)
    find_table = None if schema is None else find_table_in(schema)
    findings: list[Finding] = []
    for statement in text.statements:
        complaints = [*_check_statement(text, statement, reader)]
        if find_table is not None:
            complaints += check_schema(sql, statement, find_table)
        findings += [_locate(positions, each, statement.number) for each in complaints]
    starts = sorted((statement.start, statement.number) for statement in text.statements)
    findings += [
        _locate(positions, complaint, _find_number(starts, token))
        for token in text.tokens
        if token.kind == "comment"
        for complaint in _check_ordinary_comment(token)
    ]
    return sorted(findings, key=lambda finding: (finding.offset, finding.code))


def _find_number(starts: list[tuple[int, int]], comment: Token) -> int:
    """Return the number of the statement with a comment, or of the statement before it."""
    index = bisect.bisect(starts, (comment.start,))
    return starts[max(0, index - 1)][1] if starts else 1


def _locate(positions: Positions, complaint: Complaint, statement: int) -> Finding:
    code, start, end, message, suggestion = complaint
    line, column = positions.line_column(start)
    severity, _ = CODES[code]
    return Finding(line, column, code, message, suggestion, severity, start, end - start, statement)


def _check_comment(comment: HintComment) -> Iterator[Complaint]:
    stray = comment.stray
    if stray is not None:
        yield Complaint(
            "APH104",
            stray.start,
            stray.end,
            f"Spark cannot parse this hint comment at {stray.text}, so the statement fails",
            "write /*+ NAME(argument, ...), NAME(argument, ...) */",
        )
    for hint in comment.hints:
        garbled = stray is not None and hint.start < stray.start < hint.end and stray.text != ")"
        if not garbled and not hint.is_open:
            yield from grammar.check(hint)


def _find_misplaced(text: Text, statement: StatementBlocks) -> Iterator[Complaint]:
    is_read = statement.problem is None and statement.is_complete
    for comment, before in statement.misplaced_comments():
        word = before.word if before else ""
        if word == "SELECT" and not is_read:
            continue  # it is unknown whether this SELECT is a block
        if before is not None and before.kind == "template":
            continue  # the template can render to SELECT, or to nothing behind a SELECT
        where = f"after {before.text}" if before else "before a statement"
        move = "move it directly after the SELECT of its block"
        if word == "SELECT":
            where, move = "in SELECT TRANSFORM", "remove it"
        elif before is not None and word in ("DISTINCT", "ALL"):
            move = f"write SELECT {text.sql[comment.start : comment.end]} {before.text}"
        yield Complaint(
            "APH101",
            comment.start,
            comment.end,
            f"Spark allows a hint comment only directly after SELECT. This one is {where}, so the "
            "statement fails with PARSE_SYNTAX_ERROR",
            move,
        )


def _check_ordinary_comment(token: Token) -> Iterator[Complaint]:
    match = _LIKE_A_HINT.match(token.text)
    if match is None:
        return
    name = match[1].upper()
    if name in grammar.KNOWN or (match[2] == "(" and grammar.suggest_hint(name)):
        inner = token.text.strip("/*-").strip().lstrip("+").strip()
        yield Complaint(
            "APH102",
            token.start,
            token.end,
            f"Spark reads this as an ordinary comment, so {name} has no effect",
            f"write /*+ {inner} */ directly after SELECT",
        )


def _check_statement(
    text: Text, statement: StatementBlocks, reader: RelationsReader
) -> Iterator[Complaint]:
    problem = statement.problem
    if problem is not None and "/*+" in text.sql[statement.start : statement.end]:
        start, end, code, message = problem
        skipped = "so blocks cannot be found and only single hints were checked"
        yield Complaint(code, start, end, f"{message}, {skipped}")
    for comment, _ in statement.comments:
        yield from _check_comment(comment)
    yield from _find_misplaced(text, statement)
    for block in statement.blocks:
        # The alternatives of a template are not in one rendered text.
        if not block.has_open_hints:
            yield from _find_additional_comments(block)
            yield from _find_duplicates(block)
            yield from _find_overridden_repartitions(block)
        yield from _find_inner_deadlines(block)
        yield from _find_contradiction(block)
        relations = reader.read(block) if any(map(_needs_relations, block.hints)) else None
        if relations is not None:
            yield from _check_relations(statement, block, relations)


def _needs_relations(hint: Hint) -> bool:
    return hint.name in grammar.JOIN_STRATEGIES or bool(grammar.get_tables(hint))


def _check_relations(
    statement: StatementBlocks, block: Block, relations: Relations
) -> Iterator[Complaint]:
    checks = _RelationChecks(statement, block, relations)
    if not block.has_open_hints:
        yield from checks.find_overridden_join_hints()
    yield from checks.find_unknown_tables()
    # A template instead of a table can render to a join.
    if not relations.has_template:
        yield from checks.find_hints_without_join()


def _find_additional_comments(block: Block) -> Iterator[Complaint]:
    for comment in block.comments[1:]:
        yield Complaint(
            "APH103",
            comment.start,
            comment.end,
            "additional hint comment of the same SELECT: Spark reads it, but other SQL tools often "
            "lose it",
            "move its hints into the first comment",
        )


def _find_duplicates(block: Block) -> Iterator[Complaint]:
    used = grammar.select_used(block.hints)
    for hint in block.hints:
        first = used.get(grammar.get_key(hint), hint)
        if first.start < hint.start and not any(grammar.check(hint)):
            message = (
                f"{hint.name} appears more than once in this block, and only the first, "
                f"{first.text}, is used"
            )
            yield Complaint("APH311", hint.start, hint.end, message, "keep one of them")


def _find_inner_deadlines(block: Block) -> Iterator[Complaint]:
    if block.encloser is None and block.query.cte is None:
        return
    for hint in block.hints:
        if hint.name == "FINISH_WITHIN" and not hint.is_open and not any(grammar.check(hint)):
            message = f"{hint.text} is ignored because its block is inside of another one"
            suggestion = "write it in the outermost SELECT, as it applies to the whole query"
            yield Complaint("APH313", hint.start, hint.end, message, suggestion)


def _find_contradiction(block: Block) -> Iterator[Complaint]:
    """Find a PARALLELISM that the bounds of the nearest block around it exclude."""
    key = ("PARALLELISM", ())
    own = grammar.select_used(block.hints).get(key)
    outer = block.encloser
    while own and outer and key not in grammar.select_used(outer.hints):
        outer = outer.encloser
    around = grammar.select_used(outer.hints).get(key) if own and outer else None
    if not (own and outer and around and len(around.arguments) == 2):
        return
    arguments = (*own.arguments, *around.arguments)
    if all(argument.kind == "integer" for argument in arguments):  # else a template
        *numbers, least, most = (argument.integer for argument in arguments)
        if numbers[-1] < least or numbers[0] > most:
            message = (
                f"{own.text} is outside of {around.text} in the surrounding block {outer.path!r}"
            )
            yield Complaint("APH316", own.start, own.end, message, "change one of them")


def _find_overridden_repartitions(block: Block) -> Iterator[Complaint]:
    """Find repartition hints without effect.

    Spark puts the first hint on top of the plan. A lower hint matters only below COALESCE, which
    merges the partitions of the lower one.
    """
    first: Hint | None = None
    for hint in block.hints:
        if hint.name not in grammar.REPARTITIONS:
            continue
        if first is None or (first.name == grammar.COALESCE and hint.name != grammar.COALESCE):
            first = hint
        else:
            message = f"{hint.text} has no effect on the result because {first.text} comes first"
            yield Complaint("APH405", hint.start, hint.end, message, "keep one of them")


class _Named(NamedTuple):
    """An argument of a hint that names a table, and the relation if the block has it."""

    hint: Hint
    argument: Argument
    relation: Relation | None


class _RelationChecks:
    """The checks of one block that need its tables."""

    def __init__(self, statement: StatementBlocks, block: Block, relations: Relations) -> None:
        self._statement = statement
        self._block = block
        self._relations = relations
        # A message of a long pipeline would be as long as the pipeline.
        self._names = list(dict.fromkeys(each.text for each in relations.found[-_NEAR_NAMES:]))

    def find_unknown_tables(self) -> Iterator[Complaint]:
        for hint, argument, relation in self._find_named():
            if relation is None:
                tables = ", ".join(self._names[-_SHOWN_NAMES:]) or "no tables"
                if len(self._relations.found) > _SHOWN_NAMES < len(self._names):
                    tables = f"{len(self._relations.found)} tables, the last are {tables}"
                code = "APH310" if hint.name in grammar.APPORTION else "APH402"
                nearest = grammar.find_nearest(argument.string, self._names)
                yield Complaint(
                    code,
                    argument.start,
                    argument.end,
                    f"{hint.name} names {argument.text}, which is not a table or alias of its "
                    f"block (the block has {tables}), so the hint is ignored",
                    f"did you mean {nearest}?" if nearest else None,
                )

    def find_overridden_join_hints(self) -> Iterator[Complaint]:
        first: dict[Relation, Hint] = {}
        for hint, argument, relation in self._find_named():
            if hint.name not in grammar.JOIN_STRATEGIES or relation is None:
                continue
            used = first.setdefault(relation, hint)
            if grammar.JOIN_STRATEGIES[used.name] != grammar.JOIN_STRATEGIES[hint.name]:
                message = (
                    f"{hint.name} has no effect on {argument.text} because {used.text} comes first"
                )
                yield Complaint("APH403", argument.start, argument.end, message, "keep one of them")
        if len(self._relations.found) == 2 and len(first) == 2:
            yield from self._compare_sides(*first.values())

    def _compare_sides(self, left: Hint, right: Hint) -> Iterator[Complaint]:
        strategies = [grammar.JOIN_STRATEGIES[hint.name] for hint in (left, right)]
        if strategies[0] == strategies[1]:
            return
        winner, loser = sorted(
            (left, right),
            key=lambda hint: grammar.PREFERENCE.index(grammar.JOIN_STRATEGIES[hint.name]),
        )
        message = (
            f"{loser.text} and {winner.text} are for the two sides of one join; Spark prefers "
            f"{grammar.JOIN_STRATEGIES[winner.name]} if the join allows it"
        )
        yield Complaint("APH403", loser.start, loser.end, message, "keep one of them")

    def find_hints_without_join(self) -> Iterator[Complaint]:
        """Find join hints of blocks that have no join and that no enclosing block joins."""
        block = self._block
        if block.encloser is not None or self._statement.verb in _JOINING:
            return
        last_join = block.query.last_join
        for hint in block.hints:
            if hint.name not in grammar.JOIN_STRATEGIES:
                continue
            if hint.arguments and not any(map(self._find_relation, hint.arguments)):
                continue  # find_unknown_tables reports this hint
            joined = last_join > block.end or (
                hint.arguments and (last_join >= 0 or len(self._relations.found) > 1)
            )
            if not joined:
                message = f"{hint.text} has no effect because no join reads " + (
                    ", ".join(argument.text for argument in hint.arguments)
                    or "the result of its block"
                )
                yield Complaint("APH404", hint.start, hint.end, message)

    def _find_named(self) -> Iterator[_Named]:
        for hint in self._block.hints:
            for argument in grammar.get_tables(hint):
                if argument.kind in ("name", "string"):
                    yield _Named(hint, argument, self._find_relation(argument))

    def _find_relation(self, argument: Argument) -> Relation | None:
        """Return the relation for a name, or None. As Spark does, compare its last parts."""
        return self._relations.find(argument.parts)
