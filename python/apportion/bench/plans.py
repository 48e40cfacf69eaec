"""Counts of the operators in an executed plan, to compare the plans of two variants."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from apportion._spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclasses.dataclass(frozen=True)
class PlanCounts:
    """Counts of the final adaptive plan of one run, including subqueries."""

    exchanges: int
    """Shuffles written."""
    reused_exchanges: int
    """Shuffles and broadcasts that were reused."""
    broadcast_joins: int
    shuffled_joins: int
    """Sort-merge and shuffled hash joins."""
    dynamic_filters: int
    """Filters on table partitions with values from the other side of a join."""
    reused_subqueries: int
    files: int
    partitions: int
    """Partitions read from partitioned tables."""
    scan_stages: int
    """Stages that read no shuffle."""
    tasks: int
    """Tasks of all stages."""

    def worse(self, baseline: PlanCounts) -> list[str]:
        """Return the names of the counts that are worse than in the baseline."""
        return [key for key in FIELDS if is_worse(key, getattr(baseline, key), getattr(self, key))]


class _PlanNode(NamedTuple):
    """One operator of an executed plan."""

    operator: str
    """Name of Spark's class, such as SortMergeJoinExec."""
    files: int
    """Number of files read; 0 unless the operator scans files."""
    partitions: int
    """Number of table partitions read; 0 unless the table is partitioned."""
    dynamic_filters: int
    """Number of partition filters with values from the other side of a join."""


FIELDS = {
    "exchanges": "Exchanges",
    "reused_exchanges": "Reused exchanges",
    "broadcast_joins": "Broadcast joins",
    "shuffled_joins": "Shuffled joins",
    "dynamic_filters": "Dynamic filters",
    "reused_subqueries": "Reused subqueries",
    "files": "Files",
    "partitions": "Partitions",
    "scan_stages": "Scan stages",
    "tasks": "Tasks",
}
"""Column headings of the counts."""

_MORE_IS_BETTER = {"reused_exchanges", "broadcast_joins", "dynamic_filters", "reused_subqueries"}


def is_worse(key: str, before: int, after: int) -> bool:
    """Return whether a count has become worse. The number of tasks is neither good nor bad."""
    if key == "tasks":
        return False
    return after < before if key in _MORE_IS_BETTER else after > before


def count_plan(spark: SparkSession, result: DataFrame, job_group: str) -> PlanCounts:
    """Return the counts of a DataFrame that was collected in its own job group."""
    nodes = list(_executed_plan(result))
    operators = Counter(node.operator for node in nodes)
    stages = jvm.stage_metrics(spark, job_group)
    return PlanCounts(
        exchanges=operators["ShuffleExchangeExec"] + operators["AdaptiveExchangeExec"],
        reused_exchanges=operators["ReusedExchangeExec"],
        broadcast_joins=operators["BroadcastHashJoinExec"]
        + operators["BroadcastNestedLoopJoinExec"],
        shuffled_joins=operators["SortMergeJoinExec"] + operators["ShuffledHashJoinExec"],
        dynamic_filters=sum(node.dynamic_filters for node in nodes),
        reused_subqueries=operators["ReusedSubqueryExec"],
        files=sum(node.files for node in nodes),
        partitions=sum(node.partitions for node in nodes),
        scan_stages=sum(not stage["readsShuffle"] for stage in stages),
        tasks=sum(stage["tasks"] for stage in stages),
    )


def _executed_plan(result: DataFrame) -> Iterator[_PlanNode]:
    """Yield the operators of a DataFrame's plan after it ran, including subqueries.

    A reused exchange or subquery is yielded as one operator; the operators below it are yielded
    only where they ran. The class names and fields are those of Spark 3.5 to 4.2.
    """
    waiting = [result._jdf.queryExecution().executedPlan()]
    seen = set()
    while waiting:
        plan = waiting.pop()
        operator = plan.getClass().getSimpleName()
        if operator.endswith("QueryStageExec"):
            waiting.append(plan.plan())
            continue
        if operator == "AdaptiveSparkPlanExec":
            waiting.append(plan.executedPlan())
            continue
        # Two filters can share one subquery object. Ids of query stages are a separate numbering.
        if plan.id() in seen:
            continue
        seen.add(plan.id())
        yield _PlanNode(
            operator,
            files=_metric(plan, "numFiles"),
            partitions=_metric(plan, "numPartitions") if "Scan" in operator else 0,
            dynamic_filters=_dynamic_filters(plan, operator),
        )
        if not operator.startswith("Reused"):
            waiting.extend(_elements(plan.children()))
            waiting.extend(_elements(plan.subqueries()))


def _metric(plan: Any, name: str) -> int:
    metric = plan.metrics().get(name)
    return int(metric.get().value()) if metric.isDefined() else 0


def _dynamic_filters(plan: Any, operator: str) -> int:
    filters = {"FileSourceScanExec": "partitionFilters", "BatchScanExec": "runtimeFilters"}
    if operator not in filters:
        return 0
    names = [
        expression.child().getClass().getSimpleName()
        for expression in _elements(getattr(plan, filters[operator])())
        if expression.getClass().getSimpleName() == "DynamicPruningExpression"
    ]
    # PlanAdaptiveDynamicPruningFilters inserts the literal true if pruning would not pay off.
    return len([name for name in names if name != "Literal"])


def _elements(values: Any) -> list[Any]:
    return [values.apply(place) for place in range(values.size())]
