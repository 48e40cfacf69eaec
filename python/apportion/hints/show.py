"""Which block has which hints: its own, and those that reach it from around it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from apportion.hints import grammar
from apportion.hints.errors import HintError
from apportion.hints.relations import parse
from apportion.sql.blocks import Block, Statement, Text, read
from apportion.sql.positions import Positions


@dataclass(frozen=True, slots=True)
class EffectiveHint:
    """A hint as it is written, and the path of the block it is written in."""

    hint: str
    block: str


@dataclass(frozen=True, slots=True)
class BlockHints:
    """Apportion's hints of one block.

    `path` says which (see `apportion.sql.blocks`), `line` and `column`, from 1, where its SELECT
    is. `own` are the hints that are written in it and used. `effective` are those and the ones it
    inherits: for each hint, the nearest block around it that has one decides. A CTE inherits from
    the blocks that use it. Used under different ones, it has them all here: each use has its own.
    """

    path: str
    line: int
    column: int
    own: tuple[str, ...]
    effective: tuple[EffectiveHint, ...]


def show(sql: str) -> list[BlockHints]:
    """Return all blocks of a text with their hints, in the order of the text.

    Wrong hints are left out, as Apportion leaves them out: `lint` says what is wrong with them.

    Raises `HintError` when the blocks cannot be found, or where CTEs are used cannot.
    """
    text = read(sql)
    positions = Positions(sql)
    if text.problem is not None:
        place = positions.describe(text.problem.start)
        raise HintError(f"cannot find the query's blocks: {text.problem.message} ({place})")
    shown: list[BlockHints] = []
    for statement in text.statements:
        inheritance = _Inheritance(_users(text, statement, positions))
        for block in statement.blocks:
            own = tuple(hint.text for hint in grammar.used(block.hints).values())
            effective = tuple(found for hints in inheritance.of(block).values() for found in hints)
            line, column = positions.line_column(block.select.start)
            shown.append(BlockHints(block.path, line, column, own, effective))
    return shown


_Key = tuple[str, tuple[str, ...]]


def _users(text: Text, statement: Statement, positions: Positions) -> dict[Block, list[Block]]:
    """Return the blocks around each block: its encloser, or those that use its CTE."""
    users: dict[Block, list[Block]] = {
        block: [block.encloser] if block.encloser else [] for block in statement.blocks
    }
    if not any(query.cte for query in statement.queries):
        return users
    parsed = parse(text, statement)
    if parsed.problem is not None:
        raise HintError(
            f"cannot find where the statement's CTEs are used: {parsed.problem.message} "
            f"({positions.describe(parsed.problem.start)})"
        )
    blocks_of_cte = defaultdict(list)
    for block in statement.blocks:
        if block.encloser is None and block.query.cte is not None:
            blocks_of_cte[block.query].append(block)
    for block in statement.blocks:
        for relation in parsed.of(block):
            cte = statement.cte_at(relation.table, relation.start) if relation.table else None
            for inner in blocks_of_cte[cte] if cte else []:
                if block not in users[inner]:
                    users[inner].append(block)
    return users


class _Inheritance:
    """The hints that reach each block, from what is around it."""

    def __init__(self, users: dict[Block, list[Block]]) -> None:
        self._users = users
        self._known: dict[Block, dict[_Key, list[EffectiveHint]]] = {}

    def of(self, block: Block) -> dict[_Key, list[EffectiveHint]]:
        if block not in self._known:
            self._known[block] = {}  # a recursive CTE uses itself
            self._known[block] = self._find(block)
        return self._known[block]

    def _find(self, block: Block) -> dict[_Key, list[EffectiveHint]]:
        own = grammar.used(block.hints)
        effective = {key: [EffectiveHint(hint.text, block.path)] for key, hint in own.items()}
        for user in self._users[block]:
            for key, hints in self.of(user).items():
                if key in own or key[1]:  # a table is one of the block that names it
                    continue
                known = effective.setdefault(key, [])
                known += [hint for hint in hints if hint not in known]
        return effective
