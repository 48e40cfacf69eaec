"""What a query of an event log ran: its stages, what each of them read, and their tasks' times."""

from __future__ import annotations

import dataclasses
import re
from array import array
from collections.abc import Iterable, Sequence

from apportion.decision import Decision
from apportion.eventlog import Application, LoggedDecision, PlanNode, Query, Stage
from apportion.eventlog.fragments import Fragment, fragments
from apportion.explanation.views.view import ran
from apportion.simulate.arithmetic.policy import Confs
from apportion.simulate.scheduler import MOST_SLOTS

_RANGE_PARTITIONING = re.compile(r"\brangepartitioning\(", re.IGNORECASE)
# Operators that do not care which rows a task gets, so that a join below may be split.
_ANY_PARTITIONING = re.compile(
    r"\b(Project|Filter|Union|Sort|Exchange|BroadcastExchange|ColumnarToRow|Generate|LocalLimit|"
    r"CollectLimit|WholeStageCodegen|InputAdapter|AdaptiveSparkPlan|OverwriteByExpression|"
    r"AppendData|Execute \w+|TakeOrderedAndProject|BroadcastHashJoin|BroadcastNestedLoopJoin)\b"
)
_PARTIAL = re.compile(r"functions=\[partial_")
_FILES = ("number of files read", "size of files read")
# What tasks count that read a shuffle, among the metrics of the exchange that wrote it.
_READ = ("local bytes read", "remote bytes read")
_LIMIT = "TakeOrderedAndProject"
_JOINS = {"SortMergeJoin", "ShuffledHashJoin"}
_READS = {"ShuffleQueryStage", "AQEShuffleRead"}
_LEFT_ONLY = {"LeftOuter", "LeftSemi", "LeftAnti"}


@dataclasses.dataclass(frozen=True)
class Shuffle:
    """A shuffle that a stage reads."""

    bytes: list[int]
    """Of each subpartition."""
    writers: list[int]
    """Places of the stages that write it."""
    contiguous: bool
    """Whether its subpartitions are ranges of keys, as for a global sort."""
    splittable: bool
    """Whether tasks may read parts of its subpartitions."""
    subpartitions_per_sum: int = 1
    """More than 1 if the log has averages of so many neighbours only."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Shuffles that are read with the same ranges, and what was decided for them."""

    decision: Decision
    shuffles: list[Shuffle]

    @property
    def bytes(self) -> int:
        """Of all its shuffles."""
        return sum(sum(shuffle.bytes) for shuffle in self.shuffles)


@dataclasses.dataclass(frozen=True)
class Scan:
    """Files that a stage scans."""

    files: int
    bytes: int
    decision: Decision | None
    """None if Spark decided."""


@dataclasses.dataclass(frozen=True)
class LoggedStage:
    """A stage as it ran. The arrays have an entry for each task, in the order of their launch."""

    id: int
    name: str
    starts: array[float]
    """Seconds from the start of the query to the launch."""
    seconds: array[float]
    """From launch to end."""
    shuffle_bytes: array[int]
    input_bytes: array[int]
    written_bytes: array[int]
    groups: list[Group]
    scans: list[Scan]
    after: list[int]
    """Places of the stages that it waits for."""
    delay: float
    """Seconds from then until its tasks could start."""
    limits: bool = False
    """Whether it keeps the first rows of an order. If it has several tasks, what they keep goes to
    one more task, in a stage of its own."""
    limits_for: int | None = None
    """The place of the stage that this one is that stage for."""

    @property
    def reads_shuffle(self) -> bool:
        """Whether its tasks read bytes of a shuffle."""
        return any(self.shuffle_bytes)

    @property
    def bytes_read(self) -> int:
        """What all tasks read."""
        return sum(self.shuffle_bytes) + sum(self.input_bytes)

    @property
    def decided_tasks(self) -> list[int]:
        """The tasks of each group, then of each scan."""
        groups = [group.decision.tasks for group in self.groups]
        return [*groups, *(self.scan_tasks(scan) for scan in self.scans)]

    def scan_tasks(self, scan: Scan) -> int:
        """Return the tasks of a scan: those that were decided, else a share of those that ran."""
        if scan.decision:
            return max(1, scan.decision.tasks)
        decided = sum(group.decision.tasks for group in self.groups)
        decided += sum(each.decision.tasks for each in self.scans if each.decision)
        undecided = sum(each.decision is None for each in self.scans)
        return max(1, (len(self.seconds) - decided) // undecided)


@dataclasses.dataclass(frozen=True)
class Workload:
    """A query as it ran."""

    query: int
    description: str
    confs: dict[str, str]
    stages: list[LoggedStage]
    """Each after those that it waits for."""
    seconds: float
    """From its start to its end."""
    tail: float
    """From the end of the last task to its own: the driver puts the result together."""
    slots: int
    slots_per_executor: int

    @property
    def was_decided(self) -> bool:
        """Whether Apportion decided how shuffles were read."""
        return any(stage.groups for stage in self.stages)

    @property
    def reads_shuffles(self) -> bool:
        """Whether any stage reads a shuffle."""
        return any(stage.reads_shuffle for stage in self.stages)


def workload(application: Application, query: Query) -> Workload | None:
    """Return what a query ran; None for one that has not ended or ran no task."""
    if query.submitted is None or query.completed is None:
        return None
    stages = _Stages(query).found
    if not stages:
        return None
    start, end = query.submitted, query.completed
    last = max(max(each.finished) for each in query.stages if each.finished)
    slots = _slots(application, query.submitted)
    per_executor = application.executor_cores if application.executor_cores > 0 else slots
    return Workload(
        query=query.id,
        description=query.description,
        confs={**application.conf, **query.conf},
        stages=stages,
        seconds=max(end - start, 1) / 1000,
        tail=max(end - last, 0) / 1000,
        slots=slots,
        slots_per_executor=min(per_executor, slots),
    )


def _slots(application: Application, time: int) -> int:
    before = [slots for since, slots in application.slots if since <= time]
    known = before[-1:] or [slots for _, slots in application.slots]
    cpus = Confs(application.conf).number("spark.task.cpus") or 1
    return min(max(1, max(known, default=1) // cpus), MOST_SLOTS)


class _Ran:
    """A stage of Spark's with all of its attempts; its tasks are in the order of their launch."""

    def __init__(self, id: int, attempts: Sequence[Stage]) -> None:
        self.id = id
        launches = _joined(each.launched for each in attempts)
        order = sorted(range(len(launches)), key=launches.__getitem__)

        def ordered(columns: Iterable[array[int]]) -> array[int]:
            column = _joined(columns)
            return array("q", (max(column[task], 0) for task in order))

        self.launches = array("q", (launches[task] for task in order))
        ends = ordered(each.finished for each in attempts)
        self.seconds = array(
            "d",
            (max(end - start, 0) / 1000 for start, end in zip(self.launches, ends, strict=True)),
        )
        self.shuffle_bytes = ordered(each.shuffle_read_bytes for each in attempts)
        self.input_bytes = ordered(each.input_bytes for each in attempts)
        self.written = ordered(each.shuffle_written_bytes for each in attempts)
        self.launched = self.launches[0]
        self.finished = max(ends)
        submitted = [each.submitted for each in attempts if each.submitted is not None]
        self.submitted = min([*submitted, self.launched])


def _joined(columns: Iterable[array[int]]) -> array[int]:
    found = array("q")
    for column in columns:
        found.extend(column)
    return found


class _Stages:
    """Puts the stages that ran in order, with what the plan says about each."""

    def __init__(self, query: Query) -> None:
        self._start = query.submitted or 0
        by_id: dict[int, list[Stage]] = {}
        for stage in query.stages:
            if stage.launched:
                by_id.setdefault(stage.id, []).append(stage)
        runs = [_Ran(id, attempts) for id, attempts in by_id.items()]
        self._runs = sorted(runs, key=lambda run: (run.launched, run.submitted, run.id))
        self._places = {run.id: place for place, run in enumerate(self._runs)}
        self._fragments = fragments(query.plan) if query.plan else []
        self._ran = [ran(each, query.stages) for each in self._fragments]
        self._owners: dict[int, Fragment] = {}
        self._find_owners()
        self._find_owners_by_reads(query.stages)
        self._scans = _deal_scans(self._fragments, query)
        self._decisions = self._deal_decisions(query)
        self._latency = _typical([run.launched - run.submitted for run in self._runs])
        self.found = [self._stage(place, run) for place, run in enumerate(self._runs)]

    def _find_owners(self) -> None:
        """Finds the fragment of the plan that each stage ran."""
        for fragment, own in zip(self._fragments, self._ran, strict=True):
            for id in own.stages if own else ():
                if id in self._places:
                    self._owners.setdefault(self._places[id], fragment)

    def _find_owners_by_reads(self, stages: Sequence[Stage]) -> None:
        """The same for stages without operators of their own, as one that broadcasts a shuffle."""
        for fragment, own in zip(self._fragments, self._ran, strict=True):
            if own:
                continue
            metrics = _read_metrics(fragment)
            for stage in stages:
                place = self._places.get(stage.id)
                if place is not None and metrics & stage.accumulators:
                    self._owners.setdefault(place, fragment)

    def _deal_decisions(self, query: Query) -> dict[int, list[LoggedDecision]]:
        """The decisions about shuffles, by the identity of the fragment that reads them.

        A decision names stages by number. Where that fits several fragments, it is about the one
        whose shuffles have these bytes.
        """
        found: dict[int, list[LoggedDecision]] = {}
        for logged in query.decisions:
            stages = logged.decision.stages
            if not stages or not _is_sound(logged):
                continue
            sizes = sum(map(sum, logged.subpartition_bytes))
            reading = [each for each in self._fragments if set(stages) <= _writers(each).keys()]
            if reading:
                nearest = min(reading, key=lambda each: abs(self._written(each, stages) - sizes))
                found.setdefault(id(nearest), []).append(logged)
        return found

    def _written(self, reader: Fragment, stages: Sequence[int]) -> int:
        writers = _writers(reader)
        places = {place for number in stages for place in self._ends_of(writers[number])}
        return sum(sum(self._runs[place].written) for place in places)

    def _own(self, fragment: Fragment) -> list[int]:
        """The places of the stages that ran a fragment."""
        return [place for place, owner in self._owners.items() if owner is fragment]

    def _ends_of(self, fragment: Fragment) -> list[int]:
        """The same; where nothing of it ran, those of the fragments that it reads."""
        found: list[int] = []
        waiting, seen = [fragment], {id(fragment)}
        while waiting:
            each = waiting.pop()
            own = self._own(each)
            found.extend(own)
            for read in () if own else each.inputs:
                if id(read) not in seen:
                    seen.add(id(read))
                    waiting.append(read)
        return found

    def _stage(self, place: int, run: _Ran) -> LoggedStage:
        owner = self._owners.get(place)
        if owner:
            read = [end for each in owner.inputs for end in self._ends_of(each)]
            before = {*self._own(owner), *read}
        else:
            before = set(range(place))
        # What ended later was not waited for, such as a shuffle that another stage reads as well.
        after = sorted(p for p in before if p < place and self._runs[p].finished <= run.launched)
        since = max((self._runs[p].finished for p in after), default=self._start)
        # Tasks that start late had to wait for slots; that is for the scheduler to find out.
        latency = min(run.launched - run.submitted, self._latency)
        delay = max(run.submitted - since, 0) + latency
        own = sorted(self._own(owner)) if owner else []
        limits = any(each.name == _LIMIT for each in owner.operators()) if owner else False
        is_last = limits and place != own[0] and len(run.launches) == 1
        return LoggedStage(
            id=run.id,
            name=owner.name if owner else f"Spark's stage {run.id}",
            starts=array("d", ((launched - self._start) / 1000 for launched in run.launches)),
            seconds=run.seconds,
            shuffle_bytes=run.shuffle_bytes,
            input_bytes=run.input_bytes,
            written_bytes=run.written,
            groups=self._groups(owner) if owner and not is_last else [],
            scans=self._scans.get(id(owner), []) if owner and not is_last else [],
            after=after,
            delay=max(delay, 0) / 1000,
            limits=limits and len(own) == 1,
            limits_for=own[0] if is_last else None,
        )

    def _groups(self, owner: Fragment) -> list[Group]:
        return [
            Group(each.decision, self._shuffles(owner, each))
            for each in self._decisions.get(id(owner), [])
        ]

    def _shuffles(self, owner: Fragment, logged: LoggedDecision) -> list[Shuffle]:
        splittable = _splittable(owner.root, logged.decision)
        numbers, writers = logged.decision.stages, _writers(owner)
        return [
            Shuffle(
                bytes=sizes,
                # The last one: a stage that samples rows for a sort runs before it writes them.
                writers=self._ends_of(writers[number])[-1:],
                contiguous=bool(_RANGE_PARTITIONING.search(writers[number].root.text)),
                splittable=side in splittable,
                subpartitions_per_sum=logged.subpartitions_per_sum,
            )
            for side, (number, sizes) in enumerate(
                zip(numbers, logged.subpartition_bytes, strict=True)
            )
        ]


def _is_sound(logged: LoggedDecision) -> bool:
    """Whether a decision has what a replay needs, as the extension writes it: logs may lie."""
    decision, sizes = logged.decision, logged.subpartition_bytes
    counts = (decision.tasks, decision.parallelism, decision.subpartitions)
    volume = decision.data_volume_per_task
    return (
        all(isinstance(count, int) and 0 < count < 2**31 for count in counts)
        and isinstance(decision.broadcast_bytes, int)
        and isinstance(decision.input_bytes, int)
        and (volume is None or (isinstance(volume, int) and volume > 0))
        and isinstance(decision.layout, str)
        and isinstance(decision.clamps, list)
        and isinstance(decision.sources, dict)
        and all(isinstance(each, str) for pair in decision.sources.items() for each in pair)
        and len(decision.stages) == len(sizes)
        and all(len(each) == decision.subpartitions for each in sizes)
    )


def _writers(reader: Fragment) -> dict[int, Fragment]:
    """The fragments that a fragment reads, by their number."""
    return {each.query_stage: each for each in reader.inputs if each.query_stage is not None}


def _read_metrics(fragment: Fragment) -> frozenset[int]:
    """The metrics that tasks update which read the shuffles of a fragment."""
    return frozenset(
        read.root.metrics[name]
        for read in fragment.inputs
        for name in _READ
        if name in read.root.metrics
    )


def _typical(values: Iterable[int]) -> int:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0


def _deal_scans(fragments: Sequence[Fragment], query: Query) -> dict[int, list[Scan]]:
    """The scans of files, by the identity of the fragment, each with what was decided for it.

    Decisions do not say which files they are about: the bytes tell, and the order in which stages
    are decided tells scans of equal files apart.
    """
    decided = [
        each.decision
        for each in query.decisions
        if _is_scan(each.decision) and _is_sound_scan(each.decision)
    ]
    decided.sort(key=lambda decision: decision.group)
    last = max((fragment.query_stage or 0 for fragment in fragments), default=0) + 1
    found: dict[int, list[Scan]] = {}
    for fragment in sorted(fragments, key=lambda each: each.query_stage or last):
        for node in fragment.operators():
            files, size = (
                query.driver_metrics.get(node.metrics.get(name, -1), 0) for name in _FILES
            )
            if files > 0 and size > 0:
                match = next((each for each in decided if _is_about(each, files, size)), None)
                if match:
                    decided.remove(match)
                found.setdefault(id(fragment), []).append(Scan(files, size, match))
    return found


def _is_scan(decision: Decision) -> bool:
    return decision.layout == "files" or (decision.layout == "observed" and not decision.stages)


def _is_sound_scan(decision: Decision) -> bool:
    numbers = (decision.group, decision.tasks, decision.parallelism, decision.input_bytes)
    return all(isinstance(number, int) and number >= 0 for number in numbers) and isinstance(
        decision.data_volume_per_task, int
    )


def _is_about(decision: Decision, files: int, size: int) -> bool:
    """Whether a decision is about so many files: each costs something to open, up to V."""
    opening = decision.input_bytes - size
    return 0 <= opening <= files * (decision.data_volume_per_task or 0) and opening % files == 0


def _splittable(root: PlanNode, decision: Decision) -> set[int]:
    """The sides of a join whose subpartitions tasks may read in parts, from the plan alone."""
    above: list[PlanNode] = []
    node = root
    while node.name not in _JOINS:
        if len(node.children) != 1 or (node is not root and not _allows_parts(node)):
            return set()
        above.append(node)
        node = node.children[0]
    if node.name != decision.operator or len(decision.stages) != 2:
        return set()
    if not all(_leads_to_shuffle(child) for child in node.children):
        return set()
    if re.search(r"\bInner\b", node.text):
        return {0, 1}
    if any(re.search(rf"\b{kind}\b", node.text) for kind in _LEFT_ONLY):
        return {0}
    return {1} if re.search(r"\bRightOuter\b", node.text) else set()


def _allows_parts(node: PlanNode) -> bool:
    return bool(_ANY_PARTITIONING.search(node.name) or _PARTIAL.search(node.text))


def _leads_to_shuffle(node: PlanNode) -> bool:
    while node.name in {"Sort", "AQEShuffleRead", "WholeStageCodegen", "InputAdapter"}:
        if len(node.children) != 1:
            return False
        node = node.children[0]
    return node.name in _READS
