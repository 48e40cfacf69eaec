"""Runs of queries in a log, with the numbers to compare."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from apportion._util.parallel import in_processes
from apportion.logs import eventlog
from apportion.logs.eventlog import Application, Query, Unread
from apportion.logs.eventlog.input.files import is_open_here
from apportion.logs.report.fingerprint import fingerprint, reads_tables
from apportion.logs.simulate.arithmetic.policy import Confs

_LONGEST_DESCRIPTION = 2000
_FILE_BYTES = "size of files read"


@dataclasses.dataclass(frozen=True)
class QueryRun:
    """One run of a query."""

    id: int
    description: str
    fingerprint: str | None
    """None without a plan in the log."""
    reads_tables: bool
    """Whether the plan names a table or a path. Fingerprints of other plans say little."""
    has_succeeded: bool
    """Whether it ended without an error."""
    seconds: float
    core_seconds: float
    """Time of all tasks, with failed and killed attempts, times the cores of a task."""
    tasks: int
    """Tasks that succeeded."""
    file_bytes: int
    """Bytes of the files that it scans, as the driver counted them."""
    scanned_bytes: int
    """Bytes that the tasks read from files. Spark counts no vectored reads of local files."""
    shuffled_bytes: int
    """Bytes that the tasks wrote to shuffles."""
    spilled_bytes: int
    failed_tasks: int
    """Attempts of tasks that failed."""
    memory_failures: int


@dataclasses.dataclass(frozen=True)
class LogRuns:
    """The runs of queries in one log."""

    log: str
    name: str
    """Name of the application."""
    spark_version: str
    has_decisions: bool
    """Whether Apportion decided tasks in this log."""
    runs: list[QueryRun]
    """Runs of queries with tasks."""
    notes: list[str]
    """Omitted parts of the log."""


def read_all(logs: Sequence[str], processes: int | None = None) -> Iterator[LogRuns | Unread]:
    """Yield the runs in each log, in the order of the logs, which are read in parallel."""
    return in_processes(read, logs, Unread.killed, processes, is_open_here)


def read(log: str) -> LogRuns | Unread:
    """Return the runs in a log, or the reason why it cannot be read."""
    return eventlog.read_with(log, lambda application: runs(application, log))


def runs(application: Application, log: str) -> LogRuns:
    """Return the runs in an application."""
    cpus = max(1, Confs(application.conf).number("spark.task.cpus") or 1)
    return LogRuns(
        log=log,
        name=application.name or application.id or log,
        spark_version=application.spark_version,
        has_decisions=any(
            each.decision.layout != "observed"
            for query in application.queries.values()
            for each in query.decisions
        ),
        runs=[_run(query, cpus) for query in application.queries.values() if query.stages],
        notes=application.skipped,
    )


def _file_bytes(query: Query) -> int:
    """Return the bytes of the files of all scans. A reused scan has the same metric."""
    nodes = query.plan.walk() if query.plan else ()
    metrics = {node.metrics[_FILE_BYTES] for node in nodes if _FILE_BYTES in node.metrics}
    return sum(query.driver_metrics.get(metric, 0) for metric in metrics)


def _run(query: Query, cpus: int) -> QueryRun:
    stages = query.stages
    start, end = query.submitted, query.completed
    millis = sum(
        sum(stage.task_millis) + stage.wasted_millis + stage.killed_millis for stage in stages
    )
    return QueryRun(
        id=query.id,
        description=query.description.strip()[:_LONGEST_DESCRIPTION],
        fingerprint=fingerprint(query.plan),
        reads_tables=reads_tables(query.plan),
        has_succeeded=end is not None and start is not None and not query.failure,
        seconds=max(end - start, 0) / 1000 if start is not None and end is not None else 0.0,
        core_seconds=millis * cpus / 1000,
        tasks=sum(stage.tasks for stage in stages),
        file_bytes=_file_bytes(query),
        scanned_bytes=sum(sum(stage.input_bytes) for stage in stages),
        shuffled_bytes=sum(sum(stage.shuffle_written_bytes) for stage in stages),
        spilled_bytes=sum(sum(stage.spilled_bytes) for stage in stages),
        failed_tasks=sum(stage.failed_tasks for stage in stages),
        memory_failures=sum(stage.memory_failures for stage in stages),
    )
