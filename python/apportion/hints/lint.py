"""The linter: finds hints that Spark or Apportion would ignore, reject or read differently."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from apportion.hints import grammar
from apportion.hints.findings import CODES, Complaint, Finding, complain
from apportion.hints.schema import check as check_schema
from apportion.hints.schema import find_table_in
from apportion.sql.blocks import Block, StatementBlocks, Text, read
from apportion.sql.hint_comments import Argument, Hint, HintComment
from apportion.sql.positions import Positions
from apportion.sql.relations import Relation
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
    sql = sql if isinstance(sql, str) else sql.sql(dialect="spark")
    if not _MAYBE_A_HINT.search(sql):
        return []
    find_table = None if schema is None else find_table_in(schema)
    text = read(sql, only_hinted=True)
    positions = Positions(sql)
    findings: list[Finding] = []
    for statement in text.statements:
        complaints = [*_check_statement(text, statement)]
        if find_table is not None:
            complaints += check_schema(sql, statement, find_table)
        findings += [_locate(positions, each, statement.number) for each in complaints]
    starts = sorted((statement.start, statement.number) for statement in text.statements)
    for token in text.tokens:
        if token.kind == "comment":
            # The statement with the comment, or the one before it.
            index = max(0, bisect.bisect(starts, (token.start,)) - 1)
            number = starts[index][1] if starts else 1
            complaints = [*_check_ordinary_comment(token)]
            findings += [_locate(positions, each, number) for each in complaints]
    return sorted(findings, key=lambda finding: (finding.offset, finding.code))


def _locate(positions: Positions, complaint: Complaint, statement: int) -> Finding:
    code, start, end, message, suggestion = complaint
    line, column = positions.line_column(start)
    severity, _ = CODES[code]
    return Finding(line, column, code, message, suggestion, severity, start, end - start, statement)


def _check_ordinary_comment(token: Token) -> Iterator[Complaint]:
    match = _LIKE_A_HINT.match(token.text)
    name = match[1].upper() if match else ""
    if match and (name in grammar.KNOWN or (match[2] == "(" and grammar.suggest_hint(name))):
        inner = token.text.strip("/*-").strip().lstrip("+").strip()
        message = f"Spark reads this as an ordinary comment, so {name} has no effect"
        yield complain("APH102", token, message, f"write /*+ {inner} */ directly after SELECT")


def _check_statement(text: Text, statement: StatementBlocks) -> Iterator[Complaint]:
    problem = statement.problem
    if problem is not None and "/*+" in text.sql[statement.start : statement.end]:
        start, end, code, message = problem
        skipped = "so blocks cannot be found and only single hints were checked"
        yield Complaint(code, start, end, f"{message}, {skipped}")
    for comment, _ in statement.comments:
        yield from _check_comment(comment)
    yield from _find_misplaced(text, statement)
    for block in statement.blocks:
        if not block.comments:
            continue
        # The alternatives of a template are not in one rendered text.
        if not block.has_open_hints:
            yield from _find_repeated(block)
        yield from _find_inner_deadlines(block)
        yield from _find_contradiction(block)
        yield from _check_relations(statement, block)


def _check_comment(comment: HintComment) -> Iterator[Complaint]:
    stray = comment.stray
    if stray is not None:
        message = f"Spark cannot parse this hint comment at {stray.text}, so the statement fails"
        write = "write /*+ NAME(argument, ...), NAME(argument, ...) */"
        yield complain("APH104", stray, message, write)
    for hint in comment.hints:
        garbled = stray is not None and hint.start < stray.start < hint.end and stray.text != ")"
        if not garbled and not hint.is_open:
            yield from grammar.check(hint)


def _find_misplaced(text: Text, statement: StatementBlocks) -> Iterator[Complaint]:
    is_read = statement.problem is None and statement.is_complete
    placed = {comment.start for block in statement.blocks for comment in block.comments}
    for comment, before in statement.comments:
        word = before.word if before else ""
        # It can be unknown whether a SELECT is a block. A template can render to SELECT.
        is_unknown = word == "SELECT" and not is_read
        if comment.start in placed or is_unknown or (before and before.kind == "template"):
            continue
        where = f"after {before.text}" if before else "before a statement"
        move = "move it directly after the SELECT of its block"
        if word == "SELECT":
            where, move = "in SELECT TRANSFORM", "remove it"
        elif before is not None and word in ("DISTINCT", "ALL"):
            move = f"write SELECT {text.sql[comment.start : comment.end]} {before.text}"
        message = (
            f"Spark allows a hint comment only directly after SELECT. This one is {where}, so the "
            "statement fails with PARSE_SYNTAX_ERROR"
        )
        yield complain("APH101", comment, message, move)


def _find_repeated(block: Block) -> Iterator[Complaint]:
    """Find additional comments, hints that appear twice, and repartitions without effect."""
    for comment in block.comments[1:]:
        message = (
            "additional hint comment of the same SELECT: Spark reads it, but other SQL tools often "
            "lose it"
        )
        yield complain("APH103", comment, message, "move its hints into the first comment")
    used = grammar.select_used(block.hints)
    # Spark puts the first repartition hint on top of the plan. A lower hint matters only below
    # COALESCE, which merges the partitions of the lower one.
    top: Hint | None = None
    for hint in block.hints:
        first = used.get(grammar.get_key(hint), hint)
        if first.start < hint.start and not any(grammar.check(hint)):
            message = (
                f"{hint.name} appears more than once in this block, and only the first, "
                f"{first.text}, is used"
            )
            yield complain("APH311", hint, message, "keep one of them")
        if hint.name not in grammar.REPARTITIONS:
            continue
        if top is None or (top.name == grammar.COALESCE and hint.name != grammar.COALESCE):
            top = hint
        else:
            message = f"{hint.text} has no effect on the result because {top.text} comes first"
            yield complain("APH405", hint, message, "keep one of them")


def _find_inner_deadlines(block: Block) -> Iterator[Complaint]:
    if block.is_branch:
        place, outer = "a branch of a set operation", "a SELECT around the set operation"
    elif block.is_outermost:
        return
    else:
        place, outer = "inside of another one", "the outermost SELECT"
    for hint in block.hints:
        if hint.name == "FINISH_WITHIN" and not hint.is_open and not any(grammar.check(hint)):
            message = f"{hint.text} is ignored because its block is {place}"
            suggestion = f"write it in {outer}, as it applies to the whole query"
            yield complain("APH313", hint, message, suggestion)


def _find_contradiction(block: Block) -> Iterator[Complaint]:
    """Find a PARALLELISM that the bounds of a block around it, or of a user of a CTE, exclude."""
    key = ("PARALLELISM", ())
    own = grammar.select_used(block.hints).get(key)
    waiting = [*block.users] if own else []
    seen = {*waiting}
    while waiting:
        user = waiting.pop()
        around = grammar.select_used(user.hints).get(key)
        if around is None:
            waiting += user.users.keys() - seen
            seen |= user.users.keys()
        elif own and len(around.arguments) == 2:
            arguments = (*own.arguments, *around.arguments)
            if all(argument.kind == "integer" for argument in arguments):  # else a template
                *numbers, least, most = (argument.integer for argument in arguments)
                if numbers[-1] < least or numbers[0] > most:
                    message = (
                        f"{own.text} is outside of {around.text} in the surrounding block "
                        f"{user.path!r}"
                    )
                    yield complain("APH316", own, message, "change one of them")


def _check_relations(statement: StatementBlocks, block: Block) -> Iterator[Complaint]:
    """Check the hints that name tables. Unknown syntax in a FROM may be one of these tables."""
    relations = block.relations
    if relations.is_open or None in relations.by_name:
        return
    count = relations.before(block.end)
    first: dict[Relation, Hint] = {}
    for hint in block.hints:
        for argument in grammar.get_tables(hint):
            relation = _find_relation(block, argument)
            if argument.kind not in ("name", "string"):
                continue
            if relation is None:
                if not _may_name_table(hint, argument, block):
                    yield _report_unknown(hint, argument, block, count)
            elif hint.name in grammar.JOIN_STRATEGIES:
                used = first.setdefault(relation, hint)
                if _strategy(used) != _strategy(hint) and not block.has_open_hints:
                    message = (
                        f"{hint.name} has no effect on {argument.text} because {used.text} comes "
                        "first"
                    )
                    yield complain("APH403", argument, message, "keep one of them")
    if count == 2 and len(first) == 2 and not block.has_open_hints:
        yield from _compare_sides(*first.values())
    if block.encloser is None and statement.verb not in _JOINING:
        yield from _find_hints_without_join(block, count)


def _find_relation(block: Block, argument: Argument) -> Relation | None:
    """Return the first relation that a hint means by a name, or None."""
    near = block.relations.by_name.get(argument.parts[-1], ())
    named = (each for each in near if each.start < block.end and each.is_named(argument.parts))
    return next(named, None)


def _may_name_table(hint: Hint, argument: Argument, block: Block) -> bool:
    """Tell whether the database of a name decides. Spark's own hints need the name in the text."""
    return hint.name in grammar.APPORTION and any(
        each.may_be_named(argument.parts) and not block.query.find_cte(each.text, each.start)
        for each in block.relations.by_name.get(argument.parts[-1], ())
    )


def _report_unknown(hint: Hint, argument: Argument, block: Block, count: int) -> Complaint:
    # A message of a long pipeline would be as long as the pipeline.
    last = block.relations.found[max(0, count - _NEAR_NAMES) : count]
    names = list(dict.fromkeys(each.text for each in last if each.text))
    tables = ", ".join(names[-_SHOWN_NAMES:]) or "no tables"
    if count > _SHOWN_NAMES < len(names):
        tables = f"{count} tables, the last are {tables}"
    named = argument.string if argument.kind == "string" else argument.text
    message = (
        f"{hint.name} names {named}, which is not a table or alias of its block (the block has "
        f"{tables}), so the hint is ignored"
    )
    nearest = grammar.find_nearest(argument.string, names)
    code = "APH310" if hint.name in grammar.APPORTION else "APH402"
    return complain(code, argument, message, f"did you mean {nearest}?" if nearest else None)


def _compare_sides(left: Hint, right: Hint) -> Iterator[Complaint]:
    """Find a hint for one side of a join that the hint for the other side overrides."""
    order = [*grammar.PREFERENCE]
    winner, loser = sorted((left, right), key=lambda hint: order.index(_strategy(hint)))
    if _strategy(winner) != _strategy(loser):
        message = (
            f"{loser.text} and {winner.text} are for the two sides of one join; Spark prefers "
            f"{_strategy(winner)} if the join allows it"
        )
        yield complain("APH403", loser, message, "keep one of them")


def _strategy(hint: Hint) -> str:
    return grammar.JOIN_STRATEGIES[hint.name]


def _find_hints_without_join(block: Block, count: int) -> Iterator[Complaint]:
    """Find join hints of a block that has no join and that no enclosing block joins."""
    last_join = block.query.last_join
    for hint in block.hints:
        names = hint.arguments
        # _report_unknown reports a hint with wrong names only.
        is_known = not names or any(_find_relation(block, each) for each in names)
        joined = last_join > block.end or (names and (last_join >= 0 or count > 1))
        if hint.name in grammar.JOIN_STRATEGIES and is_known and not joined:
            read = ", ".join(each.text for each in names) or "the result of its block"
            message = f"{hint.text} has no effect because no join reads {read}"
            yield complain("APH404", hint, message)
