"""List scheduling of stages on task slots, in the order of Spark's FIFO scheduler."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from math import inf

from apportion._util.units import count_text
from apportion.errors import ApportionError

MAX_SLOTS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage to schedule. Times are seconds."""

    tasks: Sequence[float]
    """Duration of each task, in the order in which tasks start."""
    after: Sequence[int] = ()
    """Places of the stages that must end before. They must come earlier in the list."""
    delay: float = 0.0
    """Time that the driver then needs before the tasks can start."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """Loss of executors at a time. Their shuffle files stay readable."""

    executors: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Task slots, executors and scheduling delays."""

    slots: int
    slots_per_executor: int = 1
    losses: Sequence[Loss] = ()
    handover: float = 0.0
    """Seconds from the end of a task to the start of the next task in its slot. Negative if Spark
    gives away the slot before it records the end."""
    launch: float = 0.0
    """Seconds that the driver needs to launch a task. It launches one task at a time."""

    def __post_init__(self) -> None:
        lost = sum(loss.executors for loss in self.losses)
        if lost >= self.executors:
            raise ApportionError(
                f"the scenario loses {count_text(lost, 'executor')} of {self.executors} "
                f"({self.slots} slots, {self.slots_per_executor} per executor), so no executor is "
                "left: lose fewer executors, or simulate more slots"
            )

    @property
    def executors(self) -> int:
        """Number of executors. The last executor can have fewer slots."""
        return -(-self.slots // self.slots_per_executor)


@dataclasses.dataclass(frozen=True)
class Run:
    """Result of a schedule. Times are seconds from the start of the query."""

    end: float
    """End of the last task; 0 without tasks."""
    slot_seconds: float
    """Total time that tasks held slots, including lost tasks."""
    tasks: int
    reruns: int
    """Number of tasks that ran again because their executor was lost."""


def run(stages: Sequence[Stage], cluster: Cluster) -> Run:
    """Schedule stages. A stage starts as soon as the stages before it have ended.

    A free slot takes the next task of the stage that has been ready longest. Tasks of a lost
    executor start again on another one. The run time is O(tasks x log(slots)).
    """
    return _Simulation(stages, cluster).run()


class _Simulation:
    def __init__(self, stages: Sequence[Stage], cluster: Cluster) -> None:
        self._stages = stages
        self._cluster = cluster
        self._ends = [0.0] * len(stages)
        self._tasks_left = [len(stage.tasks) for stage in stages]
        self._inputs_left = [len(set(stage.after)) for stage in stages]
        self._readers: list[list[int]] = [[] for _ in stages]
        for place, stage in enumerate(stages):
            for before in set(stage.after):
                self._readers[before].append(place)
        # Heap of task sets: (time when the tasks are ready, stage, number of the set, durations).
        self._ready: list[tuple[float, int, int, Sequence[float]]] = []
        self._sets = 0

    def run(self) -> Run:
        for place, stage in enumerate(self._stages):
            if not stage.after:
                self._begin(place)
        lost_at = self._losses()
        slots = [(0.0, slot) for slot in range(self._cluster.slots)]
        handover, launch = self._cluster.handover, self._cluster.launch
        held, reruns, driver_free = 0.0, 0, 0.0
        while self._ready:
            ready, place, _, tasks = heappop(self._ready)
            lost_tasks = 0
            for number, seconds in enumerate(tasks):
                # Tasks that become ready meanwhile come later, because they have waited less.
                start = max(slots[0][0], ready, driver_free)
                while start >= lost_at.get(slots[0][1], inf):
                    heappop(slots)
                    start = max(slots[0][0], ready, driver_free)
                slot = slots[0][1]
                lost = lost_at.get(slot, inf)
                driver_free = start + launch
                end = start + seconds
                if end > lost:
                    held += lost - start
                    heappop(slots)
                    self._add(lost, place, tasks[number : number + 1])
                    lost_tasks += 1
                    continue
                held += seconds
                heapreplace(slots, (max(start, end + handover), slot))
                self._ends[place] = max(self._ends[place], end)
            reruns += lost_tasks
            self._tasks_left[place] -= len(tasks) - lost_tasks
            if not self._tasks_left[place]:
                self._finish(place)
        return Run(
            end=max(self._ends, default=0.0),
            slot_seconds=held,
            tasks=sum(len(stage.tasks) for stage in self._stages),
            reruns=reruns,
        )

    def _losses(self) -> dict[int, float]:
        """Return the time of loss for each lost slot. The last executors are lost first."""
        lost_at: dict[int, float] = {}
        executor = self._cluster.executors
        width = self._cluster.slots_per_executor
        for loss in sorted(self._cluster.losses, key=lambda loss: loss.seconds):
            for _ in range(loss.executors):
                executor -= 1
                end = min((executor + 1) * width, self._cluster.slots)
                lost_at.update(dict.fromkeys(range(executor * width, end), loss.seconds))
        return lost_at

    def _begin(self, place: int) -> None:
        stage = self._stages[place]
        ready = max((self._ends[before] for before in stage.after), default=0.0) + stage.delay
        self._ends[place] = ready
        if stage.tasks:
            self._add(ready, place, stage.tasks)
        else:
            self._finish(place)

    def _finish(self, place: int) -> None:
        for reader in self._readers[place]:
            self._inputs_left[reader] -= 1
            if not self._inputs_left[reader]:
                self._begin(reader)

    def _add(self, ready: float, place: int, tasks: Sequence[float]) -> None:
        heappush(self._ready, (ready, place, self._sets, tasks))
        self._sets += 1
