"""Lists the hints of each block: its own hints and the inherited ones."""

from __future__ import annotations

from dataclasses import dataclass

from apportion.hints import grammar
from apportion.hints.reading import HintError, read_or_raise
from apportion.sql.blocks import Block
from apportion.sql.positions import Positions

_Hints = dict[grammar.HintKey, list["EffectiveHint"]]


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
    text = read_or_raise(sql)
    positions = Positions(sql)
    known: dict[Block, _Hints] = {}
    shown: list[BlockHints] = []
    for block in text.blocks:
        own = tuple(hint.text for hint in grammar.select_used(block.hints).values())
        try:
            inherited = _find_hints(block, known)
        except RecursionError:
            message = "cannot find the hints of blocks: blocks are nested too deeply"
            raise HintError(message) from None
        effective = tuple(hint for hints in inherited.values() for hint in hints)
        place = positions.line_column(block.select.start)
        shown.append(BlockHints(block.path, *place, own, effective))
    return shown


def _find_hints(block: Block, known: dict[Block, _Hints]) -> _Hints:
    """Return the hints of a block by key, its own hints first."""
    # A long pipeline nests deeper than Python's stack, so the outermost block comes first.
    chain = [block]
    while (outer := chain[-1].encloser) is not None and outer not in known:
        chain.append(outer)
    for each in reversed(chain):
        if each not in known:
            known[each] = {}  # a recursive CTE uses itself
            known[each] = _collect(each, known)
    return known[block]


def _collect(block: Block, known: dict[Block, _Hints]) -> _Hints:
    own = grammar.select_used(block.hints)
    effective = {key: [EffectiveHint(hint.text, block.path)] for key, hint in own.items()}
    for user in block.users:
        for key, hints in _find_hints(user, known).items():
            if key in own or key[1]:  # a hint for a table covers only its own block
                continue
            found = effective.setdefault(key, [])
            found += [hint for hint in hints if hint not in found]
    return effective
