"""Measured facts about a stage, in words, for the text and the page."""

from __future__ import annotations

from apportion._util.units import size_text
from apportion.logs.explanation.views.view import StageView

# Smaller shares of the task time are not shown.
_LEAST_SHARE = 0.005
# Scans of few columns read part of the files.
_MUCH_LESS = 10


def facts(stage: StageView) -> list[tuple[str, str]]:
    """Return the measured times, bytes and failures of a stage as (label, text)."""
    work = stage.ran
    if not work:
        return []
    time = [f"{work.wall_millis / 1000:.1f} s"]
    if stage.share is not None:
        time.append(f"{stage.share:.0%} of the task time")
    if stage.is_critical:
        time.append(f"the query waited {stage.waited_millis / 1000:.1f} s for it")
    found = [("time", ", ".join(time))]
    if work.tasks > 1:
        longest = f"longest {work.longest_task_millis / 1000:.1f} s{_times_median(work.time_ratio)}"
        largest = (
            f"largest reads {size_text(work.largest_task_bytes)}{_times_median(work.bytes_ratio)}"
        )
        skewed = ["skewed"] if work.is_skewed else []
        bytes_read = [largest] if work.largest_task_bytes else []
        found.append(("tasks", ", ".join([longest, *bytes_read, *skewed])))
    shares = [
        ("garbage collection", work.gc_share),
        ("waiting for shuffle blocks", work.fetch_wait_share),
    ]
    waits = [f"{name} {share:.0%}" for name, share in shares if share >= _LEAST_SHARE]
    if waits:
        found.append(("overhead", ", ".join(waits)))
    has_outcome = any(logged.decision.outcome for logged in stage.decisions)
    if work.peak_memory and not has_outcome:
        found.append(("memory", f"a task used up to {size_text(work.peak_memory)}"))
    if stage.file_bytes:
        files = size_text(stage.file_bytes)
        # Spark counts no vectored reads of local files.
        is_low = work.input_bytes * _MUCH_LESS < stage.file_bytes
        less = f"; Spark counted {size_text(work.input_bytes)} as read" if is_low else ""
        found.append(("files", f"{files}{less}"))
    if stage.rows is not None:
        found.append(("rows", f"{stage.rows:,}"))
    if work.spilled_bytes:
        found.append(("spilled to disk", size_text(work.spilled_bytes)))
    if work.failed_tasks:
        failed = [f"{work.failed_tasks}, {work.wasted_millis / 1000:.1f} s lost"]
        if work.memory_failures:
            failed.append(f"{work.memory_failures} out of memory")
        found.append(("failed attempts", ", ".join(failed)))
    return found


def _times_median(ratio: float | None) -> str:
    return "" if ratio is None else f" ({ratio:.1f}x the median)".replace(".0x", "x")


def marks(stage: StageView) -> list[str]:
    """Return the problems of a stage in one to three words each: skew, spills and failures."""
    work = stage.ran
    if not work:
        return []
    found = []
    if work.is_skewed:
        found.append("skew")
    if work.spilled_bytes:
        found.append(f"spill {size_text(work.spilled_bytes)}")
    if work.failed_tasks:
        found.append(f"{work.failed_tasks} failed")
    return found
