"""Origins of stages: operators of the optimized plan, and blocks of the SQL text."""

from __future__ import annotations

import dataclasses

from apportion.logs.eventlog import PlanNode, Query, plan_text
from apportion.logs.eventlog.fragments import Fragment
from apportion.sql import blocks


@dataclasses.dataclass(frozen=True)
class SqlBlock:
    """A SELECT with its clauses: the text `sql[start:end]`."""

    path: str
    """Path of the block, as in hints: see `apportion.sql.blocks`."""
    start: int
    end: int


class Origins:
    """The operators of a query's optimized plan, and the blocks of its SQL text."""

    def __init__(self, query: Query) -> None:
        self.operators = query.operators
        text = blocks.read(query.sql) if query.sql else None
        self.blocks = [
            SqlBlock(block.path, block.start, block.end) for block in (text.blocks if text else ())
        ]
        self._leaves = [
            (place, plan_text.column_ids(operator.text))
            for place, operator in enumerate(self.operators)
            if not self._has_children(place)
        ]

    def block(self, place: int) -> SqlBlock | None:
        """Return the innermost block that contains an operator; None if it is not known."""
        operator = self.operators[place]
        if operator.start is None:
            return None
        around = [block for block in self.blocks if block.start <= operator.start < block.end]
        return min(around, key=lambda block: block.end - block.start, default=None)

    def paths(self, places: list[int]) -> list[str]:
        """Return the paths of the blocks of these operators, each once."""
        blocks = (self.block(place) for place in places)
        return list(dict.fromkeys(block.path for block in blocks if block))

    def operators_of(self, fragment: Fragment, decided: list[int]) -> list[int]:
        """Return the operators that a fragment was planned from, in the order of the plan.

        These are the operators in `decided`, which the fragment's decisions name, and its scans. A
        scan is matched by its columns, or by its name if only one operator has that name.
        """
        known = {place for place in decided if 0 <= place < len(self.operators)}
        scanned = map(self._leaf, fragment.leaves())
        return sorted(known.union(place for place in scanned if place is not None))

    def _has_children(self, place: int) -> bool:
        below = self.operators[place + 1 : place + 2]
        return bool(below) and below[0].depth > self.operators[place].depth

    def _leaf(self, scan: PlanNode) -> int | None:
        columns = plan_text.column_ids(scan.text)
        shared = [(len(columns & own), place) for place, own in self._leaves]
        most, place = max(shared, default=(0, 0))
        if most:
            return place
        # Scans of Spark's own tables, such as range(), do not list their columns.
        named = [place for place, _ in self._leaves if self.operators[place].name == scan.name]
        return named[0] if len(named) == 1 else None
