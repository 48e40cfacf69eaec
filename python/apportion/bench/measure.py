"""Runs and measures a statement, with and without Apportion."""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion.bench.rows.digest import digest
from apportion.bench.rows.ties import without_ties
from apportion.decision import Decision, decisions_taken
from apportion.session import confs
from apportion.settings import ENABLED

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

# Properties of a thread that `setJobGroup` sets.
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a statement with the first rows of its result."""

    columns: list[str]
    rows: list[Row]
    row_count: int
    """Number of rows of the result."""
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
    """Whether the rows with and without Apportion have equal digests."""


def run(spark: SparkSession, statement: str, head: int = 0) -> Run:
    """Run a statement in a classic session, with the first rows of its result.

    The rows of a large result are discarded where they are. `head` of them are computed again.

    Raises Spark's errors, and `ApportionError` if the session runs without Apportion.
    """
    with decisions_taken(spark) as taken, job_group(spark) as group:
        start = time.perf_counter()
        result = spark.sql(statement)
        is_small = jvm.has_at_most(result, jvm.FEW_ROWS)
        rows = jvm.collect(result) if is_small else []
        count = len(rows) if is_small else jvm.discard_and_count(result)
        seconds = time.perf_counter() - start
    stages = jvm.stage_metrics(spark, group)
    if not is_small and head:
        rows = jvm.collect(result.limit(head))
    return Run(
        columns=result.columns,
        rows=rows[:head],
        row_count=count,
        seconds=seconds,
        tasks=sum(stage["tasks"] for stage in stages),
        largest_task_bytes=max((stage["largestTaskBytes"] for stage in stages), default=0),
        shuffle_blocks=sum(stage["blocksWritten"] for stage in stages),
        decisions=taken,
    )


def compare(spark: SparkSession, statement: str, rounds: int = 2, head: int = 0) -> Comparison:
    """Run a query with Apportion off and on, `rounds` times each, alternating.

    One more run each, before the others, compares the results. It also warms up the JVM. The query
    must only read, because it runs several times.
    """
    ordered = without_ties(spark, statement)
    digests, off, on = [], [], []
    for enabled in ("false", "true"):
        with confs(spark, {ENABLED: enabled}):
            digests.append(digest(spark.sql(ordered)))
    for number in range(rounds):
        with confs(spark, {ENABLED: "false"}):
            off.append(run(spark, statement))
        with confs(spark, {ENABLED: "true"}):
            on.append(run(spark, statement, head if number == 0 else 0))
    apportion = min(on, key=lambda run: run.seconds)
    return Comparison(
        spark=min(off, key=lambda run: run.seconds),
        apportion=dataclasses.replace(apportion, rows=on[0].rows),
        equal=digests[0].equals(digests[1]),
    )


@contextmanager
def job_group(spark: SparkSession) -> Iterator[str]:
    """Run the jobs of the block in their own job group. Yield the name of the group."""
    context = spark.sparkContext
    name = f"apportion-{uuid.uuid4()}"
    before = {key: context.getLocalProperty(key) for key in _GROUP}
    context.setJobGroup(name, "apportion")
    try:
        yield name
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)  # type: ignore[arg-type]
