"""Shuffles of stages whose tasks Apportion did not decide, from the facts of Spark's own log."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from apportion.decision import Decision
from apportion.eventlog import LoggedDecision, PlanNode, plan_text
from apportion.eventlog.fragments import Fragment
from apportion.eventlog.model import LoggedShuffle
from apportion.simulate.arithmetic.subpartitions import MAX_SUBPARTITIONS

# Shuffles whose number of partitions Spark may choose. Spark 3.0 and 3.1 write `true`.
_FREE_PARTITIONING = re.compile(
    r"\b(?:hash|range)partitioning\((?:.*, )?(?P<number>\d{1,9})\), "
    r"(?:true|ENSURE_REQUIREMENTS|REPARTITION_BY_COL|REBALANCE_PARTITIONS_BY_(?:COL|NONE))\b"
)
# Logs are untrusted input, so time and memory for a stage have limits.
_MAX_TEXT = 10_000
_MOST_PARTITIONS = 4096
_ADAPTIVE = "AdaptiveSparkPlan"
# Tasks of these stages depend on more than the bytes of one group of shuffles.
_NOT_ONE_GROUP = {
    "CartesianProduct", "Coalesce", "CollectLimit", "CollectTail", "GlobalLimit", "LocalLimit",
    "TakeOrderedAndProject", "Union",
}  # fmt: skip
_SHUFFLE_READS = {"AQEShuffleRead", "CustomShuffleReader"}
_SKEW = "skew=true"


def is_adaptive(plan: PlanNode | None) -> bool:
    """Return whether a plan ran with adaptive execution. Only then Apportion decides tasks."""
    return plan is not None and any(plan_text.kind(n.name) == _ADAPTIVE for n in plan.walk())


def assumed(fragment: Fragment, task_bytes: Sequence[int]) -> LoggedDecision | None:
    """Return Spark's choice for the shuffles of a stage, with partitions of equal size.

    `task_bytes` are the shuffle bytes of each task. Their sum is exact, but the log does not have
    the bytes of the partitions. Return None if the query sets the tasks, or if they do not follow
    from the bytes.
    """
    total, tasks = sum(task_bytes), len(task_bytes)
    shuffles = [read for read in fragment.inputs if read.kind == "shuffle"]
    matches = [_FREE_PARTITIONING.search(read.root.text[:_MAX_TEXT]) for read in shuffles]
    numbers = {int(match["number"]) if match else 0 for match in matches}
    if len(numbers) != 1 or total <= 0 or any(_is_unknown(node) for node in fragment.operators()):
        return None
    (number,) = numbers
    if not tasks <= number <= min(_MOST_PARTITIONS + 100 * tasks, MAX_SUBPARTITIONS):
        return None
    size, rest = divmod(total, number)
    sizes = [size + 1] * rest + [size] * (number - rest)
    decision = Decision(
        query=None,
        group=0,
        decided_at=datetime.datetime.fromtimestamp(0, datetime.timezone.utc),
        operator="",
        stages=[],
        shuffles=[],
        input_bytes=total,
        broadcast_bytes=0,
        data_volume_per_task=1,
        broadcast_cap=None,
        raw=None,
        rounded=None,
        clamps=[],
        subpartitions=number,
        parallelism=tasks,
        tasks=tasks,
        ranges=[],
        layout="observed",
        largest_task_bytes=max(task_bytes),
        mean_task_bytes=total // tasks,
        sources={},
        kind="formula",
        reason="",
        requirement=None,
        slots=None,
        slots_lost=0,
    )
    return LoggedDecision(decision, [LoggedShuffle(sizes, partitions_set_by="spark")])


def _is_unknown(node: PlanNode) -> bool:
    """Return whether an operator makes the tasks depend on more than the bytes."""
    kind = plan_text.kind(node.name)
    is_local = kind in _SHUFFLE_READS and "local" in node.text
    return kind in _NOT_ONE_GROUP or is_local or _SKEW in node.name
