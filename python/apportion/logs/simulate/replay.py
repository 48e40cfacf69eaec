"""Simulation of a logged query in a scenario."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence, Set
from itertools import product

from apportion.logs.simulate import scheduler
from apportion.logs.simulate.fit import SHORTEST, Model
from apportion.logs.simulate.layouts import Layouts
from apportion.logs.simulate.scenarios import Scenario
from apportion.logs.simulate.workload import LoggedStage, Workload

NO_DECISION = "the log has no decision for its shuffles"


@dataclasses.dataclass(frozen=True)
class StageOutcome:
    """Simulated or measured result of a stage."""

    name: str
    tasks: int
    task_seconds: float
    """Total time of the tasks."""
    largest_task_bytes: int
    """Shuffle bytes of the largest task."""
    is_as_logged: bool
    """Whether these are the logged tasks, with their logged times."""
    assumes_equal_partitions: bool = False
    """Whether only the total bytes of the shuffles are known. The largest task and the times are
    lower bounds."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Simulated or measured result of a query."""

    makespan: float
    """Seconds from the start of the query to its end."""
    tasks: int
    slot_seconds: float
    """Total time that tasks held slots."""
    largest_task_bytes: int
    """Shuffle bytes of the largest task."""
    slots: int
    reruns: int = 0
    """Number of tasks that ran again because their executor was lost."""
    stages: list[StageOutcome] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    """Differences between the scenario and the simulation."""
    read_confs: Set[str] = frozenset()
    """Spark's confs that the simulation read."""

    @property
    def assumes_equal_partitions(self) -> bool:
        """Whether any stage assumes equal partitions."""
        return any(stage.assumes_equal_partitions for stage in self.stages)


def measured(workload: Workload) -> Outcome:
    """Return the measured outcome of a query."""
    stages = [
        _Tasks(stage.name, stage.shuffle_bytes, stage.seconds, True).outcome
        for stage in workload.stages
    ]
    return Outcome(
        makespan=workload.seconds,
        tasks=sum(stage.tasks for stage in stages),
        slot_seconds=sum(stage.task_seconds for stage in stages),
        largest_task_bytes=max(stage.largest_task_bytes for stage in stages),
        slots=workload.slots,
        stages=stages,
    )


def replay(workload: Workload, model: Model, scenario: Scenario) -> Outcome:
    """Return the simulated outcome of a query in a scenario.

    Raises `ApportionError` if all executors are lost, or if there are too many tasks to simulate.
    """
    planner = _Planner(workload, model, scenario)
    slots = planner.layouts.slots
    per_executor = min(scenario.executor_slots or workload.slots_per_executor, slots)
    cluster = scheduler.Cluster(slots, per_executor, scenario.losses, model.handover, model.launch)
    stages = planner.stages()
    to_run = [
        scheduler.Stage(planned.seconds, logged.after, logged.delay if planned.seconds else 0.0)
        for planned, logged in zip(stages, workload.stages, strict=True)
    ]
    for place, limit in planner.limits():
        stages.append(limit)
        to_run.append(scheduler.Stage(limit.seconds, [place]))
    ran = scheduler.run(to_run, cluster)
    outcomes = [stage.outcome for stage in stages]
    return Outcome(
        makespan=ran.end + workload.tail,
        tasks=ran.tasks,
        slot_seconds=ran.slot_seconds,
        largest_task_bytes=max(stage.largest_task_bytes for stage in outcomes),
        slots=slots,
        reruns=ran.reruns,
        stages=outcomes,
        notes=planner.notes,
        read_confs=planner.layouts.read_confs,
    )


@dataclasses.dataclass(frozen=True)
class _Tasks:
    """The tasks of a stage: the shuffle bytes and the seconds of each."""

    name: str
    shuffle_bytes: Sequence[int]
    seconds: Sequence[float]
    is_as_logged: bool
    assumes_equal_partitions: bool = False

    @property
    def outcome(self) -> StageOutcome:
        return StageOutcome(
            name=self.name,
            tasks=len(self.seconds),
            task_seconds=sum(self.seconds),
            largest_task_bytes=max(self.shuffle_bytes, default=0),
            is_as_logged=self.is_as_logged,
            assumes_equal_partitions=self.assumes_equal_partitions,
        )


class _Planner:
    """Planner of the tasks of a query in a scenario, stage by stage."""

    def __init__(self, workload: Workload, model: Model, scenario: Scenario) -> None:
        self.layouts = Layouts(workload, scenario)
        self.notes = self.layouts.notes
        self._workload = workload
        self._model = model
        self._scale = scenario.scale
        self._planned: list[_Tasks] = []

    def stages(self) -> list[_Tasks]:
        """Return the tasks of each stage, in order."""
        for place, stage in enumerate(self._workload.stages):
            planned = self._stage(place, stage)
            self._planned.append(planned)
            self.layouts.check(sum(len(tasks.seconds) for tasks in self._planned))
            self.layouts.add_output(place, self._writes(stage, planned))
        # The readers of a shuffle decide the number of its partitions, so they come first.
        return [self._with_writes(place, planned) for place, planned in enumerate(self._planned)]

    def _with_writes(self, place: int, planned: _Tasks) -> _Tasks:
        """Return the tasks of a stage with the time to write the partitions of the scenario."""
        change = self.layouts.write_change(place)
        if not change:
            return planned
        seconds = [max(second + change, min(second, SHORTEST)) for second in planned.seconds]
        return dataclasses.replace(planned, seconds=seconds, is_as_logged=False)

    def limits(self) -> Iterator[tuple[int, _Tasks]]:
        """Yield additional stages for limits, with the place of the stage before each.

        If several tasks keep rows for a limit, one more task combines these rows. If several tasks
        ran without such a stage in the log, the driver combined their rows.
        """
        for place, (stage, planned) in enumerate(
            zip(self._workload.stages, self._planned, strict=True)
        ):
            if stage.limits and len(planned.seconds) > 1 == len(stage.seconds):
                yield place, _Tasks(stage.name, [0], [self._model.overhead], False)

    def _writes(self, stage: LoggedStage, planned: _Tasks) -> Sequence[int]:
        """Return the bytes that each task writes: logged, or equal shares for other tasks."""
        if planned.is_as_logged:
            return stage.written_bytes
        count = len(planned.seconds)
        return [int(sum(stage.written_bytes) * self._scale) // max(count, 1)] * count

    def _stage(self, place: int, stage: LoggedStage) -> _Tasks:
        if stage.limits_for is not None and len(self._planned[stage.limits_for].seconds) == 1:
            return _Tasks(stage.name, [], [], False)
        groups, scans = self.layouts.reads(stage)
        combination = _combination(stage)
        keeps_tasks = combination is None and stage.reads_shuffle and stage.limits_for is None
        if keeps_tasks and self.layouts.changes_more_than_slots:
            reason = (
                "its logged number of tasks differs from the decisions"
                if stage.groups
                else NO_DECISION
            )
            self.notes.append(f"stage {stage.id} keeps its tasks: {reason}")
        is_new = self._scale != 1 or not all(read.is_as_logged for read in (*groups, *scans))
        if combination == "product" and is_new:
            self.layouts.check(math.prod(len(read.task_bytes) for read in groups))
            shuffled = [sum(sizes) for sizes in product(*(read.task_bytes for read in groups))]
            scanned = [0] * len(shuffled)
        elif combination and is_new:
            from_shuffles = [size for read in groups for size in read.task_bytes]
            from_files = [size for read in scans for size in read.task_bytes]
            others = [0] * (len(stage.seconds) - sum(stage.decided_tasks))
            shuffled = from_shuffles + [0] * len(from_files) + others
            scanned = [0] * len(from_shuffles) + from_files + others
        elif self._scale == 1:
            return _Tasks(stage.name, stage.shuffle_bytes, stage.seconds, True)
        else:
            shuffled = [int(size * self._scale) for size in stage.shuffle_bytes]
            scanned = [int(size * self._scale) for size in stage.input_bytes]
        is_assumed = combination is not None and any(group.is_assumed for group in stage.groups)
        # Decisions use approximate sizes, but the time depends on the bytes that tasks really read.
        planned, read = sum(shuffled), sum(stage.shuffle_bytes) * self._scale
        factor = read / planned if planned and read else 1.0
        line = self._model.lines[self._workload.query, place]
        constant = line.constant(len(shuffled), self._scale)
        seconds = [
            constant + line.per_byte * (shuffle_bytes * factor + file_bytes)
            for shuffle_bytes, file_bytes in zip(shuffled, scanned, strict=True)
        ]
        return _Tasks(stage.name, shuffled, seconds, False, is_assumed)


def _combination(stage: LoggedStage) -> str | None:
    """Return how the reads of a stage combine to its tasks; None if that is not known.

    "sum": each task has one of the reads. "product": each task has a pair, as in a Cartesian
    product.
    """
    counts, tasks = stage.decided_tasks, len(stage.seconds)
    if not counts or (stage.reads_shuffle and not stage.groups):
        return None
    if sum(counts) <= tasks and not (len(counts) > 1 and math.prod(counts) == tasks):
        return "sum"
    return "product" if not stage.scans and math.prod(counts) == tasks else None
