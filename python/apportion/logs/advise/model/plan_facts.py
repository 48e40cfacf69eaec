"""Facts about a stage from the operators of its plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from apportion.logs.eventlog import LoggedDecision, PlanNode, Query, plan_text
from apportion.logs.eventlog.fragments import Fragment, exchange_kind
from apportion.logs.eventlog.plan_text import AGGREGATES, kind

# Origins of a repartition with a number. Spark 3.0 writes whether the number may change.
_SET_BY_QUERY = {"REPARTITION_BY_NUM", "false"}
_SPLITTABLE_JOINS = {"Inner", "Cross", "LeftOuter", "RightOuter", "LeftSemi", "LeftAnti"}
_PLUMBING = {
    "AQEShuffleRead", "AdaptiveSparkPlan", "ColumnarToRow", "CustomShuffleReader", "Exchange",
    "BroadcastExchange", "InputAdapter", "Project", "ResultQueryStage", "Subquery",
    "WholeStageCodegen",
}  # fmt: skip
_JOINS = {"SortMergeJoin", "ShuffledHashJoin"}
_HOLD_ROWS = {*_JOINS, *AGGREGATES, "Sort", "Window"}
# Operators that need all rows of a key in one task.
_WHOLE_KEYS = {
    "AggregateInPandas", "ArrowAggregatePython", "CoGroup", "FlatMapCoGroupsInPandas",
    "FlatMapGroupsInPandas", "MapGroups", "Window", "WindowInPandas",
}  # fmt: skip
# Parts of the names of operators that run functions of the user.
_USER_CODE = ("Arrow", "CoGroup", "MapElements", "MapGroups", "MapPartitions", "Pandas", "Python")
# Operators whose tasks are a sum or a product of the tasks of their inputs.
_WITHOUT_ONE_GROUP = {"CartesianProduct", "Union"}
_LIMITS = {"CollectLimit", "CollectTail", "GlobalLimit", "LocalLimit", "TakeOrderedAndProject"}
_ENGINES = {"Gpu": "RAPIDS", "Photon": "Photon", "Comet": "Comet", "Velox": "Velox"}
_TEXT = {"csv", "json", "text", "xml"}
_FILES, _FILE_BYTES = "number of files read", "size of files read"
_WRITTEN_FILES = "number of written files"


class ScannedFiles(NamedTuple):
    """Files or a table that a scan reads."""

    name: str
    """Table or path."""
    format: str
    """Format in lower case, such as `csv`; empty for scans that name none."""


@dataclasses.dataclass(frozen=True)
class PlanFacts:
    """Facts about a stage. The defaults are for a stage without a plan."""

    operators: list[str] = dataclasses.field(default_factory=list)
    """Operators that compute rows, from the top of the plan."""
    tables: list[str] = dataclasses.field(default_factory=list)
    sources: list[ScannedFiles] = dataclasses.field(default_factory=list)
    """Files and tables that it scans, one for each scan."""
    is_known: bool = False
    is_outside_of_sql: bool = False
    query_has_shuffles: bool = True
    """Whether the plan of the query has a shuffle."""
    reads_shuffles: bool = False
    partitions: int | None = None
    """Partitions of the shuffles that it reads; None if they differ or are not known."""
    was_decided: bool = False
    """Whether Apportion decided the tasks in the logged run."""
    set_by_query: bool = False
    """Whether the query sets the number of tasks, as by `repartition(8)` or `coalesce(8)`."""
    broadcast_bytes: int = 0
    """Bytes that are sent to each task for broadcast joins, as the driver counted them."""
    multiplies_rows: bool = False
    """Whether a join without equal keys runs in its tasks."""
    single: bool = False
    """Whether it reads a shuffle with a single partition, as for a global window."""
    limits: bool = False
    """Whether it keeps the first rows, so that Spark may run only a few tasks."""
    has_scan: bool = False
    is_adaptive: bool = False
    is_stateful: bool = False
    splittable: bool = False
    """Whether tasks may read parts of a shuffle partition: only for joins."""
    whole_keys: bool = False
    """Whether an operator needs all rows of a key in one task."""
    holds_rows: bool = False
    is_bucketed: bool = False
    """Whether it scans a table by its buckets, which set the number of tasks."""
    runs_user_code: bool = False
    """Whether an operator runs functions of the user, whose time does not depend on bytes."""
    engine: str | None = None
    """Engine that replaces Spark's operators; None for Spark itself."""
    has_text_files: bool = False
    """Whether it scans CSV, JSON or text, which Spark cannot split if gzip compressed them."""
    files: int = 0
    """Files that it scans, as the driver counted them."""
    file_bytes: int = 0
    written_files: int = 0

    @property
    def why_unchanged(self) -> str:
        """Why Apportion does not set the number of tasks, in words."""
        if self.is_outside_of_sql:
            return "does not change stages outside of SQL."
        if self.engine:
            return f"does not decide the tasks of {self.engine}."
        if not self.is_known:
            return "may not change this stage: the log does not show its operators."
        if self.was_decided:
            return "already decided the tasks of this stage."
        if self.single:
            return "cannot change this stage, because all rows must be in one task."
        if self.set_by_query:
            return "does not change a number of tasks that the query sets."
        return "does not set the tasks of this stage by the bytes of its shuffles."

    @property
    def tasks_can_change(self) -> bool:
        """Whether Spark may choose the number of tasks that read the shuffles."""
        return (
            self.reads_shuffles
            and not self.was_decided
            and not self.set_by_query
            and not self.single
            and not self.has_scan
            and not self.is_stateful
            and not self.engine
            and _WITHOUT_ONE_GROUP.isdisjoint(self.operators)
        )


def query_facts(plan: PlanNode | None) -> PlanFacts:
    """Return the facts that all stages of a query share."""
    nodes = list(plan.walk()) if plan else []
    engines = (
        name for node in nodes for prefix, name in _ENGINES.items() if node.name.startswith(prefix)
    )
    return PlanFacts(
        engine=next(engines, None),
        is_adaptive=any(node.name == "AdaptiveSparkPlan" for node in nodes),
        # A query without a plan can have shuffles too.
        query_has_shuffles=not nodes
        or any(exchange_kind(node.name) == "shuffle" for node in nodes),
    )


def facts(
    fragment: Fragment, query: Query, decided: Sequence[LoggedDecision], shared: PlanFacts
) -> PlanFacts:
    """Return the facts about the stage that ran a fragment, with its decisions.

    `shared` are the facts about the query.
    """
    nodes = list(fragment.operators())
    kinds = [kind(node.name) for node in nodes]
    shuffles = [read for read in fragment.inputs if read.kind == "shuffle"]
    partitionings = [plan_text.partitioning(read.root.text) for read in shuffles]
    numbers = {each.number for each in partitionings if each}
    origins = {each.origin for each in partitionings if each}
    return dataclasses.replace(
        shared,
        operators=_shown(nodes),
        tables=list(
            dict.fromkeys(name for node in nodes if (name := plan_text.table(node.name, node.text)))
        ),
        sources=[
            ScannedFiles(source, plan_text.scan_format(node.name))
            for node in nodes
            if (source := plan_text.source(node.name, node.text))
        ],
        is_known=True,
        reads_shuffles=bool(shuffles),
        partitions=numbers.pop() if len(numbers) == 1 and all(partitionings) else None,
        was_decided=any(each.decision.layout != "observed" for each in decided),
        set_by_query=bool(origins & _SET_BY_QUERY) or "Coalesce" in kinds,
        broadcast_bytes=sum(
            max(0, query.driver_metric(read.root, "data size"))
            for read in fragment.inputs
            if read.kind == "broadcast"
        ),
        multiplies_rows="BroadcastNestedLoopJoin" in kinds,
        single=any(plan_text.has_single_partition(read.root.text) for read in shuffles),
        limits=bool(_LIMITS.intersection(kinds)),
        has_scan=any("Scan" in each or each == "Range" for each in kinds),
        is_stateful=any("StateStore" in each or "Streaming" in each for each in kinds),
        splittable=_splittable(nodes),
        whole_keys=any(_needs_whole_keys(node) for node in nodes),
        has_text_files=any(plan_text.scan_format(node.name) in _TEXT for node in nodes),
        is_bucketed=any(plan_text.is_bucketed(node.text) for node in nodes),
        runs_user_code=any(part in each for part in _USER_CODE for each in kinds),
        holds_rows=bool(_HOLD_ROWS.intersection(kinds)),
        files=sum(query.driver_metric(node, _FILES) for node in nodes),
        file_bytes=sum(query.driver_metric(node, _FILE_BYTES) for node in nodes),
        written_files=sum(query.driver_metric(node, _WRITTEN_FILES) for node in nodes),
    )


def _shown(nodes: Sequence[PlanNode]) -> list[str]:
    kinds = [kind(node.name) for node in nodes]
    # The name of a scan ends with its table: `Scan parquet db.sales`.
    names = (" ".join(each.split()[:2]) if "Scan" in each else each for each in kinds)
    return list(dict.fromkeys(each for each in names if each not in _PLUMBING))


def _needs_whole_keys(node: PlanNode) -> bool:
    name = kind(node.name)
    if name in AGGREGATES:
        # A partial aggregate takes rows in any order. Without functions, nothing tells them apart.
        return not plan_text.is_partial(node.text)
    return name in _WHOLE_KEYS


def _splittable(nodes: Sequence[PlanNode]) -> bool:
    joins = [node for node in nodes if kind(node.name) in _JOINS]
    return (
        bool(joins)
        and all(plan_text.join_type(node.text) in _SPLITTABLE_JOINS for node in joins)
        and not any(_needs_whole_keys(node) for node in nodes)
    )
