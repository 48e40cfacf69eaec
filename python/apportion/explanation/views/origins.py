"""Where stages come from: operators of the optimized plan, and blocks of the query's text."""

from __future__ import annotations

import dataclasses
import re

from apportion.eventlog import PlanNode, Query
from apportion.eventlog.fragments import Fragment
from apportion.sql import blocks

_COLUMN = re.compile(r"#(\d+)")


@dataclasses.dataclass(frozen=True)
class SqlBlock:
    """A SELECT with what belongs to it, `sql[start:end]`."""

    path: str
    """Which one, as hints name it: see `apportion.sql.blocks`."""
    start: int
    end: int


class Origins:
    """The operators of a query's optimized plan, and the blocks of its text."""

    def __init__(self, query: Query) -> None:
        self.operators = query.operators
        text = blocks.read(query.sql) if query.sql else None
        self.blocks = [
            SqlBlock(block.path, block.start, block.end) for block in (text.blocks if text else ())
        ]
        self._leaves = [
            (place, set(_COLUMN.findall(operator.text)))
            for place, operator in enumerate(self.operators)
            if not self._has_children(place)
        ]

    def block(self, place: int) -> SqlBlock | None:
        """Return the innermost block that an operator comes from, if that is known."""
        operator = self.operators[place]
        if operator.start is None:
            return None
        around = [block for block in self.blocks if block.start <= operator.start < block.end]
        return min(around, key=lambda block: block.end - block.start, default=None)

    def paths(self, places: list[int]) -> list[str]:
        """Return the paths of the blocks that operators come from, each once."""
        found = (self.block(place) for place in places)
        return list(dict.fromkeys(block.path for block in found if block))

    def of(self, fragment: Fragment, decided: list[int]) -> list[int]:
        """Return the operators that a fragment was planned from, in the order of the plan.

        Those that its decisions name, and the tables that it scans, known by
        their columns, or as the only one of that name.
        """
        known = {place for place in decided if 0 <= place < len(self.operators)}
        scanned = (self._leaf(node) for node in fragment.operators() if not node.children)
        return sorted(known.union(place for place in scanned if place is not None))

    def _has_children(self, place: int) -> bool:
        below = self.operators[place + 1 : place + 2]
        return bool(below) and below[0].depth > self.operators[place].depth

    def _leaf(self, scan: PlanNode) -> int | None:
        columns = set(_COLUMN.findall(scan.text))
        shared = [(len(columns & own), place) for place, own in self._leaves]
        most, place = max(shared, default=(0, 0))
        if most:
            return place
        # Spark's own tables, such as range(), do not tell their columns.
        named = [place for place, _ in self._leaves if self.operators[place].name == scan.name]
        return named[0] if len(named) == 1 else None
