"""Findings about files that a stage scans or writes."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._util.units import count_text, seconds_text, size_text
from apportion.logs.advise.model.findings import Decided, Finding, Kind
from apportion.logs.advise.model.stages import MeasuredStage
from apportion.logs.advise.rules import limits
from apportion.logs.advise.rules.task_counts import gain_of_fewer_tasks
from apportion.logs.simulate.arithmetic.files import file_tasks
from apportion.logs.simulate.arithmetic.policy import MAX_PARTITION_BYTES, OPEN_COST

TARGET_FILE_SIZE = "spark.apportion.write.targetFileSize"
LARGER_NUMBER = "a larger number in repartition or coalesce, or no number"
ONE_PARTITION = "a PARTITION BY for a window; a partial result before the last step"


def small_files(stage: MeasuredStage, layout: Decided | None) -> Iterator[Finding]:
    """Find stages that write many small files."""
    size = sum(stage.output_bytes)
    writers = sum(written > 0 for written in stage.output_bytes)
    files = max(stage.facts.written_files, writers)
    if files < limits.MIN_FILES or size >= files * limits.SMALL_FILE:
        return
    # Without the metric of the driver, each task can have written several files.
    at_least, at_most = ("", "") if stage.facts.written_files > 0 else ("at least ", "at most ")
    helps = layout is not None and layout.tasks_high * limits.FEWER_TASKS <= stage.tasks
    yield Finding(
        kind=Kind.SMALL_FILES,
        short=f"{at_least}{count_text(files, 'file')}, {at_most}{size_text(size // files)} each",
        text=f"{count_text(writers, 'task')} wrote {at_least}{count_text(files, 'file')} "
        f"with {size_text(size)}, so {at_most}{size_text(size // files)} each. "
        "Later queries open each file.",
        apportion=f"decides {layout.text} {layout.why}, so fewer tasks write."
        if layout is not None and helps
        else f"makes files of the size in {TARGET_FILE_SIZE} if Spark writes the files of the "
        "table itself and a shuffle comes before the write.",
        without=[
            # Spark 3.1 and older ignore REBALANCE.
            f"{'REBALANCE' if stage.confs.is_since(3, 2) else 'REPARTITION'} hint before the write"
        ],
        helps=helps,
        # The time is lost in later queries, which are not in this log.
        evidence={
            "files": files,
            "writing_tasks": writers,
            "written_bytes": size,
            "mean_file_bytes": size // files,
        },
        decided=layout if helps else None,
    )


def small_scan_tasks(stage: MeasuredStage) -> Iterator[Finding]:
    """Find scans with many tasks that read few bytes."""
    facts, size = stage.facts, sum(stage.input_bytes)
    if not _is_scan(stage) or facts.runs_user_code or facts.is_bucketed:
        return
    file_size = facts.file_bytes // facts.files
    has_small_files = file_size < limits.SMALL_FILE
    largest = stage.confs.size(MAX_PARTITION_BYTES)
    piece = largest * (1 if has_small_files else limits.LARGER_PIECES)
    fewer = max(int(stage.slots), -(-facts.file_bytes // piece))
    if (
        stage.median >= limits.TINY_TASK_SECONDS
        or size >= stage.tasks * limits.SMALL_SCAN_TASK
        or stage.tasks < fewer * limits.FEWER_TASKS
    ):
        return
    yield Finding(
        kind=Kind.SMALL_SCAN_TASKS,
        short=f"{count_text(stage.tasks, 'task')} where {fewer} would do",
        text=f"{count_text(stage.tasks, 'task')} scanned {size_text(size)} of "
        f"{count_text(facts.files, 'file')} with {size_text(file_size)} each. The median task "
        f"took {seconds_text(stage.median)}.",
        apportion="never gives a scan fewer tasks than Spark, unless you set a number.",
        without=["larger files", f"lower {OPEN_COST}"]
        if has_small_files
        else [f"{MAX_PARTITION_BYTES}={piece >> 20}MB"],
        gain=gain_of_fewer_tasks(stage, fewer),
        evidence=_evidence(stage, size),
        settings={"sources.parallelism": str(fewer)},
    )


def large_scan_tasks(stage: MeasuredStage) -> Iterator[Finding]:
    """Find scans with few tasks that read many bytes, while slots are idle."""
    facts, size = stage.facts, sum(stage.input_bytes)
    target = stage.confs.size(MAX_PARTITION_BYTES)
    if (
        not _is_scan(stage)
        or facts.limits
        or stage.tasks >= stage.slots
        or size < stage.tasks * target * limits.FAR_ABOVE
    ):
        return
    slots = int(stage.slots)
    tasks = file_tasks(facts.files, facts.file_bytes, stage.confs, slots)
    are_whole = reads_whole_files(stage)
    helps = not are_whole and stage.facts.is_adaptive and tasks > stage.tasks
    yield Finding(
        kind=Kind.LARGE_SCAN_TASKS,
        short=f"{count_text(stage.tasks, 'task')} on {slots} task slots",
        text=f"{count_text(stage.tasks, 'task')} scanned {size_text(size)} of "
        f"{count_text(facts.files, 'file')}, so {size_text(size // stage.tasks)} each, with "
        f"{slots} task slots. The stage took {seconds_text(stage.seconds)}.",
        apportion="cannot split the files: each task read whole files."
        if are_whole
        else f"decides {count_text(tasks, 'task')} by the size of the files.",
        without=[smaller_scan_tasks(stage)],
        helps=helps,
        gain=stage.gain(0, stage.seconds - stage.task_seconds / stage.slots),
        evidence=_evidence(stage, size),
        decided=Decided(tasks, tasks, target, facts.file_bytes, -(-facts.file_bytes // tasks), None)
        if helps
        else None,
    )


def reads_whole_files(stage: MeasuredStage) -> bool:
    """Return whether Spark did not cut files above its maximum, as their format prevents that."""
    largest = max(stage.input_bytes, default=0)
    return stage.tasks <= stage.facts.files and largest > stage.confs.size(MAX_PARTITION_BYTES)


def smaller_scan_tasks(stage: MeasuredStage) -> str:
    """Return what makes a scan run more and smaller tasks, in words."""
    if reads_whole_files(stage):
        return "more, smaller files in a format that Spark can split"
    # As many tasks as slots, and at least twice as many as before.
    tasks = max(2 * stage.tasks, int(stage.slots))
    size = stage.facts.file_bytes or sum(stage.input_bytes)
    piece = min(size // tasks, stage.confs.size(MAX_PARTITION_BYTES) // 2)
    can_split = ", if gzip did not compress the files" if stage.facts.has_text_files else ""
    return f"{MAX_PARTITION_BYTES}={max(1, piece >> 20)}MB{can_split}"


def _is_scan(stage: MeasuredStage) -> bool:
    """Return whether all tasks scan files, and none reads a shuffle."""
    facts = stage.facts
    return (
        facts.files > 0
        and facts.file_bytes > 0
        and not (facts.reads_shuffles or "Union" in facts.operators or stage.shuffle_total)
    )


def _evidence(stage: MeasuredStage, size: int) -> dict[str, int | float]:
    return {
        "tasks": stage.tasks,
        "scanned_bytes": size,
        "files": stage.facts.files,
        "file_bytes": stage.facts.file_bytes,
        "median_task_seconds": stage.median,
        "task_seconds": stage.task_seconds,
        "stage_seconds": stage.seconds,
    }
