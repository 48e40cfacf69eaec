"""How long tasks take: a line for each stage, fitted to the tasks that ran.

    seconds = overhead + bytes / throughput

A stage with enough tasks of unequal size has a line of its own, by Theil and Sen's estimator: the
median of the slopes between all pairs of tasks, which a few stragglers do not move. All others
have a throughput of their own, and the overhead that those have in the median; if there are none,
that of the line through the tasks of all stages.
"""

from __future__ import annotations

import dataclasses
import statistics
from array import array
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from apportion.simulate.scheduler import Cluster
from apportion.simulate.workload import LoggedStage, Workload

_ENOUGH = 8
# Tasks that are compared pair by pair; of more, these many are picked evenly by size.
_MOST = 200
# The largest bytes of a task by the smallest: below, a slope would be made of noise.
_SPREAD = 1.5
# Logs tell milliseconds.
_SHORTEST = 0.001


Point = tuple[float, float]
"""The bytes that a task read, and its seconds."""


@dataclasses.dataclass(frozen=True)
class Line:
    """The time of a stage's tasks."""

    overhead: float
    """Seconds of a task that reads nothing."""
    per_byte: float
    """Seconds a byte."""
    per_stage: float = 0.0
    """Seconds of work that is in no proportion to bytes, which a stage's tasks share: all of it
    where nothing is read."""

    def seconds(self, size: float, tasks: int, scale: float = 1) -> float:
        """Return the time of a task that reads `size` bytes, in a stage of so many tasks.

        `scale` is how many times more data there is than in the log.
        """
        return self.overhead + self.per_byte * size + self.per_stage * scale / tasks


@dataclasses.dataclass(frozen=True)
class Quality:
    """How well the lines fit the tasks that they were fitted to."""

    tasks: int
    r_squared: float | None
    """The part of the times' variance that they explain; None where all times are equal."""
    median_error: float
    """The median over tasks of |time by the line - time| / time."""


@dataclasses.dataclass(frozen=True)
class Model:
    """What the log tells about times, for all queries of a simulation."""

    lines: dict[tuple[int, int], Line]
    """By query and place of the stage."""
    overhead: float
    """Seconds; what stages without a line of their own have."""
    own_lines: int
    """Stages with a line of their own."""
    handover: float
    launch: float
    quality: Quality

    def line(self, workload: Workload, place: int) -> Line:
        """Return the line of a stage."""
        return self.lines[workload.query, place]

    def cluster(self, slots: int, slots_per_executor: int) -> Cluster:
        """Return a cluster whose scheduler takes as long as that of the log."""
        return Cluster(slots, slots_per_executor, (), self.handover, self.launch)


def fit(workloads: Sequence[Workload]) -> Model:
    """Fit the times of all tasks."""
    stages = {
        (workload.query, place): stage
        for workload in workloads
        for place, stage in enumerate(workload.stages)
    }
    own = {key: line for key, stage in stages.items() if (line := _own_line(stage))}
    overhead = _pooled_overhead(own.values(), stages.values())
    lines = {key: own.get(key) or _pooled_line(stage, overhead) for key, stage in stages.items()}
    return Model(
        lines=lines,
        overhead=overhead,
        own_lines=len(own),
        handover=_handover(workloads),
        launch=_launch(workloads),
        quality=_quality([(lines[key], stage) for key, stage in stages.items()]),
    )


def _sizes(stage: LoggedStage) -> array[float]:
    pairs = zip(stage.shuffle_bytes, stage.input_bytes, strict=True)
    return array("d", (read + scanned for read, scanned in pairs))


def _own_line(stage: LoggedStage) -> Line | None:
    points = _sample(zip(_sizes(stage), stage.seconds, strict=True))
    if len(points) < _ENOUGH:
        return None
    low, high = points[len(points) // 10][0], points[-1 - len(points) // 10][0]
    return _line(points) if high >= max(low, 1) * _SPREAD else None


def _sample(tasks: Iterable[Point]) -> list[Point]:
    """The tasks by size; of many, some that are spread evenly over them."""
    points = sorted(tasks)
    if len(points) <= _MOST:
        return points
    return [points[place * len(points) // _MOST] for place in range(_MOST)]


def _line(points: Sequence[Point]) -> Line | None:
    """The line of Theil and Sen, if one goes through these tasks."""
    slopes = [
        (seconds - before) / (size - smaller)
        for (smaller, before), (size, seconds) in combinations(points, 2)
        if size > smaller
    ]
    if not slopes:
        return None
    per_byte = statistics.median(slopes)
    overhead = statistics.median(seconds - per_byte * size for size, seconds in points)
    # Larger tasks that are faster, or a start that takes no time: there is no line in these.
    return Line(overhead, per_byte) if per_byte > 0 and overhead > 0 else None


def _pooled_overhead(own: Iterable[Line], stages: Collection[LoggedStage]) -> float:
    found = [line.overhead for line in own]
    if found:
        return statistics.median(found)
    # Numbers of tasks change where shuffles are read: what these tasks do counts, if there are any.
    reading = [stage for stage in stages if stage.reads_shuffle] or stages
    points = _sample(
        point for stage in reading for point in zip(_sizes(stage), stage.seconds, strict=True)
    )
    line = _line(points)
    return line.overhead if line else min(seconds for _, seconds in points)


def _pooled_line(stage: LoggedStage, overhead: float) -> Line:
    overhead = min(overhead, *stage.seconds) if stage.seconds else overhead
    work = sum(second - overhead for second in stage.seconds)
    size = stage.bytes_read
    return Line(overhead, work / size) if size else Line(overhead, 0.0, work)


def _quality(fitted: Sequence[tuple[Line, LoggedStage]]) -> Quality:
    tasks = sum(len(stage.seconds) for _, stage in fitted)
    if not tasks:
        return Quality(0, None, 0.0)
    mean = sum(sum(stage.seconds) for _, stage in fitted) / tasks
    variance = residual = 0.0
    errors = array("d")
    for line, stage in fitted:
        constant = line.seconds(0, len(stage.seconds))
        for size, second in zip(_sizes(stage), stage.seconds, strict=True):
            difference = constant + line.per_byte * size - second
            variance += (second - mean) ** 2
            residual += difference**2
            errors.append(abs(difference) / max(second, _SHORTEST))
    return Quality(
        tasks=tasks,
        r_squared=1 - residual / variance if variance else None,
        median_error=statistics.median(errors),
    )


def _handover(workloads: Iterable[Workload]) -> float:
    """The median over tasks that waited for a slot: from the end that freed it to their launch."""
    waits = array("d")
    for workload in workloads:
        for stage in workload.stages:
            ended = sorted(
                start + held for start, held in zip(stage.starts, stage.seconds, strict=True)
            )
            waits.extend(
                start - end
                for start, end in zip(stage.starts[workload.slots :], ended, strict=False)
            )
    return statistics.median(waits) if waits else 0.0


def _launch(workloads: Iterable[Workload]) -> float:
    """The median over stages: between the launches of tasks that found slots free."""
    found = []
    for workload in workloads:
        for stage in workload.stages:
            first = stage.starts[: workload.slots]
            if len(first) >= _ENOUGH:
                found.append((first[-1] - first[0]) / (len(first) - 1))
    return statistics.median(found) if found else 0.0
