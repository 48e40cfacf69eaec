"""Findings about memory, garbage collection, shuffle reads and failures."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._util.units import count_text, seconds_text, size_text
from apportion.advise import limits
from apportion.advise.findings import Finding, Gain, Kind, percent_text
from apportion.advise.stages import MeasuredStage
from apportion.advise.task_counts import decided
from apportion.simulate.arithmetic.policy import Confs

_MORE_MEMORY = ["more spark.executor.memory", "fewer spark.executor.cores"]


def spill(stage: MeasuredStage, confs: Confs) -> Iterator[Finding]:
    """Find stages that wrote rows to disk because they did not fit the memory."""
    spilled = stage.spilled_bytes
    if spilled < max(limits.MIN_SPILLED, stage.read_total * limits.MIN_SPILLED_SHARE):
        return
    # Spilled bytes are written once and read once.
    low, high = (2 * spilled / speed for speed in (limits.FAST_SPILL, limits.SLOW_SPILL))
    reads = decided(stage, confs)
    helps = reads is not None and stage.facts.holds_rows
    yield Finding(
        kind=Kind.SPILL,
        text=f"{count_text(stage.tasks, 'task')} spilled {size_text(spilled)} to disk, and read "
        f"{size_text(stage.read_total)}. The largest execution memory of a task was "
        f"{size_text(stage.peak_memory)}.",
        apportion="gives the stage more tasks if the rows of a task do not fit its memory. The "
        "log does not have the size of the rows, so the number is not known."
        if helps
        else _unchanged(stage, confs),
        without=[_smaller_tasks(stage), *_MORE_MEMORY],
        helps=helps,
        gain=stage.gain(low / stage.peak, high / stage.peak),
        evidence={
            "tasks": stage.tasks,
            "spilled_bytes": spilled,
            "read_bytes": stage.read_total,
            "peak_task_memory": stage.peak_memory,
            "stage_seconds": stage.seconds,
        },
    )


def garbage_collection(stage: MeasuredStage) -> Iterator[Finding]:
    """Find stages whose tasks waited for the garbage collector."""
    seconds, share = _share(stage.gc_millis, stage)
    if not _is_large(share, seconds, stage):
        return
    yield Finding(
        kind=Kind.GARBAGE_COLLECTION,
        text=f"Garbage collection took {seconds_text(seconds)}, or {percent_text(share)} of the "
        "task time.",
        apportion="does not change the memory of executors.",
        without=_MORE_MEMORY,
        helps=False,
        gain=stage.gain(0, share * stage.seconds),
        evidence={
            "gc_seconds": seconds,
            "gc_share": share,
            "task_seconds": stage.task_seconds,
            "stage_seconds": stage.seconds,
        },
    )


def fetch_wait(stage: MeasuredStage) -> Iterator[Finding]:
    """Find stages whose tasks waited for the bytes of a shuffle."""
    seconds, share = _share(stage.fetch_wait_millis, stage)
    if not _is_large(share, seconds, stage):
        return
    yield Finding(
        kind=Kind.FETCH_WAIT,
        text=f"Tasks waited {seconds_text(seconds)} for {size_text(stage.shuffle_total)} of "
        f"shuffle data, or {percent_text(share)} of the task time.",
        apportion="limits the number of blocks that a task fetches, but not their bytes.",
        without=[
            "fewer tasks in the stage that writes the shuffle",
            "more spark.reducer.maxSizeInFlight",
            "more spark.shuffle.io.numConnectionsPerPeer",
        ],
        helps=False,
        gain=stage.gain(0, share * stage.seconds),
        evidence={
            "fetch_wait_seconds": seconds,
            "fetch_wait_share": share,
            "shuffle_bytes": stage.shuffle_total,
            "task_seconds": stage.task_seconds,
            "stage_seconds": stage.seconds,
        },
    )


def failures(stage: MeasuredStage, confs: Confs) -> Iterator[Finding]:
    """Find stages with failed or killed attempts of tasks."""
    wasted = stage.wasted_millis / 1000
    enough = max(limits.MIN_LOST_TASK_SECONDS, stage.task_seconds * limits.MIN_WASTED_SHARE)
    if not stage.failed_tasks or (wasted < enough and not stage.memory_failures):
        return
    text = (
        f"{count_text(stage.failed_tasks, 'attempt')} of tasks failed or were killed, after "
        f"{seconds_text(wasted)} of task time."
    )
    kind, helps = Kind.FAILED_TASKS, False
    apportion = "does not change failures."
    without = ["see the reasons of the failures on the stage's page in Spark's UI"]
    if stage.memory_failures:
        kind = Kind.OUT_OF_MEMORY
        text += f" {count_text(stage.memory_failures, 'attempt')} ran out of memory."
        helps = decided(stage, confs) is not None and stage.facts.holds_rows
        apportion = (
            "gives the stage more tasks if the rows of a task do not fit its memory. After a "
            "failure by memory, the next run gets four times the tasks."
            if helps
            else _unchanged(stage, confs)
        )
        without = [_smaller_tasks(stage), *_MORE_MEMORY]
    # At worst, the attempts ran one after the other. At best, they delayed nothing.
    bound = stage.gain(0, wasted)
    yield Finding(
        kind=kind,
        text=text,
        apportion=apportion,
        without=without,
        helps=helps,
        gain=Gain(0, bound.seconds_high, 0, wasted / 3600),
        evidence={
            "failed_tasks": stage.failed_tasks,
            "memory_failures": stage.memory_failures,
            "wasted_seconds": wasted,
            "tasks": stage.tasks,
            "task_seconds": stage.task_seconds,
        },
    )


def _share(millis: int, stage: MeasuredStage) -> tuple[float, float]:
    """Return a part of the task time, in seconds and as a share."""
    seconds = min(max(millis, 0) / 1000, stage.task_seconds)
    return seconds, seconds / stage.task_seconds if stage.task_seconds else 0.0


def _is_large(share: float, seconds: float, stage: MeasuredStage) -> bool:
    return (
        share >= limits.MIN_SHARE
        and seconds >= limits.MIN_LOST_TASK_SECONDS
        and share * stage.seconds >= limits.MIN_LOST_SECONDS
    )


def _smaller_tasks(stage: MeasuredStage) -> str:
    if not stage.shuffle_total:
        return "less spark.sql.files.maxPartitionBytes" if stage.facts.files else "smaller tasks"
    if stage.facts.is_adaptive:
        return "less spark.sql.adaptive.advisoryPartitionSizeInBytes"
    return f"spark.sql.shuffle.partitions above {stage.tasks}"


def _unchanged(stage: MeasuredStage, confs: Confs) -> str:
    if decided(stage, confs) is not None:
        return "does not limit the tasks of this stage by memory, because no operator holds rows."
    return stage.facts.why_unchanged
