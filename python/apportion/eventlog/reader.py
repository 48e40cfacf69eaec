"""Reads event logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from apportion.decision import decision_from_json
from apportion.eventlog.files import Skipped, lines
from apportion.eventlog.model import Application, LoggedDecision, PlanNode, Query, Stage

_SQL = "org.apache.spark.sql.execution.ui."
_QUERY_ID = "spark.sql.execution.id"
# Plans are nested JSON, and those of hundreds of joins are deeper than Python allows by default.
_RECURSION_LIMIT = 20_000
_DEEPEST_PLAN = 4_000

Event = Mapping[str, Any]


def read(path: str | PathLike[str]) -> Application:
    """Read an event log: a file, plain or zstd, or the directory of a rolling log.

    Logs of running and killed applications are read as far as they go. Memory is bounded by what
    is kept: a few numbers a task, the last plan of each query, and the decisions.

    Raises `ApportionError` where there is no log, or one in a format that is not known.
    """
    reader = _Reader()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        for line in lines(Path(path), reader.skipped):
            reader.add(line)
    finally:
        sys.setrecursionlimit(limit)
    reader.application.skipped = reader.skipped.messages()
    return reader.application


class _Reader:
    def __init__(self) -> None:
        self.application = Application()
        self.skipped = Skipped()
        self._stages: dict[tuple[int, int], Stage] = {}
        self._query_of_stage: dict[int, int] = {}
        self._cores: dict[str, int] = {}

    def add(self, line: bytes) -> None:
        name = _name(line)
        handler = self._HANDLERS.get(name)
        # Most lines are of events that do not matter here, or of no event: only those are parsed
        # that do, and those whose name does not come first.
        if handler is None and name:
            return
        try:
            event = json.loads(line)
            handler = handler or self._HANDLERS.get(event.get("Event"))
        except (ValueError, TypeError, AttributeError, RecursionError):
            if line.strip():
                self.skipped.add("a line that is no event, such as the last one of a log cut off")
            return
        if handler is None:
            return
        try:
            handler(self, event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = event.get("Event", "").rpartition(".")[2]
            self.skipped.add(f"an event {what} that is not as Spark writes it: {error!r}")

    def _application_start(self, event: Event) -> None:
        application = self.application
        application.id = str(event.get("App ID", ""))
        application.name = str(event["App Name"])
        application.started = int(event["Timestamp"])

    def _application_end(self, event: Event) -> None:
        self.application.ended = int(event["Timestamp"])

    def _log_start(self, event: Event) -> None:
        self.application.spark_version = str(event["Spark Version"])

    def _environment(self, event: Event) -> None:
        properties = event["Spark Properties"]
        pairs = properties.items() if isinstance(properties, dict) else properties
        self.application.conf = {str(key): str(value) for key, value in pairs}

    def _executor_added(self, event: Event) -> None:
        self._cores[str(event["Executor ID"])] = int(event["Executor Info"]["Total Cores"])
        self._slots_changed(event)

    def _executor_removed(self, event: Event) -> None:
        self._cores.pop(str(event["Executor ID"]), None)
        self._slots_changed(event)

    def _slots_changed(self, event: Event) -> None:
        self.application.slots.append((int(event["Timestamp"]), sum(self._cores.values())))

    def _query_start(self, event: Event) -> None:
        query = Query(
            id=int(event["executionId"]),
            description=str(event["description"]),
            submitted=int(event["time"]),
            plan=_plan(event["sparkPlanInfo"]),
        )
        self.application.queries[query.id] = query

    def _query_replanned(self, event: Event) -> None:
        if query := self.application.queries.get(int(event["executionId"])):
            query.plan = _plan(event["sparkPlanInfo"])

    def _query_end(self, event: Event) -> None:
        if query := self.application.queries.get(int(event["executionId"])):
            query.completed = int(event["time"])
            query.failure = event.get("errorMessage") or None

    def _job_start(self, event: Event) -> None:
        query = (event.get("Properties") or {}).get(_QUERY_ID)
        if query is not None:
            for stage in event["Stage IDs"]:
                self._query_of_stage[int(stage)] = int(query)

    def _stage_submitted(self, event: Event) -> None:
        self._stage(event["Stage Info"])

    def _stage_completed(self, event: Event) -> None:
        info = event["Stage Info"]
        stage = self._stage(info)
        stage.submitted = info.get("Submission Time")
        stage.completed = info.get("Completion Time")
        stage.failure = info.get("Failure Reason") or None
        stage.accumulators = {int(each["ID"]) for each in info.get("Accumulables", ())}

    def _stage(self, info: Event) -> Stage:
        key = (int(info["Stage ID"]), int(info["Stage Attempt ID"]))
        if key not in self._stages:
            query = self.application.queries.get(self._query_of_stage.get(key[0], -1))
            stage = Stage(
                id=key[0],
                attempt=key[1],
                name=str(info["Stage Name"]),
                parents=[int(parent) for parent in info.get("Parent IDs", ())],
                tasks_planned=int(info["Number of Tasks"]),
                query=query.id if query else None,
                submitted=info.get("Submission Time"),
            )
            self._stages[key] = stage
            self.application.stages.append(stage)
            if query:
                query.stages.append(stage)
        return self._stages[key]

    def _task_end(self, event: Event) -> None:
        stage = self._stages.get((int(event["Stage ID"]), int(event["Stage Attempt ID"])))
        if stage is None:
            return
        info, metrics = event["Task Info"], event.get("Task Metrics")
        if info["Failed"] or info["Killed"] or not metrics:
            stage.failed_tasks += 1
            return
        read = metrics["Shuffle Read Metrics"]
        row = [
            int(info["Launch Time"]),
            int(info["Finish Time"]),
            int(metrics["Executor Run Time"]),
            int(metrics["Input Metrics"]["Bytes Read"]),
            int(read["Remote Bytes Read"]) + int(read["Local Bytes Read"]),
            int(metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]),
        ]
        columns = (
            stage.launched,
            stage.finished,
            stage.run_millis,
            stage.input_bytes,
            stage.shuffle_read_bytes,
            stage.shuffle_written_bytes,
        )
        if any(not -(2**63) <= value < 2**63 for value in row):
            raise ValueError("a number is too large")
        for column, value in zip(columns, row, strict=True):
            column.append(value)

    def _decision(self, event: Event) -> None:
        record = event["decision"]
        sizes = [[int(size) for size in each] for each in record.get("subpartition_bytes", ())]
        logged = LoggedDecision(decision_from_json(record), sizes)
        query = self.application.queries.get(logged.decision.query or 0)
        if query is None:
            self.skipped.add("a decision about a query that is not in the log")
        else:
            query.decisions.append(logged)

    _HANDLERS: ClassVar[dict[str, Callable[[_Reader, Event], None]]] = {
        "SparkListenerLogStart": _log_start,
        "SparkListenerApplicationStart": _application_start,
        "SparkListenerApplicationEnd": _application_end,
        "SparkListenerEnvironmentUpdate": _environment,
        "SparkListenerExecutorAdded": _executor_added,
        "SparkListenerExecutorRemoved": _executor_removed,
        f"{_SQL}SparkListenerSQLExecutionStart": _query_start,
        f"{_SQL}SparkListenerSQLAdaptiveExecutionUpdate": _query_replanned,
        f"{_SQL}SparkListenerSQLExecutionEnd": _query_end,
        "SparkListenerJobStart": _job_start,
        "SparkListenerStageSubmitted": _stage_submitted,
        "SparkListenerStageCompleted": _stage_completed,
        "SparkListenerTaskEnd": _task_end,
        "io.apportion.report.DecisionEvent": _decision,
    }


def _name(line: bytes) -> str:
    """The name of an event, where it comes first, as Spark writes it; else nothing."""
    start = b'{"Event":"'
    if not line.startswith(start):
        return ""
    end = line.find(b'"', len(start))
    return line[len(start) : end].decode(errors="replace") if end > 0 else ""


def _plan(info: Event, depth: int = 0) -> PlanNode:
    children = info.get("children", ()) if depth < _DEEPEST_PLAN else ()
    return PlanNode(
        name=str(info["nodeName"]),
        text=str(info["simpleString"]),
        metrics={str(each["name"]): int(each["accumulatorId"]) for each in info.get("metrics", ())},
        children=[_plan(child, depth + 1) for child in children],
    )
