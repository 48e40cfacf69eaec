"""Run queries and read their events."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion.logs import eventlog
from apportion.logs.eventlog import Application
from apportion.logs.eventlog.model import PlanNode
from apportion.session import confs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def run_sql(
    spark: SparkSession, statements: Iterable[str], head: int = 0
) -> tuple[Application, list[str], list[Row]]:
    """Run SQL statements as `run` does. The description of each query is its statement.

    Only `head` rows of the last statement are returned.
    """
    with _job_description(spark) as describe:

        def frames() -> Iterator[DataFrame]:
            for statement in statements:
                describe(statement)
                yield spark.sql(statement)

        return run(spark, frames(), head)


def run_frame(frame: DataFrame) -> Application:
    """Run a DataFrame as `run` does. Its description are its columns, unless the user set one."""
    spark = frame.sparkSession
    with _job_description(spark) as describe:
        if not spark.sparkContext.getLocalProperty("spark.job.description"):
            # Otherwise it would be a place in this file.
            describe(f"DataFrame[{', '.join(frame.columns)}]")
        return run(spark, [frame])[0]


def run(
    spark: SparkSession, frames: Iterable[DataFrame], head: int = 0
) -> tuple[Application, list[str], list[Row]]:
    """Run each DataFrame. The rows of a large result are discarded where they are.

    Returns the application as its events of this time describe it, and the columns and the first
    rows of the last DataFrame, which are computed again for a large result. Raises Spark's errors,
    and `ApportionError` for a Spark Connect client.
    """
    frame: DataFrame | None = None
    rows: list[Row] | None = []
    with tempfile.TemporaryDirectory(prefix="apportion-") as directory:
        with jvm.event_log(spark, Path(directory)):
            for frame in frames:
                # A write has another plan, so that a result with few rows is collected.
                if jvm.has_at_most(frame, jvm.FEW_ROWS):
                    rows = jvm.collect(frame)
                else:
                    rows = None
                    jvm.discard(_writable(frame))
        application = eventlog.read(directory)
    for number, query in list(application.queries.items()):
        query.plan = query.plan and _without_write(query.plan)
        # An ended query is unpacked for each use.
        application.queries[number] = query
    if rows is None:
        # The first rows are no query of the user, and so get no decisions.
        with confs(spark, {"spark.apportion.enabled": "false"}):
            rows = jvm.collect(frame.limit(head)) if frame is not None and head else []
    # The event with these fields was posted earlier, when the application started.
    application.id = spark.sparkContext.applicationId
    application.name = spark.sparkContext.appName or ""
    application.spark_version = spark.version
    application.conf = jvm.session_conf(spark)
    return application, frame.columns if frame else [], rows[:head]


@contextmanager
def _job_description(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Yield a function that sets the description of the next jobs; reset it after the block."""
    jvm.check_classic(spark, "running a query to explain it")
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    try:
        yield context.setJobDescription
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


def _writable(frame: DataFrame) -> DataFrame:
    """Return the DataFrame with text in place of types that no table can have."""
    unwritable = [jvm.has_calendar_interval(field.dataType) for field in frame.schema]
    if not any(unwritable):
        return frame
    # Columns can have the same name.
    renamed = frame.toDF(*(f"c{place}" for place in range(len(unwritable))))
    columns = (renamed[name] for name in renamed.columns)
    return renamed.select(
        [
            column.cast("string") if is_text else column
            for column, is_text in zip(columns, unwritable, strict=True)
        ]
    )


def _without_write(plan: PlanNode) -> PlanNode:
    """Return the plan of the query in a plan that discards its rows."""
    is_write = plan.name.startswith("OverwriteByExpression") and "noop" in plan.text
    return plan.children[0] if is_write and plan.children else plan
