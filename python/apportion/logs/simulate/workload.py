"""Workload of a logged query: its stages with their inputs and the times of their tasks."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Mapping, Sequence

from apportion.decision import Decision
from apportion.logs.eventlog import Application, LoggedDecision, Query, Stage, plan_text
from apportion.logs.eventlog.fragments import Fragment, fragments
from apportion.logs.eventlog.model import LoggedShuffle
from apportion.logs.eventlog.placement import is_scan_of, placement
from apportion.logs.eventlog.tasks import attempts_by_id, joined, median
from apportion.logs.eventlog.work import attempts_of
from apportion.logs.simulate.arithmetic import writes
from apportion.logs.simulate.arithmetic.policy import Confs
from apportion.logs.simulate.plain_logs import undecided
from apportion.logs.simulate.plain_logs.held_rows import RowTotals
from apportion.logs.simulate.scheduler import MAX_SLOTS
from apportion.settings import ENABLED, PREFIX

_FILES = ("number of files read", "size of files read")
_LIMIT = "TakeOrderedAndProject"
# Metric of an exchange: nanoseconds in which tasks write files.
_WRITE_TIME = "shuffle write time"
# Metric of an exchange whose map tasks decide how finely they write.
_BLOCKS = "shuffle blocks written"
# Metrics of an exchange: bytes and number of the rows that tasks write.
_ROWS = ("data size", "shuffle records written")
_BROADCAST = ("data size", "number of output rows")
# Bytes of a column, and of the NULL bits of a row, in an `UnsafeRow`.
_WORD = 8


@dataclasses.dataclass(frozen=True)
class Shuffle:
    """A shuffle that a stage reads."""

    logged: LoggedShuffle
    writers: list[int]
    """Places of the stages that write it."""
    row_bytes: int
    """Bytes of the rows that were written, before they were compressed."""
    is_free: bool
    """Whether neither the query nor an operator sets the number of subpartitions."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Shuffles that are read with the same ranges, and the decision for them."""

    logged: LoggedDecision
    shuffles: list[Shuffle]
    is_assumed: bool = False
    """Whether Apportion did not decide it. Only the total bytes are known, and equal partitions are
    assumed."""

    @property
    def decision(self) -> Decision:
        return self.logged.decision

    @property
    def bytes(self) -> int:
        """Bytes of all shuffles."""
        return sum(sum(shuffle.logged.bytes) for shuffle in self.shuffles)


@dataclasses.dataclass(frozen=True)
class Scan:
    """Files that a stage scans."""

    files: int
    bytes: int
    logged: LoggedDecision | None
    """The decision; None if Spark chose the tasks."""

    @property
    def decision(self) -> Decision | None:
        return self.logged.decision if self.logged else None


@dataclasses.dataclass(frozen=True)
class ShuffleWrite:
    """Shuffle that a stage writes."""

    partitions: int
    is_free: bool
    """Whether Spark, and so Apportion, may choose the number of partitions."""
    seconds_per_file: float
    """Mean time of a task to open and write a file; 0 if the log does not show it."""
    expansion: float = 1.0
    """Ratio of the bytes of rows to the stored bytes."""


@dataclasses.dataclass(frozen=True)
class LoggedStage:
    """A stage as it ran. The arrays have an entry for each task, in the order of the launches."""

    id: int
    """Id of Spark's stage."""
    name: str
    """Name of its part of the plan; empty for a stage that belongs to no part."""
    starts: array[float]
    """Launch times, in seconds from the start of the query."""
    seconds: array[float]
    """Durations from launch to end."""
    shuffle_bytes: array[int]
    input_bytes: array[int]
    written_bytes: array[int]
    groups: list[Group]
    scans: list[Scan]
    after: list[int]
    """Places of the stages that it waits for."""
    delay: float
    """Seconds from the end of these stages until its tasks could start."""
    limits: bool = False
    """Whether it keeps the first rows of an order. If it has several tasks, a separate stage with
    one task combines their rows."""
    limits_for: int | None = None
    """If this is such a separate stage, the place of the stage before it."""
    writes: ShuffleWrite | None = None
    """The shuffle that it writes; None without one, or if the log does not have its time."""

    @property
    def reads_shuffle(self) -> bool:
        """Whether the tasks read bytes of a shuffle."""
        return any(self.shuffle_bytes)

    @property
    def decided_tasks(self) -> list[int]:
        """Number of tasks of each group, then of each scan."""
        groups = [group.decision.tasks for group in self.groups]
        return [*groups, *(self.scan_tasks(scan) for scan in self.scans)]

    def scan_tasks(self, scan: Scan) -> int:
        """Return the number of tasks of a scan: the decided number, or a share of the others."""
        if scan.decision:
            return max(1, scan.decision.tasks)
        decided = sum(group.decision.tasks for group in self.groups)
        decided += sum(other.decision.tasks for other in self.scans if other.decision)
        undecided = sum(other.decision is None for other in self.scans)
        return max(1, (len(self.seconds) - decided) // undecided)


@dataclasses.dataclass(frozen=True)
class Workload:
    """A logged query with its stages and slots."""

    query: int
    description: str
    confs: dict[str, str]
    stages: list[LoggedStage]
    """The stages, each after the stages that it waits for."""
    seconds: float
    """Duration of the query."""
    tail: float
    """Seconds from the end of the last task to the end of the query: work of the driver."""
    slots: int
    """Task slots when the query started. The simulation keeps this number."""
    slots_per_executor: int
    most_slots: int = 0
    """Most task slots while the query ran."""
    profiles: int = 1
    """Number of resource profiles of the stages."""
    ran_plain: bool = False
    """Whether the log has no decision of Apportion for the query."""
    has_failed: bool = False
    """Whether the query ended with an error, so that some of its tasks did not run."""

    @property
    def was_decided(self) -> bool:
        """Whether Apportion decided the tasks for any shuffle."""
        return any(not group.is_assumed for group in self.groups)

    def changed_confs(self, changes: Mapping[str, str]) -> dict[str, str]:
        """Return the confs with changes.

        If the query ran without Apportion, a change of one of its settings enables it.
        """
        confs = {**self.confs, **changes}
        is_ours = any(key.startswith(PREFIX) for key in changes)
        if self.ran_plain and is_ours and ENABLED not in changes:
            confs[ENABLED] = "true"
        return confs

    @property
    def groups(self) -> list[Group]:
        """The groups of shuffles of all stages."""
        return [group for stage in self.stages for group in stage.groups]


def workload(application: Application, query: Query) -> Workload | None:
    """Return the workload of a query; None if the query has not ended or ran no task."""
    if query.submitted is None or query.completed is None:
        return None
    slots = _slots(application, query.submitted)
    confs = {**application.conf, **query.conf}
    stages = _Stages(query, Confs(confs), slots).logged()
    if not stages:
        return None
    ran_plain = not query.decisions
    if ran_plain:
        confs[ENABLED] = "false"
    start, end = query.submitted, query.completed
    changes = [cores for since, cores in application.slots if start < since <= end]
    last = max(max(stage.finished) for stage in query.stages if stage.finished)
    per_executor = application.executor_cores if application.executor_cores > 0 else slots
    return Workload(
        query=query.id,
        description=query.description,
        confs=confs,
        ran_plain=ran_plain,
        stages=stages,
        seconds=max(end - start, 1) / 1000,
        tail=max(end - last, 0) / 1000,
        slots=slots,
        slots_per_executor=min(per_executor, slots),
        most_slots=max([slots, *(_slots_of(application, cores) for cores in changes)]),
        profiles=len({stage.profile for stage in query.stages if stage.launched}),
        has_failed=query.failure is not None,
    )


def _slots(application: Application, time: int) -> int:
    """Return the task slots at a time. Without executors before it, return the maximum."""
    before = [cores for since, cores in application.slots if since <= time]
    known = before[-1:] or [cores for _, cores in application.slots]
    return _slots_of(application, max(known, default=1))


def _slots_of(application: Application, cores: int) -> int:
    cpus = Confs(application.conf).number("spark.task.cpus") or 1
    return min(max(1, cores // cpus), MAX_SLOTS)


class _Run:
    """All attempts of one of Spark's stages, with the tasks in the order of their launches."""

    def __init__(self, stage_id: int, attempts: Sequence[Stage]) -> None:
        self.id = stage_id
        launches = joined(attempts, "launched")
        order = sorted(range(len(launches)), key=launches.__getitem__)

        def ordered(column: str) -> array[int]:
            values = joined(attempts, column)
            return array("q", (max(values[task], 0) for task in order))

        self.launches = array("q", (launches[task] for task in order))
        ends = ordered("finished")
        self.seconds = array(
            "d",
            (max(end - start, 0) / 1000 for start, end in zip(self.launches, ends, strict=True)),
        )
        self.shuffle_bytes = ordered("shuffle_read_bytes")
        self.input_bytes = ordered("input_bytes")
        self.written = ordered("shuffle_written_bytes")
        self.metrics = {
            id: value for attempt in attempts for id, value in attempt.accumulators.items()
        }
        self.launched = self.launches[0]
        self.finished = max(ends)
        submitted = [attempt.submitted for attempt in attempts if attempt.submitted is not None]
        self.submitted = min([*submitted, self.launched])


class _Stages:
    """The stages of a query in order, each with its fragment of the plan."""

    def __init__(self, query: Query, confs: Confs, slots: int) -> None:
        self._start = query.submitted or 0
        self._query = query
        self._confs = confs
        self._default_parallelism = confs.default_parallelism(slots)
        launched = (stage for stage in query.stages if stage.launched)
        runs = [_Run(id, attempts) for id, attempts in attempts_by_id(launched).items()]
        self._runs = sorted(runs, key=lambda run: (run.launched, run.submitted, run.id))
        self._fragments = fragments(query.plan) if query.plan else []
        # The fragment that each stage ran, by the id of the stage.
        self._owners: dict[int, Fragment] = {}
        for fragment, own in zip(
            self._fragments, attempts_of(self._fragments, query.stages), strict=True
        ):
            for stage in own:
                self._owners.setdefault(stage.id, fragment)
        placed = placement(query, self._fragments).placed
        self._placed = {
            id(fragment): placed.get(number, []) for number, fragment in enumerate(self._fragments)
        }
        self._scans = {id(fragment): self._scans_of(fragment) for fragment in self._fragments}
        self._can_assume = not query.decisions and undecided.is_adaptive(query.plan)
        self._latency = median([run.launched - run.submitted for run in self._runs])

    def logged(self) -> list[LoggedStage]:
        """Return the stages, each after the stages that it waits for."""
        return [self._stage(place, run) for place, run in enumerate(self._runs)]

    def _places_of(self, fragment: Fragment) -> list[int]:
        """Return the places of the stages that ran a fragment."""
        return [
            place for place, run in enumerate(self._runs) if self._owners.get(run.id) is fragment
        ]

    def _ends_of(self, fragment: Fragment) -> list[int]:
        """Return the places of the stages that ran a fragment, or its inputs if none ran it."""
        places: list[int] = []
        waiting, seen = [fragment], {id(fragment)}
        while waiting:
            current = waiting.pop()
            current_places = self._places_of(current)
            places.extend(current_places)
            for read in () if current_places else current.inputs:
                if id(read) not in seen:
                    seen.add(id(read))
                    waiting.append(read)
        return places

    def _stage(self, place: int, run: _Run) -> LoggedStage:
        owner = self._owners.get(run.id)
        places = self._places_of(owner) if owner else []
        if owner:
            inputs = [end for fragment in owner.inputs for end in self._ends_of(fragment)]
            before = {*places, *inputs}
        else:
            before = set(range(place))
        # The stage did not wait for stages that ended later, such as a shuffle for another reader.
        after = sorted(p for p in before if p < place and self._runs[p].finished <= run.launched)
        since = max((self._runs[p].finished for p in after), default=self._start)
        # A longer latency is a wait for slots, which the scheduler simulates.
        latency = min(run.launched - run.submitted, self._latency)
        delay = max(run.submitted - since, 0) + latency
        operators = owner.operators() if owner else ()
        limits = any(plan_text.kind(node.name) == _LIMIT for node in operators)
        is_last = limits and place != places[0] and len(run.launches) == 1
        return LoggedStage(
            id=run.id,
            name=owner.name if owner else "",
            starts=array("d", ((launched - self._start) / 1000 for launched in run.launches)),
            seconds=run.seconds,
            shuffle_bytes=run.shuffle_bytes,
            input_bytes=run.input_bytes,
            written_bytes=run.written,
            groups=self._groups(owner, run) if owner and not is_last else [],
            scans=self._scans.get(id(owner), []) if owner and not is_last else [],
            after=after,
            delay=max(delay, 0) / 1000,
            limits=limits and len(places) == 1,
            limits_for=places[0] if is_last else None,
            writes=self._write(owner, run) if owner else None,
        )

    def _groups(self, owner: Fragment, run: _Run) -> list[Group]:
        if self._can_assume:
            facts = undecided.StageFacts(
                task_bytes=run.shuffle_bytes,
                written=self._written,
                broadcast=sum(
                    self._broadcast_bytes(read) for read in owner.inputs if read.kind == "broadcast"
                ),
                scans=len(self._scans[id(owner)]),
                confs=self._confs,
                default_parallelism=self._default_parallelism,
            )
            return [
                Group(logged, self._shuffles(logged, reads), is_assumed=True)
                for logged, reads in undecided.assumed(owner, facts)
            ]
        return [
            Group(logged, self._shuffles(logged, _reads(owner, logged)))
            for logged in self._placed[id(owner)]
            if logged.decision.stages and _is_sound(logged)
        ]

    def _written(self, fragment: Fragment) -> RowTotals:
        """Return the rows that a part of the plan wrote to its shuffle."""
        runs = [self._runs[place] for place in self._ends_of(fragment)[-1:]]
        metrics = fragment.root.metrics
        expanded, rows = (
            sum(max(run.metrics.get(metrics.get(name, -1), 0), 0) for run in runs) for name in _ROWS
        )
        return RowTotals(sum(sum(run.written) for run in runs), expanded, rows)

    def _broadcast_bytes(self, broadcast: Fragment) -> int:
        """Return the bytes of the rows of a broadcast table.

        Its size in memory has large empty arrays, so a small table is measured by its rows.
        """
        size, rows = (self._query.driver_metric(broadcast.root, name) for name in _BROADCAST)
        columns = max((plan_text.width(node.text) for node in broadcast.root.children), default=1)
        return min(size, rows * _WORD * (1 + columns)) if rows else size

    def _shuffles(self, logged: LoggedDecision, reads: Sequence[Fragment]) -> list[Shuffle]:
        is_observed = logged.decision.layout == "observed"
        return [
            Shuffle(
                shuffle,
                # The last stage, because a global sort runs a stage that samples rows first.
                writers=self._ends_of(read)[-1:],
                row_bytes=self._written(read).expanded,
                # With mode=observe, Apportion does not look for numbers that the query sets.
                is_free=shuffle.partitions_set_by is not None
                or (is_observed and undecided.free_partitions(read.root.text) > 0),
            )
            for shuffle, read in zip(logged.shuffles, reads, strict=True)
        ]

    def _write(self, owner: Fragment, run: _Run) -> ShuffleWrite | None:
        """Return the shuffle that a stage writes; None without one, or without its time."""
        metrics = owner.root.metrics
        nanos = run.metrics.get(metrics.get(_WRITE_TIME, -1))
        found = plan_text.partitioning(owner.root.text)
        if nanos is None or found is None:
            return None
        partitions, tasks = max(found.number, 1), len(run.seconds)
        size, rows = (max(run.metrics.get(metrics.get(name, -1), 0), 0) for name in _ROWS)
        stored = sum(run.written)
        files = writes.files(partitions, self._confs.number(writes.BYPASS) or 1)
        if _BLOCKS in metrics:
            seconds_per_file = writes.SECONDS_PER_FILE
        elif files == 1:
            seconds_per_file = 0.0
        else:
            seconds = writes.full_seconds(
                max(nanos, 0) / 1e9 / tasks, partitions, rows / tasks, stored / tasks
            )
            seconds_per_file = min(seconds, sum(run.seconds) / tasks) / files
        is_free = undecided.free_partitions(owner.root.text) > 0
        expansion = size / stored if stored else 1.0
        return ShuffleWrite(partitions, is_free, seconds_per_file, max(expansion, 1.0))

    def _scans_of(self, fragment: Fragment) -> list[Scan]:
        """Return the scans of files in a fragment, each with its decision."""
        decided = [
            logged
            for logged in self._placed[id(fragment)]
            if _is_scan(logged.decision) and logged.decision.data_volume_per_task is not None
        ]
        scans: list[Scan] = []
        for node in fragment.operators():
            files, size = (self._query.driver_metric(node, name) for name in _FILES)
            if files > 0 and size > 0:
                match = next((logged for logged in decided if is_scan_of(logged, node)), None)
                if match:
                    decided.remove(match)
                scans.append(Scan(files, size, match))
        return scans


def _reads(owner: Fragment, logged: LoggedDecision) -> list[Fragment]:
    """Return the inputs of a part of the plan that wrote the shuffles of a decision."""
    by_number = {fragment.query_stage: fragment for fragment in owner.inputs}
    return [
        owner.input_of(shuffle.exchange_metric) or by_number[number]
        for number, shuffle in zip(logged.decision.stages, logged.shuffles, strict=True)
    ]


def _is_sound(logged: LoggedDecision) -> bool:
    """Return whether a decision has valid values for a replay. Logs are untrusted input."""
    decision, sizes = logged.decision, logged.subpartition_bytes
    counts = (decision.tasks, decision.parallelism, decision.subpartitions)
    volume = decision.data_volume_per_task
    return (
        all(0 < count < 2**31 for count in counts)
        and (volume is None or volume > 0)
        and len(decision.stages) == len(sizes)
        and all(len(shuffle) == decision.subpartitions for shuffle in sizes)
    )


def _is_scan(decision: Decision) -> bool:
    return decision.layout == "files" or (decision.layout == "observed" and not decision.stages)
