"""Lists the hints of each block: its own hints and the inherited ones."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from apportion.hints import grammar
from apportion.hints.reading import HintError, read_or_raise
from apportion.sql.blocks import Block, StatementBlocks
from apportion.sql.positions import Positions


@dataclass(frozen=True, slots=True)
class EffectiveHint:
    """A hint and the path of the block that contains it."""

    hint: str
    block: str


@dataclass(frozen=True, slots=True)
class BlockHints:
    """Apportion's hints of one block.

    `path` is the path of the block (see `apportion.sql.blocks`). `line` and `column` are the place
    of its SELECT and count from 1. `own` are the valid hints in the block itself. `effective` are
    these hints and the inherited ones: each hint comes from the nearest enclosing block that has
    it. A CTE inherits from the blocks that use it. If these blocks have different hints,
    `effective` lists all of them, and each use of the CTE gets the hints of its own block.
    """

    path: str
    line: int
    column: int
    own: tuple[str, ...]
    effective: tuple[EffectiveHint, ...]


def show(sql: str) -> list[BlockHints]:
    """Return all blocks of a text with their hints, in the order of the text.

    Leaves out wrong hints, as Apportion does. `lint` reports them.

    Raises `HintError` if the blocks cannot be found.
    """
    try:
        return _show(sql)
    except RecursionError:
        raise HintError("cannot find the hints of blocks: blocks are nested too deeply") from None


def _show(sql: str) -> list[BlockHints]:
    text = read_or_raise(sql)
    positions = Positions(sql)
    shown: list[BlockHints] = []
    for statement in text.statements:
        inheritance = _Inheritance(_find_users(statement))
        for block in statement.blocks:
            own = tuple(hint.text for hint in grammar.select_used(block.hints).values())
            hints_by_key = inheritance.find_hints(block)
            effective = tuple(hint for hints in hints_by_key.values() for hint in hints)
            line, column = positions.line_column(block.select.start)
            shown.append(BlockHints(block.path, line, column, own, effective))
    return shown


def _find_users(statement: StatementBlocks) -> dict[Block, dict[Block, None]]:
    """Return the blocks around each block: its encloser, or the blocks that use its CTE."""
    users: dict[Block, dict[Block, None]] = {
        block: {block.encloser: None} if block.encloser else {} for block in statement.blocks
    }
    if not any(query.cte for query in statement.queries):
        return users
    blocks_of_cte = defaultdict(list)
    for block in statement.blocks:
        if block.encloser is None and block.query.cte is not None:
            blocks_of_cte[block.query].append(block)
    for block in statement.blocks:
        for table, start in block.tables:
            cte = block.query.find_cte(table, start)
            for inner in blocks_of_cte[cte] if cte else []:
                users[inner][block] = None
    return users


class _Inheritance:
    """Finds the hints of each block from the blocks around it."""

    def __init__(self, users: dict[Block, dict[Block, None]]) -> None:
        self._users = users
        self._known: dict[Block, dict[grammar.HintKey, list[EffectiveHint]]] = {}

    def find_hints(self, block: Block) -> dict[grammar.HintKey, list[EffectiveHint]]:
        """Return the hints of a block by key, its own hints first."""
        # A long pipeline nests deeper than Python's stack, so the outermost block comes first.
        chain = [block]
        while (outer := chain[-1].encloser) is not None and outer not in self._known:
            chain.append(outer)
        for each in reversed(chain):
            if each not in self._known:
                self._known[each] = {}  # a recursive CTE uses itself
                self._known[each] = self._collect(each)
        return self._known[block]

    def _collect(self, block: Block) -> dict[grammar.HintKey, list[EffectiveHint]]:
        own = grammar.select_used(block.hints)
        effective = {key: [EffectiveHint(hint.text, block.path)] for key, hint in own.items()}
        for user in self._users[block]:
            for key, hints in self.find_hints(user).items():
                if key in own or key[1]:  # a hint for a table covers only its own block
                    continue
                known = effective.setdefault(key, [])
                known += [hint for hint in hints if hint not in known]
        return effective
