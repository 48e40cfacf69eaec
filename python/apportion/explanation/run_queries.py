"""Run queries and read their events."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apportion import eventlog
from apportion._spark import jvm
from apportion.eventlog import Application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def run_sql(
    spark: SparkSession, statements: Sequence[str], head: int = 0
) -> tuple[Application, list[str], list[Row]]:
    """Run SQL statements as `run` does. The description of each query is its statement.

    Only `head` rows of the last statement are returned.
    """
    with jvm.job_description(spark) as describe:

        def frames() -> Iterator[DataFrame]:
            for statement in statements:
                describe(statement)
                yield spark.sql(statement)

        return run(spark, frames(), head)


def run(
    spark: SparkSession, frames: Iterable[DataFrame], head: int = 0
) -> tuple[Application, list[str], list[Row]]:
    """Collect all rows of each DataFrame, up to spark.driver.maxResultSize.

    Returns the application as its events of this time describe it, and the columns and the first
    rows of the last DataFrame. Raises Spark's errors, and `ApportionError` for a Spark Connect
    client.
    """
    frame: DataFrame | None = None
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="apportion-") as directory:
        with jvm.event_log(spark, Path(directory)):
            for frame in frames:
                # A write has another plan, so that the explanation would not be of this query.
                rows = frame.collect()
        application = eventlog.read(directory)
    # The event with these fields was posted earlier, when the application started.
    application.id = spark.sparkContext.applicationId
    application.name = spark.sparkContext.appName or ""
    application.spark_version = spark.version
    application.conf = jvm.session_conf(spark)
    return application, frame.columns if frame else [], rows[:head]
