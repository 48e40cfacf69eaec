"""Pipelines of a stage, and the reasons why they end.

A pipeline is a chain of operators that Spark compiles into one function, by whole-stage code
generation. A row passes all of them without being stored.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from apportion.logs.eventlog import PlanNode, plan_text
from apportion.logs.eventlog.fragments import Fragment, exchange_kind


class Break(enum.Enum):
    """Reason why two operators are not in one pipeline."""

    EXCHANGE = "exchange"
    CACHE = "cache"
    SUBQUERY = "subquery"
    JOIN_SIDE = "side of a join"
    NO_CODEGEN = "operator without code generation"
    TOO_MANY_FIELDS = "too many fields"
    EXPRESSION = "expression without code generation"
    SWITCHED_OFF = "code generation is off"

    @property
    def explanation(self) -> str:
        """The reason in a sentence."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Break.EXCHANGE: "Spark shuffles or broadcasts the rows to other tasks, so the stage ends.",
    Break.CACHE: "The rows come from a cached table, which stores them by column.",
    Break.SUBQUERY: "The rows go to the driver, as a value for the outer query.",
    Break.JOIN_SIDE: "A sort-merge or shuffled hash join reads its two sides in turn, so each side "
    "is a separate pipeline.",
    Break.NO_CODEGEN: "Spark cannot compile the operator, because it stores rows or runs code "
    "outside the JVM (Window, ObjectHashAggregate, Python functions). It passes rows one by one.",
    Break.TOO_MANY_FIELDS: "An operator has more columns than spark.sql.codegen.maxFields.",
    Break.EXPRESSION: "Spark can compile the operator, but not one of its expressions.",
    Break.SWITCHED_OFF: "spark.sql.codegen.wholeStage is false.",
}

_COMPILED = "WholeStageCodegen"
# The default of spark.sql.codegen.maxFields.
_MAX_FIELDS = 100
_PLUMBING = {"AdaptiveSparkPlan", "AQEShuffleRead", "InputAdapter", "ResultQueryStage"}
_JOINS_WITH_SIDES = {"SortMergeJoin", "ShuffledHashJoin"}
_READS = {"ShuffleQueryStage", "BroadcastQueryStage", "ReusedExchange"}
_SUBQUERIES = {"Subquery", "SubqueryBroadcast", "ReusedSubquery"}
_CACHES = {"InMemoryTableScan", "TableCacheQueryStage"}
_COMPILABLE = {
    "BroadcastHashJoin", "BroadcastNestedLoopJoin", "ColumnarToRow", "Expand", "Filter", "Generate",
    "GlobalLimit", "HashAggregate", "LocalLimit", "Project", "Range", "Sample", "ShuffledHashJoin",
    "Sort", "SortMergeJoin",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """Operators of one compiled function, or a single operator that is not compiled."""

    operators: list[PlanNode]
    """The operators, starting with the operator that outputs the rows."""
    codegen: int | None
    """Number of the generated code, as in EXPLAIN's `*(3)`; None if it is not compiled, and in
    Spark 2.4."""
    is_compiled: bool = False


@dataclasses.dataclass(frozen=True)
class Link:
    """End of a pipeline or input of the stage: `below` passes its rows to `above`."""

    above: PlanNode
    below: PlanNode
    why: Break

    def __str__(self) -> str:
        return f"{self.below.name} -> {self.above.name}: {self.why.value}"


@dataclasses.dataclass(frozen=True)
class Pipelines:
    """The pipelines of a stage, and the links between them."""

    pipelines: list[Pipeline]
    links: list[Link]


def find_pipelines(fragment: Fragment, conf: Mapping[str, str]) -> Pipelines:
    """Return the pipelines of a fragment, from the top of the plan, and the links between them."""
    pipelines: list[Pipeline] = []
    links: list[Link] = []
    waiting: list[tuple[PlanNode, PlanNode | None, Pipeline | None]] = [(fragment.root, None, None)]
    inside = {id(node) for node in fragment.operators()}
    while waiting:
        node, above, pipeline = waiting.pop()
        if node.name.startswith(_COMPILED) and node.children:
            pipeline = Pipeline([], plan_text.codegen(node.name), is_compiled=True)
            pipelines.append(pipeline)
            waiting.append((node.children[0], above, pipeline))
            continue
        if node.name in _PLUMBING and node.children:
            waiting.append((node.children[0], above, None))
            continue
        if above is not None and not (pipeline and pipeline.operators):
            links.append(Link(above, node, _why(above, node, conf)))
        if id(node) not in inside:
            continue
        if pipeline is None:
            pipelines.append(Pipeline([node], None))
        else:
            pipeline.operators.append(node)
        waiting.extend((child, node, pipeline) for child in reversed(node.children))
    return Pipelines(pipelines, links)


def _why(above: PlanNode, below: PlanNode, conf: Mapping[str, str]) -> Break:
    if exchange_kind(above.name) or below.name in _READS or exchange_kind(below.name):
        return Break.EXCHANGE
    if below.name in _CACHES:
        return Break.CACHE
    if above.name in _SUBQUERIES or below.name in _SUBQUERIES:
        return Break.SUBQUERY
    for node in (above, below):
        if plan_text.kind(node.name) not in _COMPILABLE:
            return Break.NO_CODEGEN
    if conf.get("spark.sql.codegen.wholeStage", "true") == "false":
        return Break.SWITCHED_OFF
    if plan_text.kind(above.name) in _JOINS_WITH_SIDES:
        return Break.JOIN_SIDE
    limit = conf.get("spark.sql.codegen.maxFields", "")
    max_fields = int(limit) if limit.isdecimal() else _MAX_FIELDS
    if any(plan_text.width(node.text) > max_fields for node in (above, below)):
        return Break.TOO_MANY_FIELDS
    return Break.EXPRESSION
