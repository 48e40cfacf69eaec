"""Execution memory for the rows of a shuffle in the tasks that read them: `RowHolders.scala`.

The text of a plan has no types of columns. So a projection counts as one that keeps all columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from apportion.decision import NOTHING_HELD, HeldRows
from apportion.logs.eventlog import PlanNode, plan_text

# An operator above a shuffle, and the place of the child that the rows come from.
Step = tuple[PlanNode, int]

_KEEPS_LEFT = {"LeftSemi", "LeftAnti", "ExistenceJoin"}
_HASH_JOIN, _MERGE_JOIN = "ShuffledHashJoin", "SortMergeJoin"


@dataclasses.dataclass(frozen=True)
class RowTotals:
    """Totals of the rows of a shuffle."""

    stored: int
    """Bytes in the shuffle, compressed and encoded."""
    expanded: int
    """Bytes of the rows in memory."""
    rows: int


@dataclasses.dataclass(frozen=True)
class _Holder:
    """Memory of an operator: copies of rows, and bytes for each row.

    `docs/measurements/memory.csv` has measurements.
    """

    copies: float
    header: int
    array: int
    """Bytes for each row in an array that doubles when it is full."""


_SORT = _Holder(1, 8, 32)
_HASH = _Holder(1, 16, 32)
_OBJECT_AGGREGATE = _Holder(1.3, 16, 40)
# The table of a join also has the hash of its key, and the key.
_JOIN_TABLE = _Holder(1, 40, 32)


def held(steps: Sequence[Step], totals: RowTotals) -> HeldRows:
    """Return the memory for one stored byte of a shuffle. `steps` lead upwards from its read."""
    if totals.stored <= 0:
        return NOTHING_HELD
    expanded, rows = totals.expanded / totals.stored, totals.rows / totals.stored
    per_byte, arrays = 0.0, []
    has_aggregate = False
    for node, place in steps:
        kind = plan_text.kind(node.name)
        if holder := _holder(node, kind, place, has_aggregate):
            per_byte += holder.copies * expanded + holder.header * rows
            arrays.append(holder.array * rows)
        has_aggregate = has_aggregate or kind in plan_text.AGGREGATES
        if kind in (_HASH_JOIN, _MERGE_JOIN):
            if plan_text.join_type(node.text) in _KEEPS_LEFT:
                expanded, rows = (0.0, 0.0) if place else (expanded, rows)
            else:
                # There are about as many rows as in the mean of both sides.
                rows /= 2
    return HeldRows(per_byte, arrays)


def _holder(node: PlanNode, kind: str, place: int, has_aggregate: bool) -> _Holder | None:
    if kind == "Sort":
        return _SORT
    if kind == _HASH_JOIN:
        return _JOIN_TABLE if place == ("BuildRight" in node.text) else None
    if kind not in plan_text.AGGREGATES or plan_text.is_partial(node.text):
        return None
    if "functions=[]" in node.text and has_aggregate:
        # Without functions, a partial aggregate looks like a final one. The final one comes first.
        return None
    return {"HashAggregate": _HASH, "ObjectHashAggregate": _OBJECT_AGGREGATE}.get(kind)
