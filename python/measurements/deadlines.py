"""Measure how well queries end within a stated time, and what that costs.

    python python/measurements/deadlines.py docs/deadline-accuracy.md

runs queries of TPC-DS several times in local mode. The durations of their tasks, made longer, are
the input of a simulated cluster whose executors come and go. Apportion's own arithmetic, in the
JVM, plans the slots from the other runs of the query.
"""

from __future__ import annotations

import dataclasses
import heapq
import statistics
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apportion import eventlog
from apportion._util import cache
from apportion.bench.environment import Environment
from apportion.bench.suites import tpc
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.logs.simulate import scheduler
from apportion.logs.simulate.workload import Workload, workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = (3, 7, 11, 13, 17, 19, 25, 26, 29, 34, 42, 46, 52, 55, 65, 68, 73, 79, 89, 98)
# Many tasks, as larger tables have them.
CONF = {
    "spark.driver.memory": "3g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
    "spark.sql.files.maxPartitionBytes": "4MB",
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "1MB",
    "spark.apportion.ranges": "balanced",
}
ROUNDS = 4
"""Runs of each query. The first one warms up the JVM and does not count."""
LONGER = 100
"""Factor for the durations of tasks. The driver's times stay as they are."""
DEADLINES = (1.5, 3.0, 6.0)
"""Deadlines, as multiples of the shortest possible time."""
MOST_SLOTS, STARTUP, IDLE, POLL = 400, 20.0, 30.0, 10.0
"""Maximum number of slots; seconds until an executor runs tasks, until an idle one goes, and
between two plans."""
GOAL_IN_TIME, GOAL_COST = 0.9, 1.3


@dataclasses.dataclass(frozen=True)
class Case:
    """One simulated run with a deadline. Times are seconds."""

    query: int
    multiple: float
    deadline: float
    seconds: float
    slot_seconds: float
    cheapest: float
    """Slot seconds of the cheapest fixed number of slots that meets the deadline."""

    @property
    def in_time(self) -> bool:
        return self.seconds <= self.deadline

    @property
    def cost(self) -> float:
        return self.slot_seconds / self.cheapest


def longer(stages: Workload) -> list[scheduler.Stage]:
    """Return the stages of a run with longer tasks."""
    return [
        scheduler.Stage([each * LONGER for each in stage.seconds], stage.after, stage.delay)
        for stage in stages.stages
    ]


class Arithmetic:
    """Apportion's arithmetic for deadlines, in the JVM."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._deadlines = jvm.io.apportion.resources.deadlines

    def sequence(self, values: Sequence[Any]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()

    def cost(self, stages: Sequence[scheduler.Stage], tail: float) -> Any:
        """Return what the history keeps of a run."""
        costs = [
            self._jvm.io.apportion.history.StageCost(
                len(stage.tasks),
                millis(sum(stage.tasks)),
                millis(max(stage.tasks)),
                millis(stage.delay),
                self.sequence(list(stage.after)),
            )
            for stage in stages
            if stage.tasks
        ]
        return self._jvm.io.apportion.history.QueryCost(self.sequence(costs), millis(tail))

    def progress(self, stages: Sequence[scheduler.Stage]) -> Any:
        progress = self._deadlines.QueryProgress(0)
        tuples = [self._jvm.scala.Tuple2(place, place) for place in range(len(stages))]
        progress.jobStarts(self.sequence(tuples))
        return progress

    def slots(self, progress: Any, expected: Any, deadline: float, now: float, have: int) -> int:
        plan = self._deadlines.DeadlinePlan(millis(deadline), millis(now), progress.left(expected))
        return int(plan.slots(MOST_SLOTS, have, millis(STARTUP)).slots())


def millis(seconds: float) -> int:
    return round(seconds * 1000)


class Cluster:
    """Simulated executors of one slot that come and go, and the FIFO scheduler of Spark."""

    def __init__(self, stages: Sequence[scheduler.Stage], arithmetic: Arithmetic) -> None:
        self._stages = stages
        self._arithmetic = arithmetic
        self._progress = arithmetic.progress(stages)
        self._events: list[tuple[float, int, str, int]] = []
        self._count = 0
        self._now = self._held = 0.0
        self._target = 0
        # Slots by number: the time at which they came, since when they are idle, and their task.
        self._slots: dict[int, float] = {}
        self._idle: dict[int, float] = {}
        self._running: dict[int, tuple[int, float]] = {}
        self._coming: list[int] = []
        self._queue: deque[tuple[int, deque[float]]] = deque()
        self._open = [len(stage.tasks) for stage in stages]
        self._inputs = [len(set(stage.after)) for stage in stages]

    def run(self, expected: Any, deadline: float, tail: float) -> tuple[float, float]:
        """Return the seconds of the query, and the slot seconds of its executors."""
        for place, stage in enumerate(self._stages):
            if not stage.after:
                self._add(stage.delay, "ready", place)
        self._add(POLL, "poll", 0)
        self._plan(expected, deadline)
        while any(self._open):
            self._now, _, kind, number = heapq.heappop(self._events)
            if kind == "ready":
                self._start(number)
            elif kind == "arrives" and number in self._coming:
                self._coming.remove(number)
                self._slots[number] = self._now
                self._free(number)
            elif kind == "idle":
                self._release(number)
            elif kind == "poll":
                self._add(self._now + POLL, "poll", 0)
            changed = kind == "task" and self._end_task(number)
            if changed or kind in ("ready", "poll"):
                self._plan(expected, deadline)
            self._assign()
        end = self._now + tail
        return end, self._held + sum(end - since for since in self._slots.values())

    def _add(self, time: float, kind: str, number: int) -> None:
        heapq.heappush(self._events, (time, self._count, kind, number))
        self._count += 1

    def _plan(self, expected: Any, deadline: float) -> None:
        have = len(self._slots)
        self._target = self._arithmetic.slots(self._progress, expected, deadline, self._now, have)
        del self._coming[max(self._target - have, 0) :]
        while len(self._coming) + have < self._target:
            self._coming.append(self._count)
            self._add(self._now + STARTUP, "arrives", self._count)
        for slot in self._idle:
            self._add(self._now + IDLE, "idle", slot)

    def _start(self, place: int) -> None:
        stage = self._stages[place]
        parents = self._arithmetic.sequence(list(stage.after))
        self._progress.stageStarts(place, len(stage.tasks), parents, millis(self._now))
        self._queue.append((place, deque(stage.tasks)))

    def _assign(self) -> None:
        while self._queue and self._idle:
            place, tasks = self._queue[0]
            slot = min(self._idle)
            del self._idle[slot]
            self._running[slot] = place, tasks[0]
            self._add(self._now + tasks.popleft(), "task", slot)
            if not tasks:
                self._queue.popleft()

    def _end_task(self, slot: int) -> bool:
        """Free the slot of a task. Return whether its stage ends."""
        place, seconds = self._running.pop(slot)
        self._progress.taskEnds(place, millis(seconds))
        self._free(slot)
        self._open[place] -= 1
        if self._open[place]:
            return False
        self._progress.stageEnds(place, millis(self._now))
        for reader, stage in enumerate(self._stages):
            if place in stage.after:
                self._inputs[reader] -= 1
                if not self._inputs[reader]:
                    self._add(self._now + stage.delay, "ready", reader)
        return True

    def _free(self, slot: int) -> None:
        self._idle[slot] = self._now
        self._add(self._now + IDLE, "idle", slot)

    def _release(self, slot: int) -> None:
        """End an executor that is idle and above the target."""
        since = self._idle.get(slot, self._now)
        if self._now - since >= IDLE and len(self._slots) > self._target:
            del self._idle[slot]
            self._held += self._now - self._slots.pop(slot)


def cheapest(stages: Sequence[scheduler.Stage], tail: float, deadline: float) -> float | None:
    """Return the slot seconds of the cheapest fixed number of slots that ends in time."""
    costs = []
    for slots in _numbers():
        seconds = scheduler.run(stages, scheduler.Cluster(slots)).end + tail
        if seconds + STARTUP <= deadline:
            costs.append(slots * seconds)
    return min(costs, default=None)


def _numbers() -> Iterator[int]:
    slots = 1
    while slots <= MOST_SLOTS:
        yield slots
        slots += max(slots // 20, 1)


def simulate(runs: dict[int, list[Workload]], arithmetic: Arithmetic) -> Iterator[Case]:
    """Simulate each run with the other runs of its query as history."""
    for name in counted([str(query) for query in runs]):
        own = runs[int(name)]
        for run in own:
            others = sorted(
                (other for other in own if other is not run),
                key=lambda each: sum(sum(stage.seconds) for stage in each.stages),
            )
            # The history uses the median, the lower one of two.
            earlier = others[(len(others) - 1) // 2]
            expected = arithmetic.cost(longer(earlier), earlier.tail)
            stages = longer(run)
            soonest = scheduler.run(stages, scheduler.Cluster(MOST_SLOTS)).end
            for multiple in DEADLINES:
                deadline = multiple * (soonest + run.tail + STARTUP)
                best = cheapest(stages, run.tail, deadline)
                if best is not None:
                    cluster = Cluster(stages, arithmetic)
                    seconds, held = cluster.run(expected, deadline, run.tail)
                    yield Case(int(name), multiple, deadline, seconds, held, best)


def record(session: SparkSession, scale: float) -> None:
    """Run the queries."""
    register(session, find_tables(tpc.generate("tpcds", scale, cache.directory())))
    texts = tpc.queries("tpcds")
    for name in counted([str(query) for _ in range(ROUNDS) for query in QUERIES]):
        session.sparkContext.setJobDescription(name)
        session.sql(texts[int(name)]).write.format("noop").mode("overwrite").save()


def read_runs(log: Path) -> dict[int, list[Workload]]:
    """Return the runs of each query, without the first one."""
    application = eventlog.read(log)
    runs = defaultdict(list)
    for query in application.queries.values():
        if query.description.isdecimal() and (found := workload(application, query)):
            runs[int(query.description)].append(found)
    return {query: own[1:] for query, own in runs.items()}


def page(cases: Sequence[Case], about: str) -> str:
    """Return the page in Markdown."""
    in_time = sum(case.in_time for case in cases) / len(cases)
    total = sum(case.slot_seconds for case in cases) / sum(case.cheapest for case in cases)
    lines = [
        "# Accuracy of deadlines",
        "",
        f"In a simulation, {in_time:.0%} of the runs end within the stated time. Only cases count "
        "in which a fixed number of slots could have met it. Together, these runs take "
        f"{total:.2f} times the core-seconds of the cheapest fixed numbers of slots that end in "
        f"time. The goals are {GOAL_IN_TIME:.0%} and {GOAL_COST}.",
        "",
        f"The input is {len({case.query for case in cases})} queries of TPC-DS, each with runs in "
        f"local mode ({about}). The durations of the tasks are multiplied by {LONGER}, so that "
        "queries take minutes. The times of the driver stay as they are. Each run is simulated "
        "with the other runs of its query as history. Apportion's own arithmetic plans the slots.",
        "",
        f"An executor with one slot runs tasks {STARTUP:.0f} s after its request, and goes when it "
        f"has been idle for {IDLE:.0f} s. The query starts without executors. A deadline is a "
        "multiple of the shortest possible time.",
        "",
        "`make measure-deadlines` writes this page.",
        "",
        "## Simulated",
        "",
        "| deadline | runs | in time | latest end | core-seconds, total | median | 90 % | worst |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for multiple in DEADLINES:
        lines.append(_row(f"{multiple:g} x", [c for c in cases if c.multiple == multiple]))
    lines += [
        _row("all", cases),
        "",
        "*Latest end* is the time of the slowest run as a share of its deadline. The other columns "
        "are the core-seconds of the executors, as a multiple of the cheapest run that would have "
        "met the deadline.",
        "",
        "## By query",
        "",
        "| query | runs | in time | latest end | core-seconds, total | median | 90 % | worst |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for query in sorted({case.query for case in cases}):
        lines.append(_row(f"q{query}", [case for case in cases if case.query == query]))
    return "\n".join(lines) + "\n"


def _row(name: str, cases: Sequence[Case]) -> str:
    costs = sorted(case.cost for case in cases)
    latest = max(case.seconds / case.deadline for case in cases)
    total = sum(case.slot_seconds for case in cases) / sum(case.cheapest for case in cases)
    in_time = sum(case.in_time for case in cases) / len(cases)
    numbers = total, statistics.median(costs), costs[int(len(costs) * 0.9)], costs[-1]
    cells = [name, str(len(cases)), f"{in_time:.0%}", f"{latest:.0%}"]
    return f"| {' | '.join([*cells, *(f'{each:.2f}' for each in numbers)])} |"


def _describe(environment: Environment, runs: dict[int, list[Workload]]) -> str:
    spreads = sorted(max(own) / min(own) for own in map(_task_seconds, runs.values()))
    return (
        f"Spark {environment.spark}, {environment.cores} cores. The slowest run of a query took "
        f"{statistics.median(spreads):.1f} times as long as the fastest, in the median, and at "
        f"most {spreads[-1]:.1f} times"
    )


def _task_seconds(runs: Sequence[Workload]) -> list[float]:
    return [sum(sum(stage.seconds) for stage in run.stages) for run in runs]


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    scale: Annotated[float, typer.Option(help="Scale factor of TPC-DS.")] = 1,
    log: Annotated[Path | None, typer.Option(help="Event log of an earlier run.")] = None,
) -> None:
    """Measure how well queries end within a stated time, and write a page."""
    from pyspark import SparkContext

    with tempfile.TemporaryDirectory() as directory:
        conf = CONF | {"spark.eventLog.dir": Path(directory).as_uri()}
        session = start("local[*]", [f"{key}={value}" for key, value in conf.items()])
        environment = Environment.from_session(session)
        if log is None:
            record(session, scale)
            log = Path(directory) / session.sparkContext.applicationId
        # The gateway to the JVM outlives the session.
        session.stop()
        arithmetic = Arithmetic(SparkContext._jvm)
        runs = read_runs(log)
        cases = list(simulate(runs, arithmetic))
    file.write_text(page(cases, _describe(environment, runs)), "utf-8")


if __name__ == "__main__":
    typer.run(main)
