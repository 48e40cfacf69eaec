"""Reads event logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from apportion.decision import decision_from_json
from apportion.eventlog import short_form
from apportion.eventlog.files import Skipped, lines
from apportion.eventlog.model import Application, LoggedDecision, Operator, PlanNode, Query, Stage

_SQL = "org.apache.spark.sql.execution.ui."
_QUERY_ID = "spark.sql.execution.id"
# The tasks that are kept, and the bytes of what else is: text of plans and decisions, for example.
# Together they take up some hundred MB, or about 1 GB as Python's objects at the worst.
MOST_TASKS = 2_000_000
MOST_KEPT = 256 << 20
# About what an entry of a dictionary and a stage without tasks take up.
_SMALL, _STAGE = 100, 3000
_LARGEST = 2**63
# Names may hold what a terminal takes for commands.
_CONTROL = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)], "\ufffd")

# Plans are nested JSON, and those of hundreds of joins are deeper than Python allows by default.
_RECURSION_LIMIT = 20_000
_DEEPEST_PLAN = 4_000

Event = Mapping[str, Any]


def read(path: str | PathLike[str]) -> Application:
    """Read an event log: a file, plain or zstd, or the directory of a rolling log.

    Logs of running and killed applications are read as far as they go. Memory is bounded: kept
    are a few numbers a task, for the first `MOST_TASKS` of them, and stages, decisions and the
    last plan of each query as far as `MOST_KEPT` bytes hold them.

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
        self._tasks = 0
        self._line = 0
        self._kept = 0
        self._kept_of_query: dict[int, int] = {}

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
        self._line = len(line)
        try:
            handler(self, event)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = event.get("Event", "").rpartition(".")[2]
            self.skipped.add(f"an event {what} that is not as Spark writes it: {error!r}")

    def _application_start(self, event: Event) -> None:
        application = self.application
        application.id = _text(event.get("App ID", ""))
        application.name = _text(event["App Name"])
        application.started = int(event["Timestamp"])

    def _application_end(self, event: Event) -> None:
        self.application.ended = int(event["Timestamp"])

    def _log_start(self, event: Event) -> None:
        self.application.spark_version = _text(event["Spark Version"])

    def _environment(self, event: Event) -> None:
        self.application.conf = _conf(event["Spark Properties"])

    def _executor_added(self, event: Event) -> None:
        cores = int(event["Executor Info"]["Total Cores"])
        self._cores[str(event["Executor ID"])] = cores
        self.application.executor_cores = cores
        self._slots_changed(event)

    def _executor_removed(self, event: Event) -> None:
        self._cores.pop(str(event["Executor ID"]), None)
        self._slots_changed(event)

    def _slots_changed(self, event: Event) -> None:
        if not self._has_room("a change of the executors", _SMALL):
            return
        self.application.slots.append((int(event["Timestamp"]), sum(self._cores.values())))

    def _query_start(self, event: Event) -> None:
        number = int(event["executionId"])
        if not self._has_room_for_plan(number):
            return
        query = Query(
            id=number,
            description=_text(event["description"]),
            submitted=int(event["time"]),
            plan=_plan(event["sparkPlanInfo"]),
            conf=_conf(event.get("modifiedConfigs") or {}),
        )
        self.application.queries[query.id] = query

    def _query_replanned(self, event: Event) -> None:
        query = self.application.queries.get(int(event["executionId"]))
        if query and self._has_room_for_plan(query.id):
            query.plan = _plan(event["sparkPlanInfo"])

    def _query_end(self, event: Event) -> None:
        if query := self.application.queries.get(int(event["executionId"])):
            query.completed = int(event["time"])
            query.failure = _text(event.get("errorMessage") or "") or None

    def _driver_metrics(self, event: Event) -> None:
        query = self.application.queries.get(int(event["executionId"]))
        updates = event["accumUpdates"]
        if query and self._has_room("metrics of the driver", _SMALL * len(updates)):
            query.driver_metrics.update((int(id), int(value)) for id, value in updates)

    def _job_start(self, event: Event) -> None:
        query = (event.get("Properties") or {}).get(_QUERY_ID)
        stages = event["Stage IDs"]
        if query is not None and self._has_room("a job", _SMALL * len(stages)):
            self._query_of_stage.update((int(stage), int(query)) for stage in stages)

    def _stage_submitted(self, event: Event) -> None:
        self._stage(event["Stage Info"])

    def _stage_completed(self, event: Event) -> None:
        info = event["Stage Info"]
        stage = self._stage(info)
        metrics = info.get("Accumulables", ())
        if not stage or not self._has_room("metrics of a stage", _SMALL * len(metrics)):
            return
        stage.submitted = _time(info.get("Submission Time"))
        stage.completed = _time(info.get("Completion Time"))
        stage.failure = _text(info.get("Failure Reason") or "") or None
        stage.accumulators = {int(each["ID"]) for each in metrics}

    def _stage(self, info: Event) -> Stage | None:
        key = (int(info["Stage ID"]), int(info["Stage Attempt ID"]))
        if key not in self._stages:
            if not self._has_room("a stage", _STAGE):
                return None
            query = self.application.queries.get(self._query_of_stage.get(key[0], -1))
            stage = Stage(
                id=key[0],
                attempt=key[1],
                name=_text(info["Stage Name"]),
                parents=[int(parent) for parent in info.get("Parent IDs", ())],
                tasks_planned=int(info["Number of Tasks"]),
                query=query.id if query else None,
                submitted=_time(info.get("Submission Time")),
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
        if any(not -_LARGEST <= value < _LARGEST for value in row):
            raise ValueError("a number is too large")
        if self._tasks == MOST_TASKS:
            self.skipped.add(f"a task above the {MOST_TASKS:,} that are kept")
            return
        self._tasks += 1
        for column, value in zip(columns, row, strict=True):
            column.append(value)

    def _decision(self, event: Event) -> None:
        record = event["decision"]
        sizes = [[int(size) for size in each] for each in record.get("subpartition_bytes", ())]
        if any(not 0 <= size < _LARGEST for each in sizes for size in each):
            raise ValueError("bytes of a subpartition are below 0 or too many")
        if len({len(each) for each in sizes}) > 1:
            raise ValueError("the shuffles of a decision have unequally many subpartitions")
        if not all(isinstance(stage, int) for stage in record.get("stages") or ()):
            raise TypeError("the stages of a decision are not numbers")
        width = int(record.get("subpartition_bytes_width") or 1)
        sizes = [short_form.spread(each, width, int(record["subpartitions"])) for each in sizes]
        if text := record.get("ranges_text"):
            ranges = [{"start": start, "end": end} for start, end in short_form.ranges(text)]
            record = {**record, "ranges": ranges}
        spread = sum(map(len, sizes)) + len(record["ranges"]) if width > 1 or text else 0
        if not self._has_room("a decision", self._line + spread * _SMALL):
            return
        operators = [int(place) for place in record.get("operators", ())]
        logged = LoggedDecision(decision_from_json(record), sizes, width, operators)
        number = logged.decision.query
        query = None if number is None else self.application.queries.get(number)
        if query is None:
            where = (
                "outside of a query" if number is None else "about a query that is not in the log"
            )
            self.skipped.add(f"a decision {where}")
        else:
            query.decisions.append(logged)

    def _query_made(self, event: Event) -> None:
        made = event["query"]
        query = self.application.queries.get(int(made["query"]))
        if query and self._has_room("the text of a query", self._line):
            query.sql = _text(made["sql"]) if made.get("sql") else None
            query.operators = [_operator(each) for each in made.get("operators", ())]

    def _has_room(self, what: str, size: int) -> bool:
        """Whether something may be kept that takes up so many bytes; else it is left out."""
        if self._kept + size > MOST_KEPT:
            self.skipped.add(f"{what} above the {MOST_KEPT >> 20} MiB of them that are kept")
            return False
        self._kept += size
        return True

    def _has_room_for_plan(self, query: int) -> bool:
        """The same for the query's plan in this line, in place of the one before."""
        growth = self._line - self._kept_of_query.get(query, 0)
        if not self._has_room("the plan of a query", growth):
            return False
        self._kept_of_query[query] = self._line
        return True

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
        f"{_SQL}SparkListenerDriverAccumUpdates": _driver_metrics,
        "SparkListenerJobStart": _job_start,
        "SparkListenerStageSubmitted": _stage_submitted,
        "SparkListenerStageCompleted": _stage_completed,
        "SparkListenerTaskEnd": _task_end,
        "io.apportion.report.DecisionEvent": _decision,
        "io.apportion.report.QueryEvent": _query_made,
    }


def _name(line: bytes) -> str:
    """The name of an event, where it comes first, as Spark writes it; else nothing."""
    start = b'{"Event":"'
    if not line.startswith(start):
        return ""
    end = line.find(b'"', len(start))
    return line[len(start) : end].decode(errors="replace") if end > 0 else ""


def _text(value: object) -> str:
    return str(value).translate(_CONTROL)


def _time(value: object) -> int | None:
    return None if value is None else int(str(value))


def _conf(pairs: Any) -> dict[str, str]:
    items = pairs.items() if isinstance(pairs, dict) else pairs
    return {str(key): str(value) for key, value in items}


def _operator(info: Event) -> Operator:
    place = (int(info["start"]), int(info["stop"]) + 1) if "start" in info else (None, None)
    return Operator(int(info["depth"]), _text(info["name"]), _text(info["text"]), *place)


def _plan(info: Event, depth: int = 0) -> PlanNode:
    children = info.get("children", ()) if depth < _DEEPEST_PLAN else ()
    return PlanNode(
        name=_text(info["nodeName"]).strip(),
        text=_text(info["simpleString"]),
        metrics={str(each["name"]): int(each["accumulatorId"]) for each in info.get("metrics", ())},
        children=[_plan(child, depth + 1) for child in children],
    )
