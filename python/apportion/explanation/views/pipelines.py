"""What is chained into one pipeline within a stage, and why a chain breaks.

Operators of a stage hand rows to each other. Those that Spark compiles into one function, by
whole-stage code generation, are a pipeline: a row goes through all of them without being stored.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping

from apportion.eventlog import PlanNode
from apportion.eventlog.fragments import Fragment


class Break(enum.Enum):
    """Why two operators are not in one pipeline."""

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
        """What it means, in a sentence."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Break.EXCHANGE: "Rows go to other tasks: they are shuffled or broadcast, and a stage ends.",
    Break.CACHE: "Rows come from a cached table, where they are stored in columns.",
    Break.SUBQUERY: "Rows go to the driver, as a value for the query around the subquery.",
    Break.JOIN_SIDE: "A sort-merge or shuffled hash join pulls rows from each side in turn, so "
    "that each side is a pipeline of its own.",
    Break.NO_CODEGEN: "The operator hands on rows one by one; Spark cannot compile it, as it "
    "stores rows or runs code that is not Java's (Window, ObjectHashAggregate, Python functions).",
    Break.TOO_MANY_FIELDS: "There are more columns than spark.sql.codegen.maxFields.",
    Break.EXPRESSION: "The operator could be compiled, but one of its expressions cannot.",
    Break.SWITCHED_OFF: "spark.sql.codegen.wholeStage is false.",
}

_COMPILED = "WholeStageCodegen"
_PLUMBING = {"AdaptiveSparkPlan", "AQEShuffleRead", "InputAdapter", "ResultQueryStage"}
_JOINS_WITH_SIDES = {"SortMergeJoin", "ShuffledHashJoin"}
_READS = {"ShuffleQueryStage", "BroadcastQueryStage", "ReusedExchange"}
_EXCHANGES = {"Exchange", "BroadcastExchange"}
_SUBQUERIES = {"Subquery", "SubqueryBroadcast", "ReusedSubquery"}
_CACHES = {"InMemoryTableScan", "TableCacheQueryStage"}
_COMPILABLE = {
    "BroadcastHashJoin", "BroadcastNestedLoopJoin", "ColumnarToRow", "Expand", "Filter", "Generate",
    "GlobalLimit", "HashAggregate", "LocalLimit", "Project", "Range", "Sample", "ShuffledHashJoin",
    "Sort", "SortMergeJoin",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """Operators that run as one, from the one that puts out the rows."""

    operators: list[PlanNode]
    codegen: int | None
    """The number of the generated code, as in EXPLAIN's `*(3)`; None for a single operator."""


@dataclasses.dataclass(frozen=True)
class Link:
    """Where one pipeline, or an input of the stage, hands rows to another pipeline."""

    above: PlanNode
    below: PlanNode
    why: Break

    def __str__(self) -> str:
        return f"{self.below.name} -> {self.above.name}: {self.why.value}"


@dataclasses.dataclass(frozen=True)
class Chains:
    pipelines: list[Pipeline]
    links: list[Link]


def chains(fragment: Fragment, conf: Mapping[str, str]) -> Chains:
    """Return the pipelines of a fragment, from the top, and the links between them."""
    pipelines: list[Pipeline] = []
    links: list[Link] = []
    waiting: list[tuple[PlanNode, PlanNode | None, Pipeline | None]] = [(fragment.root, None, None)]
    inside = {id(node) for node in fragment.operators()}
    while waiting:
        node, above, pipeline = waiting.pop()
        if node.name.startswith(_COMPILED):
            pipeline = Pipeline([], _number(node.name))
            pipelines.append(pipeline)
            waiting.append((node.children[0], above, pipeline))
            continue
        if node.name in _PLUMBING and node.children:
            waiting.append((node.children[0], above, None))
            continue
        chained = pipeline is not None and pipeline.codegen is not None
        first = not (chained and pipeline and pipeline.operators)
        if above is not None and first:
            links.append(Link(above, node, _why(above, node, conf)))
        if id(node) not in inside:
            continue
        if pipeline is None:
            pipelines.append(Pipeline([node], None))
        else:
            pipeline.operators.append(node)
        waiting.extend(
            (child, node, pipeline if chained else None) for child in reversed(node.children)
        )
    return Chains(pipelines, links)


def _why(above: PlanNode, below: PlanNode, conf: Mapping[str, str]) -> Break:
    if above.name in _EXCHANGES or below.name in _READS | _EXCHANGES:
        return Break.EXCHANGE
    if below.name in _CACHES:
        return Break.CACHE
    if above.name in _SUBQUERIES or below.name in _SUBQUERIES:
        return Break.SUBQUERY
    for node in (above, below):
        if _kind(node) not in _COMPILABLE:
            return Break.NO_CODEGEN
    if conf.get("spark.sql.codegen.wholeStage", "true") == "false":
        return Break.SWITCHED_OFF
    if _kind(above) in _JOINS_WITH_SIDES:
        return Break.JOIN_SIDE
    most = int(conf.get("spark.sql.codegen.maxFields", "100"))
    if any(_fields(node) > most for node in (above, below)):
        return Break.TOO_MANY_FIELDS
    return Break.EXPRESSION


def _kind(node: PlanNode) -> str:
    """The operator's name without what Spark adds, as in `SortMergeJoin(skew=true)`."""
    return node.name.partition("(")[0]


def _number(name: str) -> int | None:
    return int(match[0]) if (match := re.search(r"\d+", name)) else None


def _fields(node: PlanNode) -> int:
    """How many columns the operator's text has, which Spark cuts off after some."""
    listed = next(iter(re.findall(r"\[([^\]]*)\]", node.text)), "")
    more = match[1] if (match := re.search(r"(\d+) more fields", listed)) else "0"
    return len(listed.split(", ")) + int(more)
