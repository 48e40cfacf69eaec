"""The linter: finds hints that Spark or Apportion would ignore, reject or read differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from apportion.hints import grammar
from apportion.hints.findings import CODES, Complaint, Finding
from apportion.hints.relations import Relation, parse
from apportion.sql.blocks import Block, StatementBlocks, Text, read
from apportion.sql.hint_comments import Argument, Hint, HintComment
from apportion.sql.positions import Positions
from apportion.sql.tokens import Token

# `/* + NAME(` and `--+ NAME(`, or names without arguments.
_LIKE_A_HINT = re.compile(r"(?:/\*|--)\s*\+\s*(\w+)\s*(\(|,|\*/|$)")
# Statements that join their query, or that keep it for joins of later queries.
_JOINING = ("MERGE", "UPDATE", "DELETE", "CREATE", "ALTER", "CACHE")


def lint(sql: str) -> list[Finding]:
    """Return the problems with the hints of a text, in the order of the text.

    The text may have several statements, comments and templates. Text that Spark cannot parse is a
    finding and raises no error.
    """
    text = read(sql)
    positions = Positions(sql)
    complaints = sorted(
        _find_complaints(text), key=lambda complaint: (complaint.start, complaint.code)
    )
    return [_locate(positions, complaint) for complaint in complaints]


def _locate(positions: Positions, complaint: Complaint) -> Finding:
    code, start, end, message, suggestion = complaint
    line, column = positions.line_column(start)
    severity, _ = CODES[code]
    return Finding(line, column, code, message, suggestion, severity, start, end - start)


def _find_complaints(text: Text) -> Iterator[Complaint]:
    if text.problem is not None:
        start, end, code, message = text.problem
        skipped = "so blocks cannot be found and only single hints were checked"
        yield Complaint(code, start, end, f"{message}, {skipped}")
    for comment, _ in text.comments:
        yield from _check_comment(comment)
    yield from _find_misplaced(text)
    for token in text.tokens:
        if token.kind == "comment":
            yield from _check_ordinary_comment(token)
    for statement in text.statements:
        yield from _check_statement(text, statement)


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
        if not garbled and "{" not in hint.name:
            yield from grammar.check(hint)


def _find_misplaced(text: Text) -> Iterator[Complaint]:
    for comment, before in text.misplaced_comments():
        word = before.word if before else ""
        if word == "SELECT" and text.problem is not None:
            continue  # it is unknown whether this SELECT is a block
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


def _check_statement(text: Text, statement: StatementBlocks) -> Iterator[Complaint]:
    parsed = parse(text, statement)
    for block in statement.blocks:
        yield from _find_additional_comments(block)
        yield from _find_duplicates(block)
        yield from _find_overridden_repartitions(block)
    if parsed.problem is not None:
        start, end, code, message = parsed.problem
        yield Complaint(code, start, end, f"{message}, so checks of tables and joins were skipped")
        return
    for block in statement.blocks:
        if not block.hints:
            continue
        relations = _Relations(text, statement, block, parsed.relations_in(block))
        yield from relations.find_overridden_join_hints()
        # A template can become a table or a join.
        if not _has_template(text, block):
            yield from relations.find_unknown_tables()
            yield from relations.find_hints_without_join()


def _has_template(text: Text, block: Block) -> bool:
    return any(token.kind == "template" for token in text.tokens_between(block.start, block.end))


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


class _Relations:
    """The checks of one block that need its tables."""

    def __init__(
        self, text: Text, statement: StatementBlocks, block: Block, relations: list[Relation]
    ) -> None:
        self._text = text
        self._statement = statement
        self._block = block
        self._relations = relations

    def find_unknown_tables(self) -> Iterator[Complaint]:
        for hint, argument, relation in self._find_named():
            if relation is None:
                names = list(dict.fromkeys(relation.text for relation in self._relations))
                tables = ", ".join(names) or "no tables"
                code = "APH310" if hint.name in grammar.APPORTION else "APH402"
                nearest = grammar.find_nearest(argument.string, names)
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
        if len(self._relations) == 2 and len(first) == 2:
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
        joins = [
            token
            for token in self._text.tokens_between(block.query.start, block.query.end)
            if token.word == "JOIN" and self._statement.query_at(token.start) is block.query
        ]
        for hint in block.hints:
            if hint.name not in grammar.JOIN_STRATEGIES:
                continue
            if hint.arguments and not any(map(self._find_relation, hint.arguments)):
                continue  # find_unknown_tables reports this hint
            joined = any(token.start > block.end for token in joins) or (
                hint.arguments and (joins or len(self._relations) > 1)
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
        parts = argument.parts
        for relation in self._relations:
            if relation.names[-len(parts) :] == parts:
                return relation
        return None
