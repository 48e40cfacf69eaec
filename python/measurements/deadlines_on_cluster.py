"""Measure on a standalone cluster how well queries end within a stated time, and what that costs.

    python python/measurements/deadlines_on_cluster.py docs/deadline-measurements.md

starts a master and workers of one slot each. Queries of TPC-DS run with dynamic allocation: once to
record their costs, and then with deadlines. Before each run, all executors are gone.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyspark
import typer

from apportion import eventlog
from apportion._util import cache
from apportion.bench.environment import Environment
from apportion.bench.suites import tpc
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.logs.simulate import scheduler
from apportion.logs.simulate.workload import Workload, workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same as in `deadlines.py`.
QUERIES = (3, 7, 11, 13, 17, 19, 25, 26, 29, 34, 42, 46, 52, 55, 65, 68, 73, 79, 89, 98)
GOAL_IN_TIME, GOAL_COST = 0.9, 1.3
HOME = Path(pyspark.__file__).parent
BYTES_PER_SECOND = 100_000
"""Bytes that a task reads per second, at most. Tasks must wait longer than they compute."""
IDLE = 5
"""Seconds after which an idle executor goes."""
DEADLINES = (1.5, 3.0)
"""Deadlines, as multiples of the time of the run without a deadline."""
CONF = {
    "spark.driver.memory": "3g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
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
    "spark.plugins": "SlowTasks",
    "spark.slowTasks.bytesPerSecond": str(BYTES_PER_SECOND),
    "spark.apportion.resources.request": "true",
}


@dataclasses.dataclass(frozen=True)
class Run:
    """A run with a deadline. Times are seconds."""

    query: int
    multiple: float
    deadline: float
    seconds: float
    slot_seconds: float
    """Time of the executors from the start to the end of the query."""
    cheapest: float | None
    """Slot seconds of the cheapest fixed number of slots that ends in time; None if none does."""


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


def compiled(folder: Path) -> Path:
    """Compile the plugin, and return its class path."""
    jars = str(HOME / "jars" / "*")
    source = Path(__file__).with_name("SlowTasks.java")
    subprocess.run(["javac", "-cp", jars, "-d", folder, source], check=True)
    return folder


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


def read_runs(log: Path, workers: int) -> tuple[list[Run], float]:
    """Return the runs with deadlines, and the median seconds until the first executor starts."""
    application = eventlog.read(log)
    times = executor_times(log)
    runs: list[tuple[Run, Workload]] = []
    waits: list[float] = []
    for query in application.queries.values():
        parts = query.description.split()
        if len(parts) != 3 or query.submitted is None or query.completed is None:
            continue
        began, ended = query.submitted / 1000, query.completed / 1000
        held = [(max(start, began), min(end, ended)) for start, end in times]
        slot_seconds = sum(max(0.0, end - start) for start, end in held)
        waits.append(min(start for start, _ in times if start >= began) - began)
        found = workload(application, query)
        if parts[1] != "0" and found:
            number, multiple, deadline = int(parts[0]), float(parts[1]), float(parts[2])
            one = Run(number, multiple, deadline, ended - began, slot_seconds, None)
            runs.append((one, found))
    startup = sorted(waits)[len(waits) // 2]
    return [
        dataclasses.replace(one, cheapest=cheapest(found, one.deadline, startup, workers))
        for one, found in runs
    ], startup


def page(runs: Sequence[Run], startup: float, workers: int, about: str) -> str:
    """Return the page in Markdown."""
    lines = [
        "# Deadlines on a cluster",
        "",
        f"These are runs on a standalone cluster with {workers} workers of one slot, all on one "
        f"machine ({about}). Executors come and go by dynamic allocation, and go after {IDLE} s "
        f"without work. The first one of a query starts {startup:.1f} s after the query, in the "
        "median.",
        "",
        f"A task reads at most {BYTES_PER_SECOND // 1000} KB per second, and waits for the "
        "rest of its time. So two cores can run more slots than two. Other programs ran on the "
        "same machine. The queries are those of TPC-DS. Each ran once without a deadline. The "
        "deadlines are multiples of its time.",
        "",
        "`make measure-deadlines-on-cluster` writes this page.",
        "",
        "| deadline | runs | possible | in time | latest end | core-seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        _row(f"{multiple:g} x", [run for run in runs if run.multiple == multiple])
        for multiple in DEADLINES
    ]
    lines += [
        _row("all", runs),
        "",
        "A run is *possible* if a fixed number of slots would have met the deadline, by the "
        "times of its tasks. Only these count in the next columns. *Core-seconds* are those of "
        "all executors, as a multiple of the cheapest fixed numbers. The goals are "
        f"{GOAL_IN_TIME:.0%} and {GOAL_COST}.",
        "",
        "## Runs",
        "",
        "| query | deadline | time | core-seconds | cheapest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for each in runs:
        best = "-" if each.cheapest is None else f"{each.cheapest:.0f}"
        lines.append(
            f"| q{each.query} | {each.deadline:.0f} s | {each.seconds:.1f} s "
            f"| {each.slot_seconds:.0f} | {best} |"
        )
    return "\n".join(lines) + "\n"


def _row(name: str, runs: Sequence[Run]) -> str:
    possible = [(run, run.cheapest) for run in runs if run.cheapest is not None]
    if not possible:
        return f"| {name} | {len(runs)} | 0 | - | - | - |"
    in_time = sum(run.seconds <= run.deadline for run, _ in possible) / len(possible)
    latest = max(run.seconds / run.deadline for run, _ in possible)
    cost = sum(run.slot_seconds for run, _ in possible) / sum(best for _, best in possible)
    numbers = f"{in_time:.0%} | {latest:.0%} | {cost:.2f}"
    return f"| {name} | {len(runs)} | {len(possible)} | {numbers} |"


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    scale: Annotated[float, typer.Option(help="Scale factor of TPC-DS.")] = 1,
    workers: Annotated[int, typer.Option(help="Workers of one slot.")] = 6,
    queries: Annotated[str, typer.Option(help="Numbers of the queries.")] = ",".join(
        map(str, QUERIES)
    ),
) -> None:
    """Run queries with deadlines, and write the page."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        with cluster(folder, workers) as url:
            conf = dict(CONF)
            conf["spark.dynamicAllocation.maxExecutors"] = str(workers)
            conf["spark.eventLog.dir"] = folder.as_uri()
            conf["spark.driver.extraClassPath"] = str(compiled(folder))
            conf["spark.executor.extraClassPath"] = str(folder)
            session = start(url, [f"{key}={value}" for key, value in conf.items()])
            record(session, [int(number) for number in queries.split(",")], scale)
            environment = Environment.from_session(session)
            about = f"Spark {environment.spark}, {environment.cores} cores"
            log = folder / session.sparkContext.applicationId
            session.stop()
        runs, startup = read_runs(log, workers)
    file.write_text(page(runs, startup, workers, about), "utf-8")


if __name__ == "__main__":
    typer.run(main)
