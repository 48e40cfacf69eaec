"""Model of task times: a line for each stage, fitted to its logged tasks.

    seconds = overhead + bytes / throughput

A stage with enough tasks of unequal size is fitted separately, by the Theil-Sen estimator. Its
slope is the median of the slopes between all pairs of tasks, which is robust against stragglers.
Each of the other stages gets a separate throughput and a common overhead: the median overhead of
the separately fitted stages. Without such stages, it is the overhead of one line through the tasks
of all stages.
"""

from __future__ import annotations

import dataclasses
import statistics
from array import array
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations

from apportion.logs.simulate.workload import LoggedStage, Workload

_MIN_TASKS = 8
# Maximum number of tasks for the comparison of all pairs. Of more tasks, a sample is used.
_MAX_TASKS = 200
# Minimum ratio of the largest to the smallest task. With less, the slope would be noise.
_MIN_SPREAD = 1.5
# Times in logs are whole milliseconds.
SHORTEST = 0.001


Point = tuple[float, float]
"""Bytes that a task read, and its duration in seconds."""


@dataclasses.dataclass(frozen=True)
class Line:
    """Line for the times of a stage's tasks."""

    overhead: float
    """Seconds of a task that reads nothing."""
    per_byte: float
    """Seconds per byte."""
    per_stage: float = 0.0
    """Seconds of work that the tasks of a stage share, independent of bytes. It is only used for a
    stage that reads nothing."""

    def constant(self, tasks: int, scale: float = 1) -> float:
        """Return the seconds of a task that do not depend on its bytes, in a stage of `tasks`.

        `scale` is the amount of data relative to the log.
        """
        return self.overhead + self.per_stage * scale / tasks


@dataclasses.dataclass(frozen=True)
class Quality:
    """Quality of the fit, over the fitted tasks."""

    tasks: int
    r_squared: float | None
    """Share of the variance of the times that the lines explain; None if all times are equal."""
    median_error: float
    """Median over tasks of |predicted time - time| / time."""


@dataclasses.dataclass(frozen=True)
class Model:
    """Model of times for all queries of a simulation."""

    lines: dict[tuple[int, int], Line]
    """Lines by query and place of the stage."""
    overhead: float
    """Common overhead in seconds, for stages that are not fitted separately."""
    own_lines: int
    """Number of stages that are fitted separately."""
    handover: float
    """See `Cluster.handover`."""
    launch: float
    """See `Cluster.launch`."""
    quality: Quality


def fit(workloads: Sequence[Workload]) -> Model:
    """Return the model that fits the tasks of all workloads."""
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
    if len(points) < _MIN_TASKS:
        return None
    low, high = points[len(points) // 10][0], points[-1 - len(points) // 10][0]
    return _line(points) if high >= max(low, 1) * _MIN_SPREAD else None


def _sample(tasks: Iterable[Point]) -> list[Point]:
    """Return the tasks sorted by size, or an evenly spaced sample of many tasks."""
    points = sorted(tasks)
    if len(points) <= _MAX_TASKS:
        return points
    return [points[place * len(points) // _MAX_TASKS] for place in range(_MAX_TASKS)]


def _line(points: Sequence[Point]) -> Line | None:
    """Return the Theil-Sen line; None if it would be falling or start below zero."""
    slopes = [
        (seconds - before) / (size - smaller)
        for (smaller, before), (size, seconds) in combinations(points, 2)
        if size > smaller
    ]
    if not slopes:
        return None
    per_byte = statistics.median(slopes)
    overhead = statistics.median(seconds - per_byte * size for size, seconds in points)
    # Otherwise larger tasks would be faster, or an empty task would take no time.
    return Line(overhead, per_byte) if per_byte > 0 and overhead > 0 else None


def _pooled_overhead(own: Iterable[Line], stages: Collection[LoggedStage]) -> float:
    overheads = [line.overhead for line in own]
    if overheads:
        return statistics.median(overheads)
    # A scenario mostly changes tasks that read shuffles, so these are preferred.
    reading = [stage for stage in stages if stage.reads_shuffle] or stages
    points = _sample(
        point for stage in reading for point in zip(_sizes(stage), stage.seconds, strict=True)
    )
    line = _line(points)
    return line.overhead if line else min(seconds for _, seconds in points)


def _pooled_line(stage: LoggedStage, overhead: float) -> Line:
    overhead = min(overhead, *stage.seconds)
    work = sum(second - overhead for second in stage.seconds)
    size = sum(_sizes(stage))
    return Line(overhead, work / size) if size else Line(overhead, 0.0, work)


def _quality(fitted: Sequence[tuple[Line, LoggedStage]]) -> Quality:
    tasks = sum(len(stage.seconds) for _, stage in fitted)
    mean = sum(sum(stage.seconds) for _, stage in fitted) / tasks
    variance = residual = 0.0
    errors = array("d")
    for line, stage in fitted:
        constant = line.constant(len(stage.seconds))
        for size, second in zip(_sizes(stage), stage.seconds, strict=True):
            difference = constant + line.per_byte * size - second
            variance += (second - mean) ** 2
            residual += difference**2
            errors.append(abs(difference) / max(second, SHORTEST))
    return Quality(
        tasks=tasks,
        r_squared=1 - residual / variance if variance else None,
        median_error=statistics.median(errors),
    )


def _handover(workloads: Iterable[Workload]) -> float:
    """Return the median time from the end of a task to the launch of the next one in its slot."""
    waits = array("d")
    for workload in workloads:
        for stage in workload.stages:
            ended = sorted(
                start + seconds for start, seconds in zip(stage.starts, stage.seconds, strict=True)
            )
            waits.extend(
                start - end
                for start, end in zip(stage.starts[workload.slots :], ended, strict=False)
            )
    return statistics.median(waits) if waits else 0.0


def _launch(workloads: Iterable[Workload]) -> float:
    """Return the median over stages of the time between two launches into free slots."""
    gaps = []
    for workload in workloads:
        for stage in workload.stages:
            first = stage.starts[: workload.slots]
            if len(first) >= _MIN_TASKS:
                gaps.append((first[-1] - first[0]) / (len(first) - 1))
    return statistics.median(gaps) if gaps else 0.0
