"""Findings about time in which some task slots are idle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from apportion._util.units import count_text, seconds_text, size_text
from apportion.logs.advise.model.findings import Decided, Finding, Kind, percent_text
from apportion.logs.advise.model.stages import ADAPTIVE, MeasuredStage
from apportion.logs.advise.rules import limits
from apportion.logs.advise.rules.files import LARGER_NUMBER, ONE_PARTITION, smaller_scan_tasks
from apportion.logs.eventlog.tasks import median
from apportion.logs.simulate.arithmetic.policy import (
    ADVISORY_SIZE,
    SKEW_FACTOR,
    SKEW_JOIN,
    SKEW_THRESHOLD,
)

_REPARTITION = "repartition the input of this stage into more partitions"
_NEW_TEXT = " It was among the first tasks of a new executor, which loads its code first."
_SECOND_RUN = "compare with a second run: the executor of the long task was new"


def skew(stage: MeasuredStage, layout: Decided | None) -> Iterator[Finding]:
    """Find stages that wait for one long task."""
    # Only the code of tasks counts. A new executor loads its classes before, for many seconds.
    longest, usual_seconds = max(stage.run_millis) / 1000, median(stage.run_millis) / 1000
    if stage.tasks < limits.MIN_SKEW_TASKS or longest < usual_seconds * limits.SKEW_RATIO:
        return
    slowest = max(range(stage.tasks), key=stage.run_millis.__getitem__)
    ends = sorted(stage.finished)
    if ends[-1] - stage.finished[slowest] > stage.seconds * 1000 * limits.MAX_SKEW_DELAY:
        return
    # The stage waits for its longest tasks after three quarters of the tasks have ended.
    waits = (ends[-1] - ends[stage.tasks * 3 // 4 - 1]) / 1000
    even = stage.task_seconds / stage.peak
    possible = min(longest - usual_seconds, stage.seconds - even, waits)
    if possible < limits.MIN_SKEW_SECONDS:
        return
    size, usual = stage.read_bytes[slowest], median(stage.read_bytes)
    has_more_bytes = size >= max(1, usual) * limits.BYTES_SKEW_RATIO
    # The parts of a split partition read at most twice its bytes (`SkewSplits.scala`).
    read_twice = min(possible, stage.seconds - even - longest / stage.peak)
    is_new = slowest in stage.on_new_executors
    splits = has_more_bytes and _would_split(stage, slowest, layout)
    bytes_text = (
        f"It read {size_text(size)}, and the median task {size_text(usual)}."
        if size or usual
        else "The log has no bytes for these tasks."
    )
    yield Finding(
        kind=Kind.SKEW,
        short=f"longest task {seconds_text(longest)}, median {seconds_text(usual_seconds)}",
        text=f"The longest of {stage.tasks} tasks ran for {seconds_text(longest)}, the median "
        f"for {seconds_text(usual_seconds)}. {bytes_text}{_NEW_TEXT if is_new else ''}",
        apportion=_split_text(stage, has_more_bytes, splits),
        without=[_SECOND_RUN]
        if is_new and not has_more_bytes
        else _skew_settings(stage, has_more_bytes, size, usual),
        helps=splits,
        gain=stage.gain(limits.SPLIT_SHARE * read_twice if splits else 0, possible),
        evidence={
            "tasks": stage.tasks,
            "longest_task_seconds": longest,
            "median_task_seconds": usual_seconds,
            "longest_task_bytes": size,
            "median_task_bytes": usual,
            "largest_task_bytes": max(stage.read_bytes),
            "is_on_new_executor": int(is_new),
            "stage_seconds": stage.seconds,
        },
        decided=layout if splits else None,
    )


def idle_cores(stage: MeasuredStage, layout: Decided | None) -> Iterator[Finding]:
    """Find stages with fewer tasks than slots, while nothing else runs."""
    idle_seconds = stage.seconds * stage.alone
    busy = stage.task_seconds / (stage.seconds * stage.slots) if stage.seconds else 1.0
    # A new executor that loads its classes is slow, with any number of tasks.
    starts_slowly = sum(stage.run_millis) < sum(stage.millis) * limits.MIN_RUN_SHARE
    if (
        stage.tasks >= stage.slots
        or stage.facts.limits
        or starts_slowly
        or (len(stage.on_new_executors) == stage.tasks and stage.seconds < limits.START_SECONDS)
        or idle_seconds < limits.MIN_IDLE_SECONDS
        or busy > limits.MAX_BUSY_SHARE
    ):
        return
    possible = min(idle_seconds, stage.seconds - stage.task_seconds / stage.slots)
    helps = layout is not None and layout.tasks > stage.tasks
    yield Finding(
        kind=Kind.IDLE_CORES,
        short=f"{count_text(stage.tasks, 'task')} on {stage.slots:.0f} task slots",
        text=f"{count_text(stage.tasks, 'task')} ran for {seconds_text(stage.seconds)} on "
        f"{stage.slots:.0f} task slots. The slots were busy for {percent_text(busy)} of the time."
        f"{_reads_text(stage)}",
        apportion=_more_tasks_text(stage, layout),
        without=_more_tasks_settings(stage, layout),
        helps=helps,
        gain=stage.gain(0, possible),
        evidence={
            "tasks": stage.tasks,
            "slots": stage.slots,
            "busy_share": busy,
            "alone_seconds": idle_seconds,
            "read_bytes": stage.read_total,
            "largest_task_bytes": max(stage.read_bytes),
            "stage_seconds": stage.seconds,
        },
        decided=layout if helps else None,
    )


def last_wave(stage: MeasuredStage, layout: Decided | None) -> Iterator[Finding]:
    """Find stages that end with fewer running tasks than slots for a long time."""
    peak = stage.peak
    if stage.tasks <= peak:
        return
    since = max(stage.launched)
    idle, end = 0, since
    for (time, running), (until, _) in itertools.pairwise(stage.running()):
        if time >= since:
            idle += max(0, peak - running) * (until - time)
            end = until
    possible = idle / peak / 1000
    if possible < max(limits.MIN_TAIL_SECONDS, stage.seconds * limits.MIN_TAIL_SHARE):
        return
    can_change = layout is not None
    yield Finding(
        kind=Kind.LAST_WAVE,
        short=f"idle slots for the last {seconds_text((end - since) / 1000)}",
        text=f"{count_text(stage.tasks, 'task')} ran in waves of {peak}. After the last task "
        f"started, the stage took {seconds_text((end - since) / 1000)} more, and slots were idle "
        f"for {seconds_text(idle / 1000)} in total.",
        apportion="fills waves of task slots with spark.apportion.ranges=balanced and "
        "spark.apportion.rounding=waves. These are not the defaults."
        if can_change
        else stage.facts.why_unchanged,
        without=_tail_settings(stage, peak),
        gain=stage.gain(0, possible),
        evidence={
            "tasks": stage.tasks,
            "peak_tasks": peak,
            "last_wave_seconds": (end - since) / 1000,
            "idle_slot_seconds": idle / 1000,
            "stage_seconds": stage.seconds,
        },
        settings={"ranges": "balanced", "rounding": "waves"} if can_change else {},
    )


def _reads_text(stage: MeasuredStage) -> str:
    """Return a sentence about the largest task, if it reads much."""
    largest = max(stage.read_bytes)
    return f" One task read {size_text(largest)}." if largest >= limits.LARGE_READ else ""


def _would_split(stage: MeasuredStage, task: int, layout: Decided | None) -> bool:
    """Return whether Apportion would split the shuffle partition that a task read."""
    if layout is None or not stage.facts.splittable:
        return False
    share = max(layout.total_bytes // layout.tasks, min(layout.target_bytes, 1 << 20))
    return stage.shuffle_read_bytes[task] > share * limits.SPLIT_TOLERANCE


def _mostly_scans(stage: MeasuredStage) -> bool:
    return sum(stage.input_bytes) > stage.shuffle_total


def _split_text(stage: MeasuredStage, has_more_bytes: bool, splits: bool) -> str:
    if splits:
        return "splits large shuffle partitions of this join between several tasks."
    if not stage.facts.is_known or stage.facts.was_decided:
        return stage.facts.why_unchanged
    if not has_more_bytes:
        return "does not help, because the long task did not read many more bytes."
    if _mostly_scans(stage):
        return "does not change the pieces into which Spark cuts these files."
    if stage.facts.whole_keys:
        return "cannot split the partition, because an operator needs all rows of a key."
    return "does not split the partitions of this stage."


def _skew_settings(stage: MeasuredStage, has_more_bytes: bool, size: int, usual: int) -> list[str]:
    if not has_more_bytes:
        if not stage.facts.operators:
            return ["look for a slow host, or for a task with more work in its code"]
        return ["look for a slow host, or for rows that multiply in a join or an explode"]
    if _mostly_scans(stage):
        if not stage.facts.files:
            return [_REPARTITION]
        # Spark gives each task about the same bytes of the files. A task that reads much more has
        # a block that cannot be cut, such as a row group of Parquet.
        if size > 2 * stage.facts.file_bytes // stage.tasks:
            return ["smaller row groups or files", "a REPARTITION hint after the scan"]
        return [smaller_scan_tasks(stage)]
    if stage.facts.splittable and (settings := _split_settings(stage, size, usual)):
        return settings
    return ["aggregate before the shuffle, or spread the key over more values"]


def _split_settings(stage: MeasuredStage, size: int, usual: int) -> list[str]:
    """Return the settings with which Spark splits a partition of a join."""
    settings = [] if stage.facts.is_adaptive else [f"{ADAPTIVE}=true"]
    if not stage.confs.flag(SKEW_JOIN):
        settings.append(f"{SKEW_JOIN}=true")
    # Spark splits partitions above the threshold and above this multiple of the median
    # (`OptimizeSkewedJoin`).
    needed = []
    if size <= stage.confs.size(SKEW_THRESHOLD):
        needed.append(f"{SKEW_THRESHOLD}={max(1, size // 2 >> 20)}MB")
    if size <= stage.confs.factor(SKEW_FACTOR) * usual:
        needed.append(f"{SKEW_FACTOR}={max(1, size // max(usual, 1) // 2)}")
    return [", with ".join([*settings, *needed])] if settings or needed else []


def _more_tasks_text(stage: MeasuredStage, layout: Decided | None) -> str:
    if layout is not None:
        more = "" if layout.tasks > stage.tasks else ", which is not more"
        return f"decides {layout.text} {layout.why}{more}."
    return stage.facts.why_unchanged


def _more_tasks_settings(stage: MeasuredStage, layout: Decided | None) -> list[str]:
    if stage.facts.single:
        return [ONE_PARTITION]
    if stage.facts.set_by_query:
        return [LARGER_NUMBER]
    if layout is not None:
        slots = int(stage.slots)
        partitions = f"spark.sql.shuffle.partitions={slots}"
        # Adaptive execution merges shuffle partitions, but cuts none.
        if not stage.facts.is_adaptive or (stage.facts.partitions or slots) < slots:
            return [partitions]
        return [f"{ADVISORY_SIZE}={max(1, stage.shuffle_total // slots >> 20)}MB"]
    return _more_partitions(stage)


def _tail_settings(stage: MeasuredStage, peak: int) -> list[str]:
    if stage.facts.reads_shuffles:
        return [f"spark.sql.shuffle.partitions as a multiple of {peak}", "more, smaller tasks"]
    return _more_partitions(stage)


def _more_partitions(stage: MeasuredStage) -> list[str]:
    if stage.facts.files:
        return [smaller_scan_tasks(stage)]
    if stage.facts.is_outside_of_sql:
        return [f"more partitions in the code of {stage.name}"]
    return [_REPARTITION]
