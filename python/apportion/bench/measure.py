"""Runs and measures a statement, with and without Apportion."""

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
    """One run of a statement with its collected result."""

    columns: list[str]
    rows: list[Row]
    seconds: float
    tasks: int
    """Tasks of all stages, including scans."""
    largest_task_bytes: int
    """Shuffle bytes read by the largest task."""
    shuffle_blocks: int
    """Shuffle blocks written; 0 unless `jvm.watch_stages` was called before."""
    decisions: list[Decision]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Fastest run of a statement with and without Apportion."""

    spark: Run
    apportion: Run
    equal: bool
    """Whether all runs returned the same rows, see `same_rows`."""


def run(spark: SparkSession, statement: str) -> Run:
    """Run a statement in a classic session and collect its result.

    Raises Spark's errors, and `ApportionError` if the session runs without Apportion.
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
        shuffle_blocks=sum(stage["blocksWritten"] for stage in stages),
        decisions=taken,
    )


def compare(spark: SparkSession, statement: str, rounds: int = 2) -> Comparison:
    """Run a query with Apportion off and on, `rounds` times each, alternating.

    Use two rounds or more for a fair comparison, because the first round warms up the JVM.
    """
    off, on = [], []
    for _ in range(rounds):
        with confs(spark, {ENABLED: "false"}):
            off.append(run(spark, statement))
        with confs(spark, {ENABLED: "true"}):
            on.append(run(spark, statement))
    return Comparison(
        spark=min(off, key=lambda run: run.seconds),
        apportion=min(on, key=lambda run: run.seconds),
        equal=all(same_rows(off[0].rows, run.rows) for run in [*off[1:], *on]),
    )


def same_rows(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Return whether two results have the same rows, in any order.

    Floating-point numbers may differ by a relative 1e-9, because sums depend on the order of
    additions.
    """
    return len(left) == len(right) and all(
        _same(one, other)
        for one, other in zip(sorted(left, key=_order), sorted(right, key=_order), strict=True)
    )


def without_ties(spark: SparkSession, query: str) -> str:
    """Append all result columns to the ORDER BY of a query with a final LIMIT.

    With ties, Spark may return any of the tied rows. The added columns leave only equal rows tied.
    The query is returned unchanged in these cases: it has no final LIMIT; sqlglot cannot parse it;
    it has another kind of order, such as SORT BY or ORDER BY ALL; a column cannot be ordered.
    Raises Spark's errors.
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
    """Run the jobs of the block in their own job group. Yield the name of the group."""
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
    # Floating-point numbers come last and are rounded, so that small differences do not change
    # the order.
    exact = [repr(value) for value in row if not isinstance(value, float)]
    return exact, [f"{value:.6g}" for value in row if isinstance(value, float)]
