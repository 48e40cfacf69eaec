"""Parser for event logs."""

from __future__ import annotations

import dataclasses
import datetime
import re
import threading
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from apportion._util.zones import SESSION_ZONE, time_zone
from apportion.decision import (
    InvalidRecordError,
    decision_from_json,
    outcome_from_row,
)
from apportion.errors import ApportionError, InputError
from apportion.logs.eventlog import plans, records, tasks
from apportion.logs.eventlog.input import deep_json, short_form, values
from apportion.logs.eventlog.input.deep_json import TooDeepError
from apportion.logs.eventlog.input.files import Skipped, lines
from apportion.logs.eventlog.large_logs import events
from apportion.logs.eventlog.large_logs.packing import PackedDict
from apportion.logs.eventlog.model import (
    Application,
    LoggedDecision,
    Query,
    Stage,
    Unread,
)
from apportion.logs.stream_record import StreamRecord

_SQL = b"org.apache.spark.sql.execution.ui."
_REPLANNED = _SQL + b"SparkListenerSQLAdaptiveExecutionUpdate"
_QUERY_ID = "spark.sql.execution.id"
# Maximum number of unpacked tasks, and maximum bytes of all other unpacked content, such as plans.
# Together they use at most about 1 GB as Python objects.
MAX_TASKS = 2_000_000
MAX_BYTES = 256 << 20
# Ended queries are packed if all unpacked queries have more bytes.
_MAX_UNPACKED = 32 << 20
# Events of a query can follow its end, such as the ends of killed tasks.
_LATE_LINES = 10_000
_LINES_BETWEEN_PACKING = 1000
# Approximate bytes of a dictionary entry, of a stage without tasks, and of a task.
_SMALL, _STAGE, _TASK = 100, 3000, 80
# Sums and differences of a few such numbers fit into an array of 64 bits.
_LARGEST_IN_TASK = 2**60
_MOST_CORES = 1_000_000
# `local[*]` has the cores of an unknown machine.
_LOCAL = re.compile(r"local(?:\[(\d{1,6})(?:,\d+)?\])?")

_DECISION = b"io.apportion.report.DecisionEvent"
_QUERY_TEXT = b"io.apportion.report.QueryEvent"

Event = Mapping[str, Any]
T = TypeVar("T")
Handler = Callable[["_Reader", Event], None]


def read(path: str | PathLike[str]) -> Application:
    """Read an event log: a file, the directory of a rolling log, or `-` for standard input.

    Logs can be plain, or compressed with gzip, zstd, lz4 or snappy. Logs of running and killed
    applications are read to their end. Memory is bounded. If a log has many queries, most of them
    are packed, and each use of `Application.queries` unpacks them again. The result has up to
    `MAX_TASKS` unpacked tasks, and up to `MAX_BYTES` bytes of other content.

    Raises `ApportionError` if there is no log, or if its format is not supported.
    """
    reader = _Reader()
    for line in lines(Path(path), reader.skipped):
        reader.add(line)
    reader.end()
    reader.application.skipped = reader.skipped.messages()
    return reader.application


def read_with(log: str, use: Callable[[Application], T]) -> T | Unread:
    """Return the result of `use` for the application of a log, or why the log cannot be read."""
    try:
        application = read(log)
        is_empty = not application.other_stages and not application.queries
        if application.started is None and is_empty:
            return Unread(log, "it has no event of Spark")
        return use(application)
    except ApportionError as error:
        return Unread(log, str(error))
    except MemoryError:
        return Unread(log, "it needs more memory than this machine has")


class _Reader:
    def __init__(self) -> None:
        self._queries = PackedDict[Query]()
        self.application = Application(queries=self._queries)
        self.skipped = Skipped()
        self._stages: dict[tuple[int, int], Stage] = {}
        self._query_of_stage: dict[int, int] = {}
        self._cores: dict[str, int] = {}
        # The end of the first task of each executor.
        self._first_ends: dict[str, int] = {}
        # Time zone of Java.
        self._zone = ""
        self._tasks = 0
        self._line = 0
        # Bytes of all content without unpacked tasks, and of unpacked queries with their tasks.
        self._bytes = 0
        self._unpacked = 0
        # Bytes of each query before it is packed, without its tasks.
        self._sizes: dict[int, int] = {}
        self._plan_bytes: dict[int, int] = {}
        # The newest event with a plan of each query, until the plan is read.
        self._replanned: dict[int, Event] = {}
        # The line at which each ended query was unpacked or ended, in this order.
        self._ended: dict[int, int] = {}
        self._lines = 0
        # Events before the start of their query: the bytes of the line, the name and the event.
        self._early: dict[int, list[tuple[int, bytes, Event]]] = {}
        # Stages before the start of their query.
        self._early_stages: dict[int, list[Stage]] = {}
        self._is_complete = False
        # Fast decoders recurse. Deep lines end them, before they fill the stack of this thread.
        self._has_large_stack = threading.current_thread() is threading.main_thread()

    def add(self, line: bytes) -> None:
        self._lines += 1
        if self._unpacked > _MAX_UNPACKED and not self._lines % _LINES_BETWEEN_PACKING:
            self._pack_ended()
        name = _name(line)
        handler = self._HANDLERS.get(name)
        # Most events are not needed. They are skipped without parsing if their name comes first.
        if handler is None and name:
            return
        try:
            event, name = _parse(name, line, self._has_large_stack)
            handler = self._HANDLERS.get(name)
        except TooDeepError:
            content = "plan" if name in _PLAN_EVENTS else "line"
            self.skipped.add(f"a {content} that is nested too deeply")
            return
        except (ValueError, TypeError, AttributeError):
            if line.strip():
                self.skipped.add("a line that is not an event, such as the end of a truncated log")
            return
        if handler is None:
            return
        self._line = len(line)
        self._handle(name, handler, event)

    def end(self) -> None:
        """Read the decisions for queries that the log does not have."""
        self._is_complete = True
        self._estimate_slots()
        for number in list(self._early):
            self._handle_early(number)
        for number in list(self._replanned):
            self._use_last_plan(number)

    def _estimate_slots(self) -> None:
        """Set the task slots from the tasks if the log lacks the executors, or its start."""
        application = self.application
        if application.slots and application.started is not None:
            return
        stages = [query.stages for query in self._queries.values()] + [application.other_stages]
        cpus = max(1, values.metric(application.conf.get("spark.task.cpus")))
        cores = cpus * max(map(tasks.peak_tasks, stages))
        master = _LOCAL.fullmatch(application.conf.get("spark.master", ""))
        if not application.slots and master:
            cores = int(master[1] or 1)
        if cores <= max((known for _, known in application.slots), default=0):
            return
        application.has_estimated_slots = master is None
        application.slots = [(application.started or 0, min(cores, _MOST_CORES))]

    def _handle_early(self, number: int) -> None:
        for line, name, event in self._early.pop(number, []):
            self._bytes -= line
            self._line = line
            self._handle(name, self._HANDLERS[name], event)

    def _is_early(self, name: bytes, event: Event, query: int) -> bool:
        """Keep an event for the start of its query, which Spark logs after the plan is made."""
        if self._is_complete or query in self._queries:
            return False
        if self._has_room("an event before its query", self._line):
            self._early.setdefault(query, []).append((self._line, name, event))
        return True

    def _handle(self, name: bytes, handler: Handler, event: Event) -> None:
        try:
            handler(self, event)
        # Converting a deeply nested value to text recurses.
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            OverflowError,
            RecursionError,
        ) as error:
            event_name = name.decode(errors="replace").rpartition(".")[2]
            self.skipped.add(f"a malformed event {event_name}: {_problem(error)}")

    def _application_start(self, event: Event) -> None:
        application = self.application
        application.id = values.text(event.get("App ID", ""))
        application.name = values.text(event["App Name"])
        application.started = values.millis(event["Timestamp"])

    def _application_end(self, event: Event) -> None:
        self.application.ended = values.millis(event["Timestamp"])

    def _log_start(self, event: Event) -> None:
        self.application.spark_version = values.text(event["Spark Version"])

    def _environment(self, event: Event) -> None:
        self.application.conf = values.texts(event["Spark Properties"])
        properties = event.get("System Properties") or {}
        self._zone = values.text(properties.get("user.timezone") or "")

    def _executor_added(self, event: Event) -> None:
        cores = values.optional_int(event["Executor Info"]["Total Cores"]) or 0
        if cores > _MOST_CORES:
            raise InvalidRecordError("a number is out of range")
        self._cores[str(event["Executor ID"])] = cores
        self.application.executor_cores = cores
        self._slots_changed(event)

    def _executor_removed(self, event: Event) -> None:
        self._cores.pop(str(event["Executor ID"]), None)
        self._first_ends.pop(str(event["Executor ID"]), None)
        self._slots_changed(event)

    def _slots_changed(self, event: Event) -> None:
        if not self._has_room("a change of the executors", _SMALL):
            return
        self.application.slots.append(
            (values.millis(event["Timestamp"]), sum(self._cores.values()))
        )

    def _query_start(self, event: Event) -> None:
        number = int(event["executionId"])
        self._query(number)
        if not self._has_room_for_plan(number):
            return
        query = Query(
            id=number,
            description=values.text(event["description"]),
            submitted=values.millis(event["time"]),
            plan=plans.plan(event["sparkPlanInfo"]),
            conf=values.texts(event.get("modifiedConfigs") or {}),
        )
        self._queries[query.id] = query
        self._adopt_early_stages(query)
        self._replanned.pop(query.id, None)
        self._ended.pop(query.id, None)
        self._handle_early(query.id)

    def _adopt_early_stages(self, query: Query) -> None:
        """Add the stages that ran before the start of their query, as Databricks logs some."""
        if stages := self._early_stages.pop(query.id, None):
            early = {id(stage) for stage in stages}
            others = self.application.other_stages
            others[:] = [stage for stage in others if id(stage) not in early]
            for stage in stages:
                stage.query = query.id
                self._unpacked += _STAGE + stage.tasks * _TASK
            self._sizes[query.id] = self._sizes.get(query.id, 0) + len(stages) * _STAGE
            query.stages += stages

    def _query_replanned(self, event: Event) -> None:
        query = self._query(int(event["executionId"]))
        if query and self._has_room_for_plan(query.id):
            self._replanned[query.id] = event

    def _use_last_plan(self, query: int) -> None:
        """Read the newest plan of a query. Spark logs a plan after each stage."""
        if event := self._replanned.pop(query, None):
            self._handle(_REPLANNED, _Reader._set_plan, event)

    def _set_plan(self, event: Event) -> None:
        self._queries[int(event["executionId"])].plan = plans.plan(event["sparkPlanInfo"])

    def _query_end(self, event: Event) -> None:
        if query := self._query(int(event["executionId"])):
            query.completed = values.millis(event["time"])
            query.failure = values.text(event.get("errorMessage") or "") or None
            self._ended.setdefault(query.id, self._lines)

    def _driver_metrics(self, event: Event) -> None:
        query = self._query(int(event["executionId"]))
        updates = event["accumUpdates"]
        size = _SMALL * len(updates)
        if query and self._has_room("metrics of the driver", size, query.id):
            query.driver_metrics.update((int(id), values.metric(value)) for id, value in updates)

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
        size = _SMALL * len(metrics)
        if not stage or not self._has_room("metrics of a stage", size, stage.query):
            return
        stage.submitted = values.time(info.get("Submission Time"))
        stage.completed = values.time(info.get("Completion Time"))
        stage.failure = values.text(info.get("Failure Reason") or "") or None
        stage.accumulators = {int(each["ID"]): values.metric(each.get("Value")) for each in metrics}

    def _stage(self, info: Event) -> Stage | None:
        key = (int(info["Stage ID"]), int(info["Stage Attempt ID"]))
        name, planned = values.text(info["Stage Name"]), int(info["Number of Tasks"])
        parents = [int(parent) for parent in info.get("Parent IDs", ())]
        profile = int(info.get("Resource Profile Id") or 0)
        submitted = values.time(info.get("Submission Time"))
        if stage := self._known_stage(key) or self._new_stage(key):
            stage.name, stage.tasks_planned, stage.parents = name, planned, parents
            stage.profile, stage.submitted = profile, submitted
        return stage

    def _new_stage(self, key: tuple[int, int]) -> Stage | None:
        number = self._query_of_stage.get(key[0])
        query = None if number is None else self._query(number)
        if not self._has_room("a stage", _STAGE, query.id if query else None):
            return None
        stage = Stage(*key, name="", parents=[], tasks_planned=0, query=query.id if query else None)
        self._stages[key] = stage
        if number is not None and query is None:
            self._early_stages.setdefault(number, []).append(stage)
        (query.stages if query else self.application.other_stages).append(stage)
        return stage

    def _known_stage(self, key: tuple[int, int]) -> Stage | None:
        if key not in self._stages and (number := self._query_of_stage.get(key[0])) is not None:
            # The stages of a packed query are known again when it is unpacked.
            self._query(number)
        return self._stages.get(key)

    def _task_end(self, event: Event) -> None:
        key = (int(event["Stage ID"]), int(event["Stage Attempt ID"]))
        stage = self._known_stage(key)
        # The start of a stage can be in a file that is missing.
        if stage is None and (stage := self._new_stage(key)):
            self.skipped.add("the start of a stage, whose tasks are counted")
        if stage is None:
            return
        info, metrics = event["Task Info"], event.get("Task Metrics")
        reason = event.get("Task End Reason") or {}
        # Spark 1 has no such field, and leaves out metrics of 0.
        if info.get("Killed") or reason.get("Reason") == "TaskKilled":
            stage.killed_millis += tasks.millis(info)
            return
        if info.get("Failed") or not metrics:
            stage.failed_tasks += 1
            stage.memory_failures += tasks.is_out_of_memory(reason)
            stage.wasted_millis += tasks.millis(info)
            tasks.count_reason(stage.failure_reasons, reason)
            return
        read = metrics.get("Shuffle Read Metrics") or {}
        row = [
            values.millis(info["Launch Time"]),
            values.millis(info["Finish Time"]),
            int(metrics["Executor Run Time"]),
            tasks.of_group(metrics, "Input Metrics", "Bytes Read"),
            int(read.get("Remote Bytes Read", 0)) + int(read.get("Local Bytes Read", 0)),
            tasks.of_group(metrics, "Shuffle Write Metrics", "Shuffle Bytes Written"),
            tasks.of_group(metrics, "Output Metrics", "Bytes Written"),
            int(metrics.get("Disk Bytes Spilled", 0)),
            int(metrics.get("JVM GC Time", 0)),
            int(read.get("Fetch Wait Time", 0)),
        ]
        columns = (
            stage.launched,
            stage.finished,
            stage.run_millis,
            stage.input_bytes,
            stage.shuffle_read_bytes,
            stage.shuffle_written_bytes,
            stage.output_bytes,
            stage.spilled_bytes,
            stage.gc_millis,
            stage.fetch_wait_millis,
        )
        if min(row) < -_LARGEST_IN_TASK or max(row) > _LARGEST_IN_TASK:
            raise InvalidRecordError("a number is too large")
        if self._tasks == MAX_TASKS:
            self.skipped.add(f"a task above the limit of {MAX_TASKS:,} tasks")
            return
        executor = str(info.get("Executor ID"))
        # The start of an executor can be in a file that is missing.
        if executor in self._cores and row[0] < self._first_ends.setdefault(executor, row[1]):
            stage.on_new_executors.append(stage.tasks)
        self._tasks += 1
        if stage.query is not None:
            self._unpacked += _TASK
        for column, value in zip(columns, row, strict=True):
            column.append(value)
        peak = values.optional_int(metrics.get("Peak Execution Memory")) or 0
        stage.peak_memory = max(stage.peak_memory, peak)

    def _decision(self, event: Event) -> None:
        record = event["decision"]
        early = values.optional_int(record["query"])
        if early is not None and self._is_early(_DECISION, event, early):
            return
        sizes = [list(map(int, shuffle)) for shuffle in record.get("subpartition_bytes", ())]
        if any(not 0 <= size < values.LARGEST for shuffle in sizes for size in shuffle):
            raise InvalidRecordError("bytes of a shuffle partition are out of range")
        if len({len(shuffle) for shuffle in sizes}) > 1:
            raise InvalidRecordError("the shuffles have different numbers of partitions")
        width = int(record.get("subpartition_bytes_width") or 1)
        number = int(record["subpartitions"])
        sizes = [short_form.spread(shuffle, width, number) for shuffle in sizes]
        if text := record.get("ranges_text"):
            ranges = [{"start": start, "end": end} for start, end in short_form.ranges(text)]
            record = {**record, "ranges": ranges}
        decoded = sum(map(len, sizes)) + len(record["ranges"]) if width > 1 or text else 0
        id = values.optional_int(record["query"])
        query = None if id is None else self._query(id)
        size = self._line + decoded * _SMALL
        if not self._has_room("a decision", size, id if query else None):
            return
        logged = LoggedDecision(
            records.printable(decision_from_json(record, self._session_zone(query))),
            records.shuffles(record, sizes),
            width,
            [int(place) for place in record.get("operators", ())],
            values.texts(record.get("source_kinds") or {}),
            records.policy(record.get("policy")),
            values.optional_int(record.get("scan_metric")),
        )
        if query is None:
            place = "outside a query" if id is None else "for a query that is not in the log"
            self.skipped.add(f"a decision {place}")
        else:
            query.decisions.append(logged)

    def _session_zone(self, query: Query | None) -> datetime.tzinfo:
        """Return the zone of the clock in decisions. Java's zone is the default of a session."""
        confs = [query.conf if query else {}, self.application.conf]
        names = [conf.get(SESSION_ZONE) for conf in confs]
        return time_zone(next(filter(None, names), self._zone or "UTC"))

    def _query_text(self, event: Event) -> None:
        record = event["query"]
        if self._is_early(_QUERY_TEXT, event, int(record["query"])):
            return
        query = self._query(int(record["query"]))
        if query and self._has_room("the text of a query", self._line, query.id):
            query.sql = values.text(record["sql"]) if record.get("sql") else None
            fingerprint = record.get("fingerprint")
            query.fingerprint = values.text(fingerprint) if fingerprint else None
            operators = enumerate(record.get("operators", ()))
            query.operators = [plans.operator(operator, place) for place, operator in operators]

    def _outcome(self, event: Event) -> None:
        record = event["outcome"]
        query = self._query(int(record["query"]))
        for logged in query.decisions if query else ():
            if logged.decision.group == int(record["group"]):
                logged.decision = dataclasses.replace(
                    logged.decision, outcome=outcome_from_row(record)
                )

    def _stream(self, event: Event) -> None:
        if self._has_room("a record of a stream", self._line):
            record = StreamRecord.from_json(event["stream"])
            self.application.streams.setdefault(record.query_id, []).append(record)

    def _has_room(self, content: str, size: int, query: int | None = None) -> bool:
        """Reserve memory for content of `size` bytes, or record that it is left out.

        `query` is the number of the query that the content belongs to.
        """
        if self._bytes + size > MAX_BYTES:
            self.skipped.add(f"{content} above the limit of {MAX_BYTES >> 20} MiB")
            return False
        self._bytes += size
        if query is not None:
            self._sizes[query] = self._sizes.get(query, 0) + size
            self._unpacked += size
        return True

    def _has_room_for_plan(self, query: int) -> bool:
        """Reserve memory for the plan in this line, which replaces the query's earlier plan."""
        growth = self._line - self._plan_bytes.get(query, 0)
        if not self._has_room("the plan of a query", growth, query):
            return False
        self._plan_bytes[query] = self._line
        return True

    def _query(self, number: int) -> Query | None:
        """Return a query for changes; None if the log does not have it."""
        if self._queries.is_packed(number):
            query = self._queries.open(number)
            self._count(query, 1)
            self._stages.update({(stage.id, stage.attempt): stage for stage in query.stages})
            self._ended[number] = self._lines
        return self._queries.get(number)

    def _pack_ended(self) -> None:
        """Pack queries that ended some time ago, so that no event is likely to change them."""
        for number, line in list(self._ended.items()):
            if self._unpacked <= _MAX_UNPACKED // 2 or self._lines - line < _LATE_LINES:
                break
            del self._ended[number]
            self._use_last_plan(number)
            query = self._queries[number]
            for stage in query.stages:
                self._stages.pop((stage.id, stage.attempt), None)
            self._count(query, -1)
            self._queries.pack(number)

    def _count(self, query: Query, sign: int) -> None:
        """Add an unpacked query to the used memory, or subtract it."""
        tasks, size = sum(stage.tasks for stage in query.stages), self._sizes.get(query.id, 0)
        self._tasks += sign * tasks
        self._bytes += sign * size
        self._unpacked += sign * (size + tasks * _TASK)

    _HANDLERS: ClassVar[dict[bytes, Handler]] = {
        b"SparkListenerLogStart": _log_start,
        b"SparkListenerApplicationStart": _application_start,
        b"SparkListenerApplicationEnd": _application_end,
        b"SparkListenerEnvironmentUpdate": _environment,
        b"SparkListenerExecutorAdded": _executor_added,
        b"SparkListenerExecutorRemoved": _executor_removed,
        _SQL + b"SparkListenerSQLExecutionStart": _query_start,
        _REPLANNED: _query_replanned,
        _SQL + b"SparkListenerSQLExecutionEnd": _query_end,
        _SQL + b"SparkListenerDriverAccumUpdates": _driver_metrics,
        b"SparkListenerJobStart": _job_start,
        b"SparkListenerStageSubmitted": _stage_submitted,
        b"SparkListenerStageCompleted": _stage_completed,
        b"SparkListenerTaskEnd": _task_end,
        _DECISION: _decision,
        b"io.apportion.outcomes.OutcomeEvent": _outcome,
        _QUERY_TEXT: _query_text,
        b"io.apportion.streams.StreamEvent": _stream,
    }


def _name(line: bytes) -> bytes:
    """Return the name of an event if it comes first, as Spark writes it, or an empty text."""
    start = b'{"Event":"'
    if not line.startswith(start):
        return b""
    end = line.find(b'"', len(start))
    return line[len(start) : end] if end > 0 else b""


def _parse(name: bytes, line: bytes, has_large_stack: bool) -> tuple[Event, bytes]:
    """Return an event, and its name. `name` is empty if the name does not come first."""
    may_recurse = name and (has_large_stack or deep_json.is_shallow(line))
    event = (events.decode(name, line) if may_recurse else None) or deep_json.loads(line)
    return event, name or str(event.get("Event")).encode(errors="replace")


_PLAN_EVENTS = (
    _SQL + b"SparkListenerSQLExecutionStart",
    _REPLANNED,
)


def _problem(error: Exception) -> str:
    """Return what is wrong with an event, without values of the log, which can be huge."""
    if isinstance(error, InvalidRecordError | InputError):
        return str(error)
    # The names of the fields come from this program, not from the log.
    if isinstance(error, KeyError):
        return f"the field {error.args[0]} is missing"
    return "a value has another type or format"
