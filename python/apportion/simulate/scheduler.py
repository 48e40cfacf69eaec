"""List scheduling of stages on slots, in the order of Spark's FIFO scheduler."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace

from apportion.errors import ApportionError

MOST_SLOTS = 1_000_000


@dataclasses.dataclass(frozen=True)
class Stage:
    """What has to run. Times are seconds."""

    tasks: Sequence[float]
    """How long each task takes, in the order in which they start."""
    after: Sequence[int] = ()
    """Places of the stages that have to end before, all of them earlier in the list."""
    delay: float = 0.0
    """How long after that its tasks can start: what the driver does in between."""


@dataclasses.dataclass(frozen=True)
class Loss:
    """Executors that are gone from a time on. Their shuffle files stay readable."""

    executors: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Where tasks run."""

    slots: int
    slots_per_executor: int = 1
    losses: Sequence[Loss] = ()
    handover: float = 0.0
    """Seconds from the end of a task to the start of the next one in its slot. Below zero where
    the slot is given away before the end is noted."""
    launch: float = 0.0
    """Seconds that the driver needs to launch a task; it launches one after the other."""

    def __post_init__(self) -> None:
        for what, value in (
            ("slots", self.slots),
            ("slots of an executor", self.slots_per_executor),
        ):
            if not 1 <= value <= MOST_SLOTS:
                raise ApportionError(f"{what} is {value}: allowed is 1 to {MOST_SLOTS:,}")
        lost = sum(loss.executors for loss in self.losses)
        if lost >= self.executors:
            raise ApportionError(
                f"{lost} executors are lost of {self.executors} ({self.slots} slots, "
                f"{self.slots_per_executor} of each): nothing is left to run tasks. "
                "Lose fewer, or simulate more slots"
            )

    @property
    def executors(self) -> int:
        """Executors that the slots are on; the last one may have fewer of them."""
        return -(-self.slots // self.slots_per_executor)


@dataclasses.dataclass(frozen=True)
class Run:
    """What came out. Times are seconds from the start of the query."""

    end: float
    """When the last task ended; 0 without tasks."""
    slot_seconds: float
    """The time that tasks held slots, also those that were lost."""
    tasks: int
    reruns: int
    """Tasks that ran again because their executor was lost."""


def run(stages: Sequence[Stage], cluster: Cluster) -> Run:
    """Return when stages are done that start as soon as those before them have ended.

    A free slot takes the next task of the stage that has been ready the longest. Tasks on an
    executor that is lost start over on others. The time is O(tasks x log(slots)).

    Raises `ApportionError` for stages that wait for later ones.
    """
    return _Simulation(stages, cluster).run()


class _Simulation:
    def __init__(self, stages: Sequence[Stage], cluster: Cluster) -> None:
        for place, stage in enumerate(stages):
            if any(not 0 <= before < place for before in stage.after):
                raise ApportionError(f"stage {place} waits for {list(stage.after)}: a cycle")
        self._stages = stages
        self._cluster = cluster
        self._ends = [0.0] * len(stages)
        self._left = [len(stage.tasks) for stage in stages]
        self._waits = [len(set(stage.after)) for stage in stages]
        self._readers: list[list[int]] = [[] for _ in stages]
        for place, stage in enumerate(stages):
            for before in set(stage.after):
                self._readers[before].append(place)
        # Sets of tasks that are ready from a time on: (time, stage, number of the set, tasks).
        self._ready: list[tuple[float, int, int, Sequence[float]]] = []
        self._sets = 0

    def run(self) -> Run:
        for place, stage in enumerate(self._stages):
            if not stage.after:
                self._begin(place)
        lost_at = self._losses()
        slots = [(0.0, slot) for slot in range(self._cluster.slots)]
        heapify(slots)
        handover, launch = self._cluster.handover, self._cluster.launch
        held, reruns, driver_free = 0.0, 0, 0.0
        while self._ready:
            ready, place, _, tasks = heappop(self._ready)
            again = 0
            for number, seconds in enumerate(tasks):
                free, slot = slots[0]
                # Nothing that becomes ready meanwhile goes before: it has waited less long.
                start = max(free, ready, driver_free)
                lost = lost_at.get(slot)
                while lost is not None and start >= lost:
                    heappop(slots)
                    free, slot = slots[0]
                    start = max(free, ready, driver_free)
                    lost = lost_at.get(slot)
                driver_free = start + launch
                end = start + seconds
                if lost is not None and end > lost:
                    held += lost - start
                    heappop(slots)
                    self._add(lost, place, tasks[number : number + 1])
                    again += 1
                    continue
                held += seconds
                heapreplace(slots, (max(start, end + handover), slot))
                self._ends[place] = max(self._ends[place], end)
            reruns += again
            self._left[place] -= len(tasks) - again
            if not self._left[place]:
                self._finish(place)
        return Run(
            end=max(self._ends, default=0.0),
            slot_seconds=held,
            tasks=sum(len(stage.tasks) for stage in self._stages),
            reruns=reruns,
        )

    def _losses(self) -> dict[int, float]:
        """When each slot is lost; the last executors go first."""
        lost_at: dict[int, float] = {}
        executor = self._cluster.executors
        width = self._cluster.slots_per_executor
        for loss in sorted(self._cluster.losses, key=lambda each: each.seconds):
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
            self._waits[reader] -= 1
            if not self._waits[reader]:
                self._begin(reader)

    def _add(self, ready: float, place: int, tasks: Sequence[float]) -> None:
        heappush(self._ready, (ready, place, self._sets, tasks))
        self._sets += 1
