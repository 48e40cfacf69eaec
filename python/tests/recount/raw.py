"""The numbers of an event log, counted from its raw JSON without any code of Apportion."""

from __future__ import annotations

import gzip
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

Event = dict[str, Any]
SQL = "org.apache.spark.sql.execution.ui.SparkListener"


def events(log: Path) -> Iterator[Event]:
    """Yield the events of a log: a file, or the folder of a rolling log."""
    files = [log]
    if log.is_dir():
        files = sorted(log.glob("events_*"), key=lambda file: int(file.name.split("_")[1]))
    for file in files:
        with file.open("rb") as raw:
            start = raw.read(4)
            raw.seek(0)
            stream: Any = raw
            if start == b"\x28\xb5\x2f\xfd":
                stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            elif start[:2] == b"\x1f\x8b":
                stream = gzip.GzipFile(fileobj=raw)
            for line in io.TextIOWrapper(stream, "utf-8", errors="replace"):
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield event


@dataclass
class Task:
    """A task that succeeded. Times are milliseconds."""

    launched: int
    finished: int
    ran: int
    scanned: int
    shuffled: int
    written_to_shuffle: int
    written_to_files: int
    spilled: int
    gc: int
    fetch_wait: int
    peak_memory: int

    @property
    def millis(self) -> int:
        return max(0, self.finished - self.launched)

    @property
    def read(self) -> int:
        return self.scanned + self.shuffled


@dataclass
class Attempt:
    """One attempt of a stage."""

    id: int
    query: int | None
    tasks: list[Task] = field(default_factory=list)
    failed: list[Event] = field(default_factory=list)
    killed_millis: int = 0

    @property
    def span(self) -> tuple[int, int]:
        start = min(task.launched for task in self.tasks)
        return start, max(start, *(task.finished for task in self.tasks))


@dataclass
class Log:
    """What the events of a log say."""

    attempts: dict[tuple[int, int], Attempt] = field(default_factory=dict)
    queries: dict[int, Event] = field(default_factory=dict)
    ends: dict[int, Event] = field(default_factory=dict)
    driver_metrics: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    decisions: list[Event] = field(default_factory=list)
    cores: list[tuple[int, int]] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)

    def stages(self, ids: Iterable[int]) -> list[Attempt]:
        """Return the attempts of stages that had tasks or failures."""
        wanted = set(ids)
        return [each for each in self.attempts.values() if each.id in wanted]

    def of_query(self, query: int | None) -> list[Attempt]:
        """Return the attempts of the stages of a query; None for work outside of SQL."""
        return [each for each in self.attempts.values() if each.query == query]


def read(path: Path) -> Log:
    """Return the numbers of a log."""
    log = Log()
    query_of: dict[int, int] = {}
    executors: dict[str, int] = {}

    def attempt(stage: int, number: int) -> Attempt:
        return log.attempts.setdefault((stage, number), Attempt(stage, query_of.get(stage)))

    for event in events(path):
        name = str(event.get("Event"))
        if name == "SparkListenerJobStart":
            query = (event.get("Properties") or {}).get("spark.sql.execution.id")
            if query is not None:
                query_of.update(dict.fromkeys(event["Stage IDs"], int(query)))
        elif name in ("SparkListenerStageSubmitted", "SparkListenerStageCompleted"):
            info = event["Stage Info"]
            attempt(info["Stage ID"], info["Stage Attempt ID"])
        elif name == "SparkListenerTaskEnd":
            _count(attempt(event["Stage ID"], event["Stage Attempt ID"]), event)
        elif name == "SparkListenerEnvironmentUpdate":
            log.properties = dict(event["Spark Properties"])
        elif name in ("SparkListenerExecutorAdded", "SparkListenerExecutorRemoved"):
            executors.pop(event["Executor ID"], None)
            if name.endswith("Added"):
                executors[event["Executor ID"]] = event["Executor Info"]["Total Cores"]
            log.cores.append((event["Timestamp"], sum(executors.values())))
        elif name == f"{SQL}SQLExecutionStart":
            log.queries[event["executionId"]] = event
        elif name == f"{SQL}SQLExecutionEnd":
            log.ends[event["executionId"]] = event
        elif name == f"{SQL}DriverAccumUpdates":
            log.driver_metrics[event["executionId"]].update(dict(event["accumUpdates"]))
        elif name == "io.apportion.report.DecisionEvent":
            log.decisions.append(event["decision"])
    return log


def _count(attempt: Attempt, event: Event) -> None:
    info, metrics = event["Task Info"], event.get("Task Metrics")
    millis = max(0, info["Finish Time"] - info["Launch Time"])
    reason = event.get("Task End Reason") or {}
    if info.get("Killed") or reason.get("Reason") == "TaskKilled":
        attempt.killed_millis += millis
    elif info.get("Failed") or not metrics:
        attempt.failed.append({"millis": millis, "reason": reason})
    else:
        read = metrics.get("Shuffle Read Metrics") or {}
        attempt.tasks.append(
            Task(
                launched=info["Launch Time"],
                finished=info["Finish Time"],
                ran=metrics["Executor Run Time"],
                scanned=(metrics.get("Input Metrics") or {}).get("Bytes Read", 0),
                shuffled=read.get("Remote Bytes Read", 0) + read.get("Local Bytes Read", 0),
                written_to_shuffle=(metrics.get("Shuffle Write Metrics") or {}).get(
                    "Shuffle Bytes Written", 0
                ),
                written_to_files=(metrics.get("Output Metrics") or {}).get("Bytes Written", 0),
                spilled=metrics.get("Disk Bytes Spilled", 0),
                gc=metrics.get("JVM GC Time", 0),
                fetch_wait=read.get("Fetch Wait Time", 0),
                peak_memory=metrics.get("Peak Execution Memory", 0),
            )
        )
