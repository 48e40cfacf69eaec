"""Counts of the operators in an executed plan, to compare the plans of two variants."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

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


FIELDS = {
    field.name: field.name.replace("_", " ").capitalize()
    for field in dataclasses.fields(PlanCounts)
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
    nodes = jvm.final_plan(result)
    operators = Counter(node["operator"] for node in nodes)
    stages = jvm.stage_metrics(spark, job_group)
    return PlanCounts(
        exchanges=operators["ShuffleExchangeExec"] + operators["AdaptiveExchangeExec"],
        reused_exchanges=operators["ReusedExchangeExec"],
        broadcast_joins=operators["BroadcastHashJoinExec"]
        + operators["BroadcastNestedLoopJoinExec"],
        shuffled_joins=operators["SortMergeJoinExec"] + operators["ShuffledHashJoinExec"],
        dynamic_filters=sum(node["dynamicFilters"] for node in nodes),
        reused_subqueries=operators["ReusedSubqueryExec"],
        files=sum(node["files"] for node in nodes),
        partitions=sum(node["partitions"] for node in nodes),
        scan_stages=sum(not stage["readsShuffle"] for stage in stages),
        tasks=sum(stage["tasks"] for stage in stages),
    )
