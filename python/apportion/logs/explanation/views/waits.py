"""What a query waited for: parts of its time that add up to its duration."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from apportion.logs.eventlog import Stage

_LEAST_MILLIS = 100


class Wait(enum.Enum):
    """What a query waited for."""

    BEFORE = "before the first task"
    STAGE = "stage"
    START = "waiting for tasks to start"
    BETWEEN = "between stages"
    AFTER = "after the last task"


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the time of a query."""

    wait: Wait
    millis: int
    stage: int | None = None
    """Id of Spark's stage; None for time outside of stages."""


class _Run(NamedTuple):
    """A time in which tasks of a stage ran, without times in which all of them waited."""

    end: int
    start: int
    submitted: int
    """Submission of the stage."""
    stage: int


def time_parts(start: int | None, end: int | None, stages: Sequence[Stage]) -> list[Part]:
    """Return the parts of the time of a query, from its start to its end.

    From the end, tasks waited for the tasks that ended last before them. These can be of a
    broadcast, of a subquery, or of a stage that only freed its slots. In the time between stages,
    Spark plans the next ones and sends broadcasts. Without `end`, the last task is the end.
    """
    runs = [run for stage in stages for run in _runs(stage)]
    if start is None:
        start = min((run.submitted for run in runs), default=0)
    if end is None:
        end = max((run.end for run in runs), default=start)
    parts = list(_from_end(start, max(start, end), runs))
    return [part for part in reversed(parts) if part.millis]


def _runs(stage: Stage) -> Iterator[_Run]:
    times = _merged(zip(stage.launched, stage.finished, strict=True))
    if not times and stage.submitted is not None and stage.completed is not None:
        # All its attempts of tasks failed.
        times = [(stage.submitted, max(stage.submitted, stage.completed))]
    for start, end in times:
        submitted = times[0][0] if stage.submitted is None else min(stage.submitted, start)
        yield _Run(end, start, submitted, stage.id)


def _merged(times: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return times in order, each with those that overlap it."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(times):
        if merged and start <= merged[-1][1]:
            start, before = merged.pop()
            end = max(before, end)
        merged.append((start, max(start, end)))
    return merged


def _from_end(start: int, end: int, runs: Sequence[_Run]) -> Iterator[Part]:
    time, submitted, wait = end, end, Wait.AFTER
    # Killed tasks can end after their query.
    waiting = sorted(run._replace(end=min(run.end, end)) for run in runs if run.start < end)
    while waiting and time > start:
        run = waiting.pop()
        # Other tasks ran at the same time as the tasks that were waited for.
        if start < run.end <= time:
            yield from _until_start(max(run.end, submitted), time, runs)
            yield Part(wait, max(0, submitted - run.end))
            time = max(run.start, start)
            yield Part(Wait.STAGE, run.end - time, run.stage)
            submitted, wait = min(max(run.submitted, start), time), Wait.BETWEEN
    yield from _until_start(submitted, time, runs)
    yield Part(Wait.BEFORE, submitted - start)


def _until_start(start: int, end: int, runs: Sequence[_Run]) -> Iterator[Part]:
    """Yield the parts of a time in which submitted tasks waited, from its end.

    The stage that ran for most of it had the slots. Shorter times are those of the scheduler.
    """

    def overlap(run: _Run) -> int:
        return min(run.end, end) - max(run.start, start)

    holder = max(runs, key=overlap, default=None)
    if end - start < _LEAST_MILLIS or holder is None or overlap(holder) <= 0:
        yield Part(Wait.START, end - start)
        return
    first, last = max(holder.start, start), min(holder.end, end)
    yield Part(Wait.START, end - last)
    yield Part(Wait.STAGE, last - first, holder.stage)
    yield Part(Wait.START, first - start)
