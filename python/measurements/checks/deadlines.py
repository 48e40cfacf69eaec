"""Measure on a standalone cluster how well queries end within a stated time, and what that costs.

    python -m measurements deadlines

A master and workers of one slot each start. Queries of TPC-DS run with dynamic allocation: once to
record their costs, and then with deadlines. Before each run, all executors are gone.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import pyspark
import typer
from pyspark.sql import SparkSession

from apportion import eventlog
from apportion._util import cache
from apportion.bench.suites import tpc
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.logs.simulate import scheduler
from apportion.logs.simulate.workload import Workload, workload
from measurements import raw
from measurements.speed.slow_tasks import plugin

QUERIES = (3, 7, 11, 13, 17, 19, 25, 26, 29, 34, 42, 46, 52, 55, 65, 68, 73, 79, 89, 98)
HOME = Path(pyspark.__file__).parent
BYTES_PER_SECOND = 100_000
"""Bytes that a task reads per second, at most. Tasks must wait longer than they compute."""
IDLE = 5
"""Seconds after which an idle executor goes."""
DEADLINES = (1.5, 3.0)
"""Deadlines, as multiples of the time of the run without a deadline."""
CONF = {
    "spark.driver.memory": "3g",
    "spark.sql.files.maxPartitionBytes": "4MB",
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "1MB",
    "spark.apportion.ranges": "balanced",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": f"{IDLE}s",
    "spark.dynamicAllocation.executorIdleTimeout": f"{IDLE}s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.apportion.resources.request": "true",
}


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a master and workers of one slot, and yield the URL of the master."""
    processes: list[subprocess.Popen[bytes]] = []

    def launch(name: str, *arguments: str) -> Path:
        log = folder / f"{name}-{len(processes)}.log"
        command = [HOME / "bin/spark-class", f"org.apache.spark.deploy.{name.lower()}.{name}"]
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments]
        environment = os.environ | {"SPARK_HOME": str(HOME), "SPARK_DAEMON_MEMORY": "256m"}
        with log.open("wb") as output:
            processes.append(
                subprocess.Popen(
                    [*map(str, command), *options],
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
            )
        return log

    try:
        url = text_in(launch("Master"), r"at (spark://\S+)")
        for number in range(workers):
            work = folder / f"work-{number}"
            options = "--cores", "1", "--memory", "600m", "--work-dir", str(work), url
            text_in(launch("Worker", *options), "(Successfully registered)")
        yield url
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)


def text_in(log: Path, pattern: str) -> str:
    """Wait for a line of a log, and return its group."""
    for _ in range(600):
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"{log} has no {pattern!r}")


def executors(session: SparkSession) -> int:
    """Return the number of registered executors."""
    context: Any = session._jsc
    return int(context.sc().getExecutorMemoryStatus().size()) - 1


def run(session: SparkSession, name: str, text: str) -> float:
    """Run a query when all executors are gone, and return its seconds."""
    while executors(session):
        time.sleep(0.2)
    session.sparkContext.setJobDescription(name)
    began = time.monotonic()
    session.sql(text).write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


def record(session: SparkSession, queries: Sequence[int], scale: float) -> None:
    """Run each query without a deadline, and then with deadlines."""
    register(session, find_tables(tpc.generate("tpcds", scale, cache.directory())))
    texts = tpc.queries("tpcds")
    for name in counted([str(query) for query in queries]):
        text = texts[int(name)]
        session.conf.set("spark.apportion.resources.rescaling", "fixed")
        seconds = run(session, f"{name} 0 0", text)
        session.conf.set("spark.apportion.resources.rescaling", "deadline")
        for multiple in DEADLINES:
            deadline = math.ceil(seconds * multiple)
            session.conf.set("spark.apportion.resources.finishWithin", f"{deadline}s")
            run(session, f"{name} {multiple} {deadline}", text)


def executor_times(log: Path) -> list[tuple[float, float]]:
    """Return the (start, end) of each executor in seconds since 1970."""
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('{"Event":"SparkListenerExecutor'):
                event = json.loads(line)
                times = {
                    "SparkListenerExecutorAdded": began,
                    "SparkListenerExecutorRemoved": ended,
                }.get(event["Event"])
                if times is not None:
                    times[event["Executor ID"]] = event["Timestamp"] / 1000
    return [(at, ended.get(executor, math.inf)) for executor, at in began.items()]


def cheapest(found: Workload, deadline: float, startup: float, most: int) -> float | None:
    """Return the slot seconds of the cheapest fixed number of slots that ends in time."""
    stages = [scheduler.Stage(each.seconds, each.after, each.delay) for each in found.stages]
    costs = []
    for slots in range(1, most + 1):
        seconds = scheduler.run(stages, scheduler.Cluster(slots)).end + found.tail
        if seconds + startup <= deadline:
            costs.append(slots * seconds)
    return min(costs, default=None)


def read_runs(log: Path, workers: int) -> tuple[list[raw.Row], float]:
    """Return a row for each run with a deadline, and the median seconds until an executor starts.

    The slot seconds are the time of the executors from the start to the end of the query.
    """
    application = eventlog.read(log)
    times = executor_times(log)
    runs: list[tuple[dict[str, str], Workload]] = []
    waits: list[float] = []
    for query in application.queries.values():
        parts = query.description.split()
        if len(parts) != 3 or query.submitted is None or query.completed is None:
            continue
        number, multiple, deadline = parts
        began, ended = query.submitted / 1000, query.completed / 1000
        held = [(max(start, began), min(end, ended)) for start, end in times]
        slot_seconds = sum(max(0.0, end - start) for start, end in held)
        waits.append(min(start for start, _ in times if start >= began) - began)
        found = workload(application, query)
        if multiple != "0" and found:
            row = {
                "query": number,
                "deadline": deadline,
                "seconds": f"{ended - began:.1f}",
                "slot_seconds": f"{slot_seconds:.0f}",
            }
            runs.append((row, found))
    startup = statistics.median_high(waits)
    for row, found in runs:
        least = cheapest(found, float(row["deadline"]), startup, workers)
        # It is empty if no fixed number of slots ends in time.
        row["cheapest"] = "" if least is None else f"{least:.0f}"
    return [row for row, _ in runs], startup


def main(
    scale: raw.Scale = 1,
    workers: Annotated[int, typer.Option(help="Workers of one slot.")] = 6,
    queries: Annotated[str, typer.Option(help="Numbers of the queries.")] = ",".join(
        map(str, QUERIES)
    ),
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Run queries that must end within a time on a standalone cluster with slow tasks."""
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        with cluster(scratch, workers) as url:
            conf = CONF | raw.logging_to(scratch) | plugin(scratch, BYTES_PER_SECOND)
            conf["spark.dynamicAllocation.maxExecutors"] = str(workers)
            session = start(url, [f"{key}={value}" for key, value in conf.items()])
            record(session, [int(number) for number in queries.split(",")], scale)
            about = raw.conditions(
                session, "emulated", scale=f"{scale:g}", workers=workers,
                bytes_per_second=BYTES_PER_SECOND,
            )  # fmt: skip
            log = scratch / session.sparkContext.applicationId
            session.stop()
        rows, startup = read_runs(log, workers)
    raw.write("deadlines", {**about, "startup": f"{startup:.1f}"}, rows, folder)
