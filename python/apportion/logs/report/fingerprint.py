"""Fingerprints that the runs of a query share, also if adaptive execution changed its plan.

A fingerprint has the distinct operators of a plan, so the number of equal parts does not count:
Spark computes an equal part once or twice, depending on the numbers of partitions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from apportion.logs.eventlog import PlanNode, plan_text
from apportion.logs.eventlog.fragments import exchange_kind
from apportion.logs.eventlog.plan_text import AGGREGATES, kind

# Operators that depend on the join strategy, on adaptive execution or on the version of Spark.
_CHANGING = {
    "AQEShuffleRead", "AdaptiveSparkPlan", "BroadcastExchange", "BroadcastQueryStage",
    "ColumnarToRow", "CustomShuffleReader", "Exchange", "Filter", "InputAdapter", "Project",
    "ResultQueryStage", "ReusedExchange", "ReusedSubquery", "RowToColumnar", "ShuffleQueryStage",
    "Sort", "Subquery", "TableCacheQueryStage", "WholeStageCodegen", "WriteFiles",
}  # fmt: skip
# Subqueries that repeat the build side of a broadcast join, to prune partitions.
_REPEATED = {"SubqueryAdaptiveBroadcast", "SubqueryBroadcast"}
# The function of a subquery that Spark may add to filter the input of a shuffled join.
_RUNTIME_FILTER = "bloom_filter_agg("
_JOINS = {
    "BroadcastHashJoin", "BroadcastNestedLoopJoin", "CartesianProduct", "ShuffledHashJoin",
    "SortMergeJoin",
}  # fmt: skip
_PARTIAL = re.compile(r"\b(?:partial|merge|final)_")
# Literals in SQL text and in plans, and parts of names that differ between runs.
_LITERAL = re.compile(r"'[^']*'|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\b")
_DATE_OR_ID = re.compile(
    r"\d{4}-\d\d-\d\d|\d{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=[/=])\d+(?![^/\s])"
)


def fingerprint(plan: PlanNode | None) -> str | None:
    """Return the fingerprint of a plan; None without a plan, and without any operator in it."""
    parts = {part for node in _nodes(plan) for part in _parts(node)} if plan else ()
    if not parts:
        return None
    return hashlib.blake2b("\n".join(sorted(parts)).encode(), digest_size=12).hexdigest()


def _parts(node: PlanNode) -> Iterator[str]:
    """Yield the operator, unless it is one that changes.

    Of operators that change, these are the columns of filters, the functions of projections, and
    the global sorts. Adaptive execution moves filters and projections, so a fingerprint has each
    column and function once.
    """
    name = kind(node.name)
    if name == "Filter":
        yield from (f"Filter {column}" for column in plan_text.filtered_columns(node.text))
    elif name == "Project":
        yield from (f"Project {function}" for function in plan_text.functions(node.text))
    elif name == "Sort" and plan_text.is_global_sort(node.text):
        order = plan_text.without_column_ids(plan_text.first_list(node.text))
        yield f"Sort {_NUMBER.sub('?', order)}"
    elif exchange_kind(name) == "shuffle" and plan_text.is_repartition(node.text):
        yield f"Repartition {sorted(plan_text.column_names(node.text))}"
    if name.split() and name.split()[0] not in _CHANGING:
        yield _operator(node, name)


def reads_tables(plan: PlanNode | None) -> bool:
    """Return whether a plan names a table or a path that it reads."""
    return plan is not None and any(plan_text.table(node.name, node.text) for node in plan.walk())


def without_literals(text: str) -> str:
    """Return a description or a name without its numbers, literals and ids.

    >>> without_literals("SELECT * FROM t WHERE day = '2026-11-01' LIMIT 10")
    'SELECT * FROM t WHERE day = ? LIMIT ?'
    """
    return " ".join(_LITERAL.sub("?", text).split())


def _nodes(plan: PlanNode) -> Iterator[PlanNode]:
    """Yield the operators of a plan, without subqueries that Spark adds to prune or filter."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if kind(node.name) not in _REPEATED and _RUNTIME_FILTER not in node.text:
            waiting.extend(node.children)
            yield node


def _operator(node: PlanNode, name: str) -> str:
    if name in _JOINS:
        join_type = plan_text.join_type(node.text)
        return f"Join {'Inner' if join_type in (None, 'Cross') else join_type}"
    if name == "TakeOrderedAndProject":
        order = node.text.partition("orderBy=[")[2].partition("]")[0]
        return f"{name} {plan_text.without_column_ids(order)}"
    if name in AGGREGATES:
        return f"Aggregate {_terms(node.text.partition('(')[2])}"
    if "Scan" in name:
        columns = plan_text.first_list(node.text)
        names = sorted(re.split(r",\s*", plan_text.without_column_ids(columns)))
        table = plan_text.table(node.name, node.text)
        words = _DATE_OR_ID.sub("?", table or " ".join(name.split()[:2]))
        return f"Scan {words} {names}"
    # Spark 4.2 and later name some targets in the name of the operator, others only in its text.
    targets = (each for each in plan_text.write_targets(name, node.text) if each not in name)
    return _DATE_OR_ID.sub("?", " ".join([name, *targets]))


def _terms(text: str) -> str:
    """Return the keys and functions of an aggregate, equal for its partial and final operator."""
    return _NUMBER.sub("?", _PARTIAL.sub("", plan_text.without_column_ids(text)))
