"""Find objects that a session keeps for each query.

    python -m measurements heap-growth --queries 2000

Many small queries run in one session, with scans, shuffles and a query listener. With `--stream`,
the queries are the batches of a stream without state. It counts the objects on the driver's heap
after the warm-up, in the middle and at the end. It prints the classes that grew in the second half.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession
from rich.table import Table

from apportion._spark import jvm
from apportion.cli.support.console import QUERY_FAILED, fail, out
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from measurements import raw
from measurements.speed.slow_tasks import compiled

CONF = {
    "spark.driver.memory": "2g",
    "spark.sql.queryExecutionListeners": "IdleListener",
    # Spark's default bounds of its query history are larger than the number of queries in a run.
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.apportion.retainedDecisions": "50",
    "spark.apportion.dataVolumePerTask": "16KB",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
}
QUERIES = [
    "SELECT id % {n} AS k, count(*) AS n FROM rows GROUP BY k",
    "SELECT a.id FROM rows a JOIN rows b ON a.id = b.id WHERE a.id > {n}",
    "SELECT id FROM rows WHERE id % {n} = 0 ORDER BY text",
]
# Caches and garbage change a count by a few objects. An object kept for each query counts as 1.
_LEAST_GROWTH = 0.02
LISTENERS = "listeners on the bus"
THREADS = "threads of Apportion and of streams"
_COUNTED = re.compile(
    r"org\.apache\.spark\.sql\.(classic\.)?SparkSession"
    r"|org\.apache\.spark\.sql\.internal\.SessionState"
    r"|org\.apache\.spark\.sql\.internal\.SQLConf"
    r"|org\.apache\.spark\.sql\.util\.ExecutionListenerBus"
    r"|org\.apache\.spark\.sql\.execution\.QueryExecution"
    r"|IdleListener"
    r"|io\.apportion\..*"
    r"|org\.apache\.spark\.(sql\.)?apportion\..*"
)


def histogram(spark: SparkSession) -> dict[str, int]:
    """Return the numbers of live objects of the counted classes, of listeners, and of threads."""
    # jmap collects garbage first. Objects behind weak references and cleaners need two runs.
    for _ in range(2):
        jmap = subprocess.run(
            ["jmap", "-histo:live", str(_process_id(spark))],
            check=True,
            capture_output=True,
            text=True,
        )
    # Columns: place, objects, bytes, class, and module in brackets.
    rows = [line.split() for line in jmap.stdout.splitlines()]
    objects = {
        row[3]: int(row[1])
        for row in rows
        if len(row) > 3 and row[1].isdecimal() and _COUNTED.fullmatch(row[3])
    }
    return {LISTENERS: _listeners(spark), THREADS: _threads(spark), **objects}


def _process_id(spark: SparkSession) -> int:
    java: Any = spark._jvm
    return int(java.java.lang.ProcessHandle.current().pid())


def _listeners(spark: SparkSession) -> int:
    return int(spark._jsparkSession.sparkContext().listenerBus().listeners().size())


def _threads(spark: SparkSession) -> int:
    jstack = subprocess.run(
        ["jstack", str(_process_id(spark))], check=True, capture_output=True, text=True
    )
    # Pools start and end threads as they like. Threads of a stream have its name or its id.
    names = [line for line in jstack.stdout.splitlines() if line.startswith('"')]
    return sum("apportion" in name.lower() or "stream execution" in name for name in names)


def run(spark: SparkSession, first: int, last: int) -> None:
    """Run the queries numbered `first` to `last` - 1. All have different texts."""
    for number in counted([str(number) for number in range(first, last)]):
        sql = QUERIES[int(number) % len(QUERIES)].format(n=2 + int(number))
        spark.sql(sql).write.format("noop").mode("overwrite").save()


def stream(spark: SparkSession) -> Callable[[int, int], None]:
    """Start a stream that joins each batch. Return a function that waits for its batches."""
    batches = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    joined = batches.join(spark.table("rows"), batches.value == spark.table("rows").id)
    running = joined.select("text").writeStream.format("noop").start()

    def wait(_: int, last: int) -> None:
        while (running.lastProgress or {"batchId": -1})["batchId"] < last - 1:
            if not running.isActive:
                fail(f"the stream ended: {running.exception()}", QUERY_FAILED)
            time.sleep(0.1)

    return wait


def grown(
    before: Mapping[str, int], after: Mapping[str, int], queries: int
) -> Iterator[tuple[str, float]]:
    """Yield the names with a growing count, and the number of additional objects per query."""
    for name, count in after.items():
        growth = (count - before.get(name, 0)) / queries
        if growth > _LEAST_GROWTH:
            yield name, growth


def main(
    queries: Annotated[int, typer.Option(min=2, help="Queries after the first count.")] = 2000,
    warmups: Annotated[int, typer.Option(min=0, help="Queries before the first count.")] = 200,
    off: Annotated[
        bool, typer.Option("--off", help="Switch Apportion off, for comparison.")
    ] = False,
    as_stream: Annotated[
        bool, typer.Option("--stream", help="Run the batches of a stream. Needs Spark 4.1.")
    ] = False,
    master: raw.Master = "local[*]",
) -> None:
    """Count sessions, listeners and Apportion's objects on the heap while many queries run.

    Exit codes: 0 if no count grew with the number of queries, 1 otherwise.
    """
    with tempfile.TemporaryDirectory() as folder:
        listener = Path(__file__).with_name("IdleListener.java")
        conf = CONF | compiled(listener, Path(folder))
        if as_stream:
            # The join of each batch then has shuffles.
            conf["spark.sql.autoBroadcastJoinThreshold"] = "-1"
        if off:
            conf["spark.apportion.enabled"] = "false"
        spark = start(master, [f"{key}={value}" for key, value in conf.items()])
        rows = spark.range(0, 2000, 1, 4).selectExpr("id", "sha2(string(id), 512) AS text")
        rows.write.parquet(f"{folder}/rows")
        spark.read.parquet(f"{folder}/rows").createOrReplaceTempView("rows")
        step = stream(spark) if as_stream else functools.partial(run, spark)
        step(0, warmups)
        counts = [histogram(spark)]
        middle, end = warmups + queries // 2, warmups + queries
        for first, last in ((warmups, middle), (middle, end)):
            step(first, last)
            counts.append(histogram(spark))
        for query in spark.streams.active:
            query.stop()
        decisions = len(jvm.table(spark, "apportion_decisions"))
        out.print(f"The session has {decisions} decisions.")
        spark.stop()
    columns = [f"After {number:,} queries" for number in (warmups, middle, end)]
    table = Table("Class", *columns, title="Live objects")
    for name in sorted(counts[0] | counts[1] | counts[2], key=lambda each: -counts[2].get(each, 0)):
        # Many classes of Spark and Scala are singletons.
        if any(count.get(name, 0) > 1 for count in counts):
            table.add_row(name, *(f"{count.get(name, 0):,}" for count in counts))
    out.print(table)
    # Bounded histories fill up in the first half, so only the second half counts.
    if growing := list(grown(counts[1], counts[2], end - middle)):
        lines = [f"{name}: {growth:.2f} more per query" for name, growth in growing]
        fail("\n".join(["counts that grow with the number of queries:", *lines]), QUERY_FAILED)
