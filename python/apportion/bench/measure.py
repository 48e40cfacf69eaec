"""Runs a statement and measures it, with Apportion and without."""

from __future__ import annotations

import dataclasses
import math
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot.errors import SqlglotError

from apportion._spark import jvm
from apportion.decision import Decision, decisions_taken
from apportion.session import confs
from apportion.settings import ENABLED

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_RELATIVE_TOLERANCE = 1e-9
_OTHER_ORDERS = ("sort", "cluster", "distribute")
_WITHOUT_ORDER = r"\b(map<|variant|interval$)"


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a statement, its whole result collected."""

    columns: list[str]
    rows: list[Row]
    seconds: float
    tasks: int
    """Tasks of all its stages, those that scan included."""
    largest_task_bytes: int
    """Shuffle bytes that its largest task read."""
    decisions: list[Decision]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The fastest run of a statement each way."""

    spark: Run
    apportion: Run
    equal: bool
    """Whether all runs gave the same rows, see `same_rows`."""


def run(spark: SparkSession, statement: str) -> Run:
    """Run a statement in a classic session and collect its result.

    Raises what Spark raises, and `ApportionError` when the session has no Apportion in it.
    """
    with decisions_taken(spark) as taken, job_group(spark) as group:
        start = time.perf_counter()
        result = spark.sql(statement)
        rows = result.collect()
        seconds = time.perf_counter() - start
    stages = jvm.stage_metrics(spark, group)
    return Run(
        columns=result.columns,
        rows=rows,
        seconds=seconds,
        tasks=sum(stage["tasks"] for stage in stages),
        largest_task_bytes=max((stage["largestTaskBytes"] for stage in stages), default=0),
        decisions=taken,
    )


def compare(spark: SparkSession, statement: str, rounds: int = 2) -> Comparison:
    """Run a query with Apportion off and on, `rounds` times each, in turns.

    A first round warms the JVM up, so that more than one is needed for a fair time.
    """
    off, on = [], []
    for _ in range(rounds):
        with confs(spark, {ENABLED: "false"}):
            off.append(run(spark, statement))
        with confs(spark, {ENABLED: "true"}):
            on.append(run(spark, statement))
    return Comparison(
        spark=min(off, key=lambda each: each.seconds),
        apportion=min(on, key=lambda each: each.seconds),
        equal=all(same_rows(off[0].rows, each.rows) for each in [*off[1:], *on]),
    )


def same_rows(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Whether two results have the same rows in any order.

    Floating-point numbers may differ by a relative 1e-9, because sums depend on the order in
    which Spark adds them.
    """
    return len(left) == len(right) and all(
        _same(one, other)
        for one, other in zip(sorted(left, key=_order), sorted(right, key=_order), strict=True)
    )


def without_ties(spark: SparkSession, query: str) -> str:
    """Append all result columns to the order that a query's final LIMIT cuts.

    Where that order has ties, which rows are cut off is anybody's choice; then only equal rows are
    tied. A query is returned as it is without such a LIMIT, where sqlglot cannot read it, where it
    is ordered otherwise than by columns, and where a column has no order. Raises what Spark raises.
    """
    limit = re.search(r"\bLIMIT\s+\d+\s*$", query, re.IGNORECASE)
    if limit is None:
        return query
    try:
        clauses = sqlglot.parse_one(query, read="spark").args
    except SqlglotError:
        return query
    order = clauses.get("order")
    if any(map(clauses.get, _OTHER_ORDERS)) or (
        order and order.expressions[0].name.upper() == "ALL"
    ):
        return query
    fields = spark.sql(query).schema
    if any(re.search(_WITHOUT_ORDER, field.dataType.simpleString()) for field in fields):
        return query
    columns = ", ".join(str(place + 1) for place in range(len(fields)))
    return f"{query[: limit.start()]}{',' if order else 'ORDER BY'} {columns} {limit.group()}"


@contextmanager
def job_group(spark: SparkSession) -> Iterator[str]:
    """Make the jobs of the block a group of their own, and give its name."""
    context = spark.sparkContext
    name = f"apportion-{uuid.uuid4()}"
    context.setJobGroup(name, "apportion")
    try:
        yield name
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _same(left: Any, right: Any) -> bool:
    match left, right:
        case float(), float():
            both_nan = math.isnan(left) and math.isnan(right)
            return both_nan or math.isclose(left, right, rel_tol=_RELATIVE_TOLERANCE)
        case ((list() | tuple()), (list() | tuple())):
            return len(left) == len(right) and all(map(_same, left, right))
        case Mapping(), Mapping():
            return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
        case _:
            return bool(left == right)


def _order(row: Row) -> tuple[list[str], list[str]]:
    # Floating-point numbers last and rounded: what may differ must not change the order.
    exact = [repr(value) for value in row if not isinstance(value, float)]
    return exact, [f"{value:.6g}" for value in row if isinstance(value, float)]
