"""Findings about memory, garbage collection, shuffle reads and failures."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._util.units import count_text, seconds_text, size_text
from apportion.logs.advise.model.findings import Decided, Finding, Gain, Kind, percent_text
from apportion.logs.advise.model.stages import MeasuredStage
from apportion.logs.advise.rules import limits
from apportion.logs.advise.rules.files import LARGER_NUMBER, ONE_PARTITION, smaller_scan_tasks
from apportion.logs.simulate.arithmetic.policy import ADVISORY_SIZE

MEMORY = "memory"
_IN_FLIGHT = "spark.reducer.maxSizeInFlight"
_CONNECTIONS = "spark.shuffle.io.numConnectionsPerPeer"
# Spark's default of the memory of the driver and of executors.
_DEFAULT_MEMORY = "1g"
_RAPIDS_MEMORY = [
    "lower spark.rapids.sql.batchSizeBytes", "lower spark.rapids.sql.concurrentGpuTasks"
]  # fmt: skip


def spill(stage: MeasuredStage, layout: Decided | None) -> Iterator[Finding]:
    """Find stages that wrote rows to disk because they did not fit the memory."""
    spilled, spilling = sum(stage.spilled_bytes), sum(size > 0 for size in stage.spilled_bytes)
    if spilled < max(limits.MIN_SPILLED, stage.read_total * limits.MIN_SPILLED_SHARE):
        return
    # Spilled bytes are written once and read once.
    low, high = (2 * spilled / speed for speed in (limits.FAST_SPILL, limits.SLOW_SPILL))
    helps = layout is not None and stage.facts.holds_rows
    yield Finding(
        kind=Kind.SPILL,
        cause=MEMORY,
        short=f"{size_text(spilled)} spilled to disk",
        text=f"{spilling} of {count_text(stage.tasks, 'task')} spilled "
        f"{size_text(spilled)} to disk. {_read_text(stage)} The largest execution memory of a "
        f"task was {size_text(stage.peak_memory)}.",
        apportion="gives the stage more tasks if the rows of a task do not fit its memory. The "
        "log does not have the size of the rows, so the number is not known."
        if helps
        else _unchanged(stage, layout),
        without=[*_smaller_tasks(stage), *_more_memory(stage)],
        helps=helps,
        gain=stage.gain(low / stage.peak, high / stage.peak),
        evidence={
            "tasks": stage.tasks,
            "spilling_tasks": spilling,
            "spilled_bytes": spilled,
            "read_bytes": stage.read_total,
            "file_bytes": stage.facts.file_bytes,
            "peak_task_memory": stage.peak_memory,
            "stage_seconds": stage.seconds,
        },
        settings=_smaller_target(stage) if helps else {},
    )


def garbage_collection(stage: MeasuredStage) -> Iterator[Finding]:
    """Find stages whose tasks waited for the garbage collector."""
    seconds, share = _share(stage.collected_millis, stage)
    if not _is_large(share, seconds, stage):
        return
    yield Finding(
        kind=Kind.GARBAGE_COLLECTION,
        cause=MEMORY,
        short=f"{percent_text(share)} garbage collection",
        text=f"Garbage collection took {seconds_text(seconds)}, or {percent_text(share)} of the "
        "task time.",
        apportion="does not change the memory of executors.",
        without=_more_memory(stage),
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
    seconds, share = _share(sum(stage.fetch_wait_millis), stage)
    if not _is_large(share, seconds, stage):
        return
    yield Finding(
        kind=Kind.FETCH_WAIT,
        short=f"{percent_text(share)} waiting for shuffle data",
        text=f"Tasks waited {seconds_text(seconds)} for {size_text(stage.shuffle_total)} of "
        f"shuffle data, or {percent_text(share)} of the task time.",
        apportion="limits the number of blocks that a task fetches, but not their bytes.",
        without=[
            "fewer tasks in the stage that writes the shuffle",
            f"raise {_IN_FLIGHT} ({stage.confs.text(_IN_FLIGHT) or '48m'} now)",
            f"raise {_CONNECTIONS} ({stage.confs.text(_CONNECTIONS) or '1'} now)",
        ],
        gain=stage.gain(0, share * stage.seconds),
        evidence={
            "fetch_wait_seconds": seconds,
            "fetch_wait_share": share,
            "shuffle_bytes": stage.shuffle_total,
            "task_seconds": stage.task_seconds,
            "stage_seconds": stage.seconds,
        },
    )


def failures(stage: MeasuredStage, layout: Decided | None) -> Iterator[Finding]:
    """Find stages with failed attempts of tasks."""
    wasted = stage.wasted_millis / 1000
    enough = max(limits.MIN_LOST_TASK_SECONDS, stage.task_seconds * limits.MIN_WASTED_SHARE)
    if not stage.failed_tasks or (wasted < enough and not stage.memory_failures):
        return
    text = (
        f"{count_text(stage.failed_tasks, 'attempt')} of tasks failed, after "
        f"{seconds_text(wasted)} of task time."
    )
    if stage.failure_reasons:
        reason, attempts = max(stage.failure_reasons.items(), key=lambda each: (each[1], each[0]))
        text += f" The most frequent reason is {reason} ({count_text(attempts, 'attempt')})."
    kind, helps = Kind.FAILED_TASKS, False
    short = f"{count_text(stage.failed_tasks, 'attempt')} failed"
    apportion = "does not change failures."
    without = ["see the reasons of the failures on the stage's page in Spark's UI"]
    if stage.memory_failures:
        kind = Kind.OUT_OF_MEMORY
        short = f"{count_text(stage.memory_failures, 'attempt')} out of memory"
        text += f" {count_text(stage.memory_failures, 'attempt')} ran out of memory."
        helps = layout is not None and stage.facts.holds_rows
        apportion = (
            "gives the stage more tasks if the rows of a task do not fit its memory. After a "
            "failure by memory, the next run gets four times the tasks."
            if helps
            else _unchanged(stage, layout)
        )
        without = [*_smaller_tasks(stage), *_more_memory(stage)]
    if stage.runs > 1:
        text += f" Spark ran the stage {stage.runs} times."
    # At best, the attempts delayed nothing. At worst, they ran one after the other, but the tasks
    # that succeeded need their slots in any case.
    bound = stage.gain(0, min(wasted, stage.seconds - stage.task_seconds / stage.slots))
    yield Finding(
        kind=kind,
        cause=MEMORY if stage.memory_failures else None,
        short=short,
        text=text,
        apportion=apportion,
        without=without,
        helps=helps,
        gain=Gain(0, bound.seconds_high, 0, wasted / 3600),
        evidence={
            "failed_tasks": stage.failed_tasks,
            "memory_failures": stage.memory_failures,
            "wasted_seconds": wasted,
            "stage_attempts": stage.runs,
            "tasks": stage.tasks,
            "task_seconds": stage.task_seconds,
        },
        failure_reasons=stage.failure_reasons,
        settings=_smaller_target(stage) if helps else {},
    )


def _read_text(stage: MeasuredStage) -> str:
    """Return a sentence about the bytes that a stage read. Spark counts no vectored reads."""
    if stage.facts.file_bytes > stage.read_total:
        return f"The files that it scanned have {size_text(stage.facts.file_bytes)}."
    return f"The stage read {size_text(stage.read_total)}."


def _smaller_target(stage: MeasuredStage) -> dict[str, str]:
    """Return the setting that makes a task read half as much as a task of the stage."""
    half = stage.read_total // stage.tasks // 2
    return {"dataVolumePerTask": f"{half >> 20}MB"} if half >= 1 << 20 else {}


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


def _smaller_tasks(stage: MeasuredStage) -> list[str]:
    if not stage.shuffle_total:
        reads_files = stage.facts.files or (stage.facts.engine and sum(stage.input_bytes))
        return [smaller_scan_tasks(stage)] if reads_files else []
    if stage.facts.single:
        return [ONE_PARTITION]
    if stage.facts.set_by_query:
        return [LARGER_NUMBER]
    partitions = stage.facts.partitions
    if stage.facts.is_adaptive and (partitions is None or stage.tasks < partitions):
        half = max(1, stage.shuffle_total // stage.tasks // 2 >> 20)
        advisory = f"{ADVISORY_SIZE}={half}MB"
        # Adaptive execution merges shuffle partitions, but cuts none (`CoalesceShufflePartitions`).
        if partitions is not None and partitions < 2 * stage.tasks:
            return [f"spark.sql.shuffle.partitions={2 * stage.tasks}, with {advisory}"]
        return [advisory]
    return [f"spark.sql.shuffle.partitions={2 * stage.tasks}"]


def _more_memory(stage: MeasuredStage) -> list[str]:
    if stage.facts.engine == "RAPIDS":
        return _RAPIDS_MEMORY
    of, cores = (
        ("driver", "fewer cores in spark.master")
        if stage.confs.is_local
        else ("executor", "lower spark.executor.cores")
    )
    memory = f"spark.{of}.memory"
    return [f"raise {memory} ({stage.confs.text(memory) or _DEFAULT_MEMORY} now)", cores]


def _unchanged(stage: MeasuredStage, layout: Decided | None) -> str:
    if layout is not None:
        return "does not limit the tasks of this stage by memory, because no operator holds rows."
    return stage.facts.why_unchanged
