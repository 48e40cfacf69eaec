"""The linter: finds hints that Spark or Apportion would drop, refuse or read differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from apportion.hints import grammar
from apportion.hints.findings import CODES, Complaint, Finding
from apportion.hints.relations import Relation, parse
from apportion.sql.blocks import Block, Statement, Text, read
from apportion.sql.hint_comments import Argument, Hint, HintComment
from apportion.sql.positions import Positions
from apportion.sql.tokens import Token

# `/* + NAME(` and `--+ NAME(`, or a list of names alone.
_LIKE_A_HINT = re.compile(r"(?:/\*|--)\s*\+\s*(\w+)\s*(\(|,|\*/|$)")
# Statements that join the query they are given, or keep it for others to join.
_JOINING = ("MERGE", "UPDATE", "DELETE", "CREATE", "ALTER", "CACHE")


def lint(sql: str) -> list[Finding]:
    """Return what is wrong with the hints of a text, in the order of the text.

    The text may hold several statements, comments, templates, and what Spark cannot parse: that is
    found too, never raised.
    """
    text = read(sql)
    positions = Positions(sql)
    complaints = sorted(_complaints(text), key=lambda complaint: (complaint.start, complaint.code))
    return [_finding(positions, complaint) for complaint in complaints]


def _finding(positions: Positions, complaint: Complaint) -> Finding:
    code, start, end, message, suggestion = complaint
    line, column = positions.line_column(start)
    severity, _ = CODES[code]
    return Finding(line, column, code, message, suggestion, severity, start, end - start)


def _complaints(text: Text) -> Iterator[Complaint]:
    if text.problem is not None:
        start, end, code, message = text.problem
        skipped = "blocks cannot be told apart, so only single hints were checked"
        yield Complaint(code, start, end, f"{message}: {skipped}")
    for comment, _ in text.comments:
        yield from _comment(comment)
    yield from _misplaced(text)
    for token in text.tokens:
        if token.kind == "comment":
            yield from _like_a_hint(token)
    for statement in text.statements:
        yield from _statement(text, statement)


def _comment(comment: HintComment) -> Iterator[Complaint]:
    stray = comment.stray
    if stray is not None:
        yield Complaint(
            "APH104",
            stray.start,
            stray.end,
            f"Spark cannot parse this hint comment past {stray.text}, and the statement fails",
            "write /*+ NAME(argument, ...), NAME(argument, ...) */",
        )
    for hint in comment.hints:
        garbled = stray is not None and hint.start < stray.start < hint.end and stray.text != ")"
        if not garbled and "{" not in hint.name:
            yield from grammar.check(hint)


def _misplaced(text: Text) -> Iterator[Complaint]:
    for comment, before in text.misplaced():
        word = before.word if before else ""
        if word == "SELECT" and text.problem is not None:
            continue  # whether this SELECT is a block is not known
        where = f"after {before.text}" if before else "before a statement"
        move = "move it to directly after the SELECT of its block"
        if word == "SELECT":
            where, move = "in SELECT TRANSFORM", "remove it"
        elif before is not None and word in ("DISTINCT", "ALL"):
            move = f"write SELECT {text.sql[comment.start : comment.end]} {before.text}"
        yield Complaint(
            "APH101",
            comment.start,
            comment.end,
            f"Spark reads a hint comment only directly after SELECT. Here, {where}, the statement "
            "fails with PARSE_SYNTAX_ERROR",
            move,
        )


def _like_a_hint(token: Token) -> Iterator[Complaint]:
    match = _LIKE_A_HINT.match(token.text)
    if match is None:
        return
    name = match[1].upper()
    if name in grammar.KNOWN or (match[2] == "(" and grammar.nearest(name)):
        inner = token.text.strip("/*-").strip().lstrip("+").strip()
        yield Complaint(
            "APH102",
            token.start,
            token.end,
            f"this is an ordinary comment to Spark, so its {name} is no hint",
            f"write /*+ {inner} */ directly after SELECT",
        )


def _statement(text: Text, statement: Statement) -> Iterator[Complaint]:
    parsed = parse(text, statement)
    for block in statement.blocks:
        yield from _second_comments(block)
        yield from _set_twice(block)
        yield from _repartitions(block)
    if parsed.problem is not None:
        start, end, code, message = parsed.problem
        yield Complaint(code, start, end, f"{message}: checks of tables and joins were skipped")
        return
    for block in statement.blocks:
        if not block.hints:
            continue
        relations = _Relations(text, statement, block, parsed.of(block))
        yield from relations.overridden()
        # A template may well become a table, or a join.
        if not _has_template(text, block):
            yield from relations.unknown()
            yield from relations.without_join()


def _has_template(text: Text, block: Block) -> bool:
    return any(token.kind == "template" for token in text.between(block.start, block.end))


def _second_comments(block: Block) -> Iterator[Complaint]:
    for comment in block.comments[1:]:
        yield Complaint(
            "APH103",
            comment.start,
            comment.end,
            "a further hint comment of the same SELECT: Spark reads it, but tools that parse SQL "
            "often lose it",
            "move its hints into the first comment",
        )


def _set_twice(block: Block) -> Iterator[Complaint]:
    used = grammar.used(block.hints)
    for hint in block.hints:
        first = used.get(grammar.key(hint), hint)
        if first.start < hint.start and not any(grammar.check(hint)):
            message = f"{hint.name} is set twice in this block: the first, {first.text}, is used"
            yield Complaint("APH311", hint.start, hint.end, message, "keep one of them")


def _repartitions(block: Block) -> Iterator[Complaint]:
    """Spark puts the first hint on top, and only what COALESCE merges matters below another."""
    first: Hint | None = None
    for hint in block.hints:
        if hint.name not in grammar.REPARTITIONS:
            continue
        if first is None or (first.name == "COALESCE" and hint.name != "COALESCE"):
            first = hint
        else:
            message = f"{hint.text} has no effect on the result: {first.text} comes first and wins"
            yield Complaint("APH405", hint.start, hint.end, message, "keep one of them")


class _Named(NamedTuple):
    """A table that a hint names."""

    hint: Hint
    argument: Argument
    relation: Relation | None


class _Relations:
    """The checks of one block that need to know its tables."""

    def __init__(
        self, text: Text, statement: Statement, block: Block, relations: list[Relation]
    ) -> None:
        self._text = text
        self._statement = statement
        self._block = block
        self._relations = relations

    def unknown(self) -> Iterator[Complaint]:
        for hint, argument, relation in self._named():
            if relation is None:
                names = list(dict.fromkeys(relation.text for relation in self._relations))
                has = f"its tables: {', '.join(names)}" if names else "it has no tables"
                code = "APH310" if hint.name in grammar.APPORTION else "APH402"
                near = grammar.near(argument.string, names)
                yield Complaint(
                    code,
                    argument.start,
                    argument.end,
                    f"{hint.name} names {argument.text}, which is not in the FROM of its block "
                    f"({has}): the hint is dropped",
                    f"did you mean {near}?" if near else None,
                )

    def overridden(self) -> Iterator[Complaint]:
        first: dict[Relation, Hint] = {}
        for hint, argument, relation in self._named():
            if hint.name not in grammar.JOIN_STRATEGIES or relation is None:
                continue
            used = first.setdefault(relation, hint)
            if grammar.JOIN_STRATEGIES[used.name] != grammar.JOIN_STRATEGIES[hint.name]:
                message = f"{hint.name} for {argument.text} has no effect: {used.text} comes first"
                yield Complaint("APH403", argument.start, argument.end, message, "keep one of them")
        if len(self._relations) == 2 and len(first) == 2:
            yield from self._two_sides(*first.values())

    def _two_sides(self, left: Hint, right: Hint) -> Iterator[Complaint]:
        strategies = [grammar.JOIN_STRATEGIES[hint.name] for hint in (left, right)]
        if strategies[0] == strategies[1]:
            return
        winner, loser = sorted(
            (left, right),
            key=lambda hint: grammar.PREFERENCE.index(grammar.JOIN_STRATEGIES[hint.name]),
        )
        message = (
            f"{loser.text} and {winner.text} hint the two sides of one join: Spark prefers "
            f"{grammar.JOIN_STRATEGIES[winner.name]}, where the join allows it"
        )
        yield Complaint("APH403", loser.start, loser.end, message, "keep one of them")

    def without_join(self) -> Iterator[Complaint]:
        """Find join hints in blocks that neither join nor are joined by what is around them."""
        block = self._block
        if block.encloser is not None or self._statement.verb in _JOINING:
            return
        joins = [
            token
            for token in self._text.between(block.query.start, block.query.end)
            if token.word == "JOIN" and self._statement.query_at(token.start) is block.query
        ]
        for hint in block.hints:
            if hint.name not in grammar.JOIN_STRATEGIES:
                continue
            if hint.arguments and not any(map(self._relation, hint.arguments)):
                continue  # which is a finding of its own
            joined = any(token.start > block.end for token in joins) or (
                hint.arguments and (joins or len(self._relations) > 1)
            )
            if not joined:
                message = f"{hint.text} has no effect: no join reads " + (
                    ", ".join(argument.text for argument in hint.arguments)
                    or "the result of its block"
                )
                yield Complaint("APH404", hint.start, hint.end, message)

    def _named(self) -> Iterator[_Named]:
        for hint in self._block.hints:
            for argument in self._tables(hint):
                if argument.kind in ("name", "string"):
                    yield _Named(hint, argument, self._relation(argument))

    def _tables(self, hint: Hint) -> tuple[Argument, ...]:
        if hint.name == "SOURCE_PARALLELISM" and len(hint.arguments) == 2:
            return hint.arguments[:1]
        return hint.arguments if hint.name in grammar.JOIN_STRATEGIES else ()

    def _relation(self, argument: Argument) -> Relation | None:
        """Return the relation that a name means: Spark compares the last parts of it."""
        parts = argument.parts
        for relation in self._relations:
            if relation.names[-len(parts) :] == parts:
                return relation
        return None
