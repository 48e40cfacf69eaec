"""Runs a statement and measures it, with Apportion and without."""

from __future__ import annotations

import dataclasses
import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from apportion import _jvm
from apportion.decision import Decision, decisions

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_ENABLED = "spark.apportion.enabled"
_RELATIVE_TOLERANCE = 1e-9


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
    before = {(decision.query, decision.group) for decision in decisions(spark)}
    job_group = f"apportion-{uuid.uuid4()}"
    with _job_group(spark, job_group):
        start = time.perf_counter()
        result = spark.sql(statement)
        rows = result.collect()
        seconds = time.perf_counter() - start
    stages = _jvm.stage_metrics(spark, job_group)
    return Run(
        columns=result.columns,
        rows=rows,
        seconds=seconds,
        tasks=sum(stage["tasks"] for stage in stages),
        largest_task_bytes=max((stage["largestTaskBytes"] for stage in stages), default=0),
        decisions=[d for d in decisions(spark) if (d.query, d.group) not in before],
    )


def compare(spark: SparkSession, statement: str, rounds: int = 2) -> Comparison:
    """Run a query with Apportion off and on, `rounds` times each, in turns.

    A first round warms the JVM up, so that more than one is needed for a fair time.
    """
    off, on = [], []
    for _ in range(rounds):
        with _enabled(spark, "false"):
            off.append(run(spark, statement))
        with _enabled(spark, "true"):
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


@contextmanager
def _job_group(spark: SparkSession, job_group: str) -> Iterator[None]:
    context = spark.sparkContext
    context.setJobGroup(job_group, "apportion")
    try:
        yield
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@contextmanager
def _enabled(spark: SparkSession, value: str) -> Iterator[None]:
    before = spark.conf.get(_ENABLED) or "true"
    spark.conf.set(_ENABLED, value)
    try:
        yield
    finally:
        spark.conf.set(_ENABLED, before)
