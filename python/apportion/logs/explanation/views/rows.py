"""Numbers of rows, from the metrics of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from apportion.logs.eventlog import PlanNode, Stage, plan_text
from apportion.logs.eventlog.fragments import Fragment

# The metrics that count the rows that an operator outputs, in the order of preference.
_ROWS = ("shuffle records written", "number of output rows", "output rows", "records written")
# Operators without a count that output the rows that they read.
_SAME_ROWS = {
    "AdaptiveSparkPlan", "BroadcastExchange", "Exchange", "InputAdapter", "Project",
    "ResultQueryStage", "Sort", "WholeStageCodegen",
}  # fmt: skip


class RowCounts:
    """Rows that the operators of a stage output."""

    def __init__(self, own: Sequence[Stage], driver_metrics: Mapping[int, int]) -> None:
        self._values = {**driver_metrics, **_own_values(own)}

    def of(self, node: PlanNode) -> int | None:
        """Return the rows that an operator outputs; None if no metric counts them."""
        ids = (node.metrics[name] for name in _ROWS if name in node.metrics)
        return next((self._values[id] for id in ids if id in self._values), None)

    def of_fragment(self, fragment: Fragment) -> int | None:
        """Return the rows that a fragment outputs; None if no metric counts them."""
        inside = {id(node) for node in fragment.operators()}
        node = fragment.root
        while id(node) in inside:
            if (rows := self.of(node)) is not None:
                return rows
            if plan_text.kind(node.name) not in _SAME_ROWS or len(node.children) != 1:
                break
            node = node.children[0]
        return None


def _own_values(own: Sequence[Stage]) -> dict[int, int]:
    """Return the values that the last of these stages added to each metric.

    Spark logs the total of a metric when a stage ends. A stage that samples rows for a sort counts
    them before the stage that sorts them.
    """
    values: dict[int, int] = {}
    totals: dict[int, int] = {}
    ordered = sorted(own, key=lambda stage: (stage.id, stage.attempt))
    for _, attempts in itertools.groupby(ordered, key=lambda stage: stage.id):
        before = dict(totals)
        for stage in attempts:
            totals.update(stage.accumulators)
        for metric, total in totals.items():
            if before.get(metric) != total:
                added = total - before.get(metric, 0)
                values[metric] = added if added > 0 else total
    return values
