"""Ends of tasks in events."""

from __future__ import annotations

import dataclasses
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from apportion.logs.eventlog.input import values
from apportion.logs.eventlog.model import Stage

# Exit codes of executors that ran out of memory: killed by the system, and `SparkExitCode.OOM`.
_MEMORY_EXITS = ("code 137", "code 52", "status 137", "status 52", "OutOfMemory", "OOMKilled")
# Times of the first launch and the last end of an attempt of a stage, and the id of the stage.
Span = tuple[int, int, int]
# A hostile log must not fill the memory with names.
_MOST_REASONS = 20
# Numbers of a stage that are sums over its tasks.
_SUMS = ("failed_tasks", "memory_failures", "wasted_millis", "killed_millis")


def is_out_of_memory(reason: Mapping[str, Any]) -> bool:
    if reason.get("Reason") == "ExecutorLostFailure":
        return any(text in str(reason.get("Loss Reason")) for text in _MEMORY_EXITS)
    # On a GPU, RAPIDS throws `GpuSplitAndRetryOOM` and similar errors.
    return str(reason.get("Class Name")).endswith(("OutOfMemoryError", "OOM"))


def count_reason(counts: dict[str, int], reason: Mapping[str, Any]) -> None:
    name = reason.get("Class Name") or reason.get("Reason")
    if (
        name
        and (text := values.text(name)[:200])
        and (text in counts or len(counts) < _MOST_REASONS)
    ):
        counts[text] = counts.get(text, 0) + 1


def of_group(metrics: Mapping[str, Any], group: str, name: str) -> int:
    return int((metrics.get(group) or {}).get(name, 0))


def peak_tasks(stages: Iterable[Stage]) -> int:
    """Return the most tasks of stages that ran at the same time."""
    times = (
        pair for stage in stages for pair in zip(stage.launched, stage.task_millis, strict=True)
    )
    return max((tasks for _, tasks in running(times)), default=0)


def running(times: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the number of running tasks over time: `(milliseconds, tasks)`, in order.

    `times` are the launch of each task and the time that it ran. Spark records the end of a task
    some milliseconds after it has given away the slot.
    """
    changes: dict[int, int] = {}
    for launched, ran in times:
        changes[launched] = changes.get(launched, 0) + 1
        end = launched + max(ran, 0)
        changes[end] = changes.get(end, 0) - 1
    order = sorted(changes)
    return list(zip(order, accumulate(changes[time] for time in order), strict=True))


def spans(stages: Iterable[Stage]) -> list[Span]:
    """Return the span of each attempt with tasks."""
    return [
        (min(stage.launched), max(max(stage.finished), min(stage.launched)), stage.id)
        for stage in stages
        if stage.launched
    ]


def busy_millis(spans: Iterable[Span]) -> int:
    """Return the time in which at least one of the stages ran."""
    total, until = 0, 0
    for start, end, _ in sorted(spans):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def attempts_by_id(stages: Iterable[Stage]) -> dict[int, list[Stage]]:
    """Return the attempts of each stage that ran tasks, in the order of the ids of the stages."""
    attempts: dict[int, list[Stage]] = {}
    for stage in stages:
        attempts.setdefault(stage.id, []).append(stage)
    return {id: own for id, own in sorted(attempts.items()) if any(each.launched for each in own)}


def joined(attempts: Iterable[Stage], column: str) -> array[int]:
    """Return the values of a column, such as `launched`, of all tasks of the attempts."""
    values = array("q")
    for attempt in attempts:
        values.extend(getattr(attempt, column))
    return values


def merged(attempts: Sequence[Stage]) -> Stage:
    """Return one stage with the tasks of all attempts, and all else of the last attempt."""
    last = attempts[-1]
    if len(attempts) == 1:
        # Most stages have one attempt, and the columns of a large stage need much memory.
        return last
    columns = [name for name, value in vars(last).items() if isinstance(value, array)]
    numbers: dict[str, Any] = {
        **{name: joined(attempts, name) for name in columns},
        **{name: sum(getattr(attempt, name) for attempt in attempts) for name in _SUMS},
    }
    places = accumulate((attempt.tasks for attempt in attempts), initial=0)
    return dataclasses.replace(
        last,
        **numbers,
        on_new_executors=[
            first + task
            for first, attempt in zip(places, attempts, strict=False)
            for task in attempt.on_new_executors
        ],
        peak_memory=max(attempt.peak_memory for attempt in attempts),
        failure_reasons=sum((Counter(each.failure_reasons) for each in attempts), Counter()),
    )


def median(values: Iterable[int]) -> int:
    """Return the upper median, as Spark's page on a stage shows it; 0 without values."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0


def millis(info: Mapping[str, Any]) -> int:
    return max(0, values.millis(info["Finish Time"]) - values.millis(info["Launch Time"]))
