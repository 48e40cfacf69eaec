"""Findings about the number of tasks that read shuffles."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from apportion._util.units import count_text, seconds_text, size_text
from apportion.logs.advise.model.findings import Decided, Finding, Gain, Kind, total
from apportion.logs.advise.model.stages import ADAPTIVE, MeasuredStage
from apportion.logs.advise.rules import limits
from apportion.logs.eventlog.tasks import median
from apportion.logs.simulate.arithmetic.decider import likely_tasks
from apportion.logs.simulate.arithmetic.policy import ADVISORY_SIZE, Confs, Policy

NOT_ADAPTIVE = "adaptive-execution-off"
_COALESCE = "spark.sql.adaptive.coalescePartitions."


def decided(stage: MeasuredStage, confs: Confs) -> Decided | None:
    """Return Apportion's number of tasks by bytes; None if it would not set the number.

    Apportion runs inside of adaptive execution. So it sets no number if adaptive execution is on
    but did not apply to the query. It can raise the number if rows do not fit the memory of a task.
    """
    can_adapt = stage.facts.is_adaptive or not confs.flag(ADAPTIVE)
    if not stage.facts.tasks_can_change or not can_adapt or not stage.shuffle_total:
        return None
    policy = Policy.from_confs(confs, max(1, int(stage.slots)), stage.shuffle_total)
    if stage.facts.multiplies_rows:
        volume = min(policy.data_volume_per_task, policy.min_task_volume)
        policy = dataclasses.replace(policy, data_volume_per_task=volume)
    size, broadcast = stage.shuffle_total, stage.facts.broadcast_bytes
    tasks, tasks_high = (
        policy.parallelism or likely_tasks(each, policy, broadcast)
        for each in (size, int(size * limits.RECORDED_SIZE))
    )
    sizes = sorted(stage.shuffle_read_bytes, reverse=True)
    without_slots = dataclasses.replace(policy, slots=None)
    by_bytes = policy.parallelism or likely_tasks(size, without_slots, broadcast)
    # If each task read one shuffle partition, ranges of equal width have at most this many of them.
    width = -(-len(sizes) // tasks)
    is_each_partition = stage.tasks == stage.facts.partitions and not stage.facts.splittable
    return Decided(
        tasks=tasks,
        tasks_high=tasks_high,
        target_bytes=policy.data_volume_per_task,
        total_bytes=size,
        largest_task_low=-(-size // tasks_high),
        largest_task_high=sum(sizes[:width]) if is_each_partition else None,
        uses_slots=policy.slots if tasks > by_bytes else None,
    )


def tiny_tasks(stage: MeasuredStage, fewer: Decided | None) -> Iterator[Finding]:
    """Find tasks that mostly start and stop."""
    if (
        not fewer
        or stage.facts.runs_user_code
        or stage.median >= limits.TINY_TASK_SECONDS
        or stage.shuffle_total > stage.tasks * fewer.target_bytes // limits.FAR_BELOW
        or stage.tasks < fewer.tasks_high * limits.FEWER_TASKS
    ):
        return
    mean = stage.shuffle_total // stage.tasks
    yield Finding(
        kind=Kind.TINY_TASKS,
        cause=None if stage.facts.is_adaptive or stage.confs.flag(ADAPTIVE) else NOT_ADAPTIVE,
        short=f"{count_text(stage.tasks, 'task')} where {fewer.tasks_high} would do",
        text=f"{count_text(stage.tasks, 'task')} read {size_text(stage.shuffle_total)}, so "
        f"{size_text(mean)} each. The median task took {seconds_text(stage.median)}.",
        apportion=f"decides {fewer.text} {fewer.why}, with a target of "
        f"{size_text(fewer.target_bytes)} per task.{_largest_text(fewer)}{_need_text(stage)}",
        without=_fewer_tasks_settings(stage, fewer.tasks_high),
        helps=True,
        gain=gain_of_fewer_tasks(stage, fewer.tasks_high),
        evidence={
            "tasks": stage.tasks,
            "shuffle_bytes": stage.shuffle_total,
            "mean_task_bytes": mean,
            "median_task_seconds": stage.median,
            "task_seconds": stage.task_seconds,
            "stage_seconds": stage.seconds,
        },
        decided=fewer,
    )


def gain_of_fewer_tasks(stage: MeasuredStage, tasks: int) -> Gain:
    """Return the gain if `tasks` tasks did the same work.

    The overhead of a task is not in the log. It is at least the time that Spark spends outside of
    the task's code, and at most about the duration of the shortest tasks. If the tasks read almost
    nothing, all their time can be overhead.
    """
    outside = (each - run for each, run in zip(stage.millis, stage.run_millis, strict=True))
    least = max(0, median(outside)) / 1000
    is_empty = stage.read_total < stage.tasks * limits.NEGLIGIBLE_BYTES
    most = (
        stage.task_seconds / stage.tasks
        if is_empty
        else sorted(stage.millis)[stage.tasks // 10] / 1000
    )
    peak = stage.peak
    saved = [
        stage.task_seconds / peak
        - (max(0.0, stage.task_seconds - stage.tasks * overhead) + tasks * overhead)
        / min(peak, tasks)
        for overhead in (min(least, most), max(least, most))
    ]
    # Fewer tasks can be less even. The lower bound adds the longest task once more.
    return stage.gain(min(saved) - stage.longest, max(saved))


def large_tasks(stage: MeasuredStage, more: Decided | None) -> Iterator[Finding]:
    """Find tasks far above the target size while slots are idle."""
    if (
        not more
        or stage.tasks >= stage.slots
        or stage.shuffle_total < stage.tasks * more.target_bytes * limits.FAR_ABOVE
        or more.tasks < stage.tasks * limits.FEWER_TASKS
    ):
        return
    used = min(more.tasks_high, int(stage.slots))
    mean = stage.shuffle_total // stage.tasks
    yield Finding(
        kind=Kind.LARGE_TASKS,
        short=f"{count_text(stage.tasks, 'task')} where {more.tasks} could run",
        text=f"{count_text(stage.tasks, 'task')} read {size_text(stage.shuffle_total)}, so "
        f"{size_text(mean)} each, with {stage.slots:.0f} task slots. The stage took "
        f"{seconds_text(stage.seconds)}.",
        apportion=f"decides {more.text} {more.why}, with a target of "
        f"{size_text(more.target_bytes)} per task.{_need_text(stage)}",
        without=_more_tasks_settings(stage, more),
        helps=True,
        # All rows of a key go to one task, so more tasks help only if there are more keys.
        gain=stage.gain(0, stage.seconds - stage.task_seconds / used),
        evidence={
            "tasks": stage.tasks,
            "slots": stage.slots,
            "shuffle_bytes": stage.shuffle_total,
            "mean_task_bytes": mean,
            "task_seconds": stage.task_seconds,
            "stage_seconds": stage.seconds,
        },
        decided=more,
    )


@dataclasses.dataclass(frozen=True)
class UnadaptedStage:
    """A stage that reads shuffles without adaptive execution."""

    tasks: int
    task_seconds: float
    shuffle_bytes: int
    slots: float
    is_fixed: bool
    """Whether it reads each tiny shuffle partition in a separate task."""
    needed: int
    """Least number of shuffle partitions for all shuffles that is enough for this stage. For a
    fixed stage, Apportion decides at most as many tasks."""
    gain: Gain
    """Gain of fewer tasks for a fixed stage."""


def unadapted(stage: MeasuredStage, confs: Confs) -> UnadaptedStage | None:
    """Return the numbers of a stage that reads shuffles without adaptive execution.

    Return None for other stages, and for engines that decide the tasks of their stages themselves.
    """
    facts = stage.facts
    # The operators of some stages are not known, as for the later tasks of a limit. Logs can have
    # bytes of shuffles for queries without shuffles.
    reads = facts.reads_shuffles or (facts.query_has_shuffles and stage.shuffle_total > 0)
    if not reads or facts.is_adaptive or facts.is_stateful or facts.engine:
        return None
    number = confs.number("spark.sql.shuffle.partitions") or 200
    by_bytes = None if facts.runs_user_code else decided(stage, confs)
    needed = by_bytes.tasks_high if by_bytes else stage.tasks
    is_tiny = stage.shuffle_total < stage.tasks * limits.TINY_PARTITION
    is_too_many = is_tiny and stage.tasks >= needed * limits.FEWER_TASKS
    is_fixed = is_too_many and stage.tasks == facts.partitions == number
    return UnadaptedStage(
        tasks=stage.tasks,
        task_seconds=stage.task_seconds,
        shuffle_bytes=stage.shuffle_total,
        slots=stage.slots,
        is_fixed=is_fixed,
        needed=needed if facts.partitions == number else 1,
        gain=gain_of_fewer_tasks(stage, needed) if is_fixed else Gain(),
    )


def adaptive_execution_off(stages: Sequence[UnadaptedStage], confs: Confs) -> Iterator[Finding]:
    """Find applications whose shuffles run without adaptive execution."""
    seconds = sum(stage.task_seconds for stage in stages)
    if confs.flag(ADAPTIVE) or seconds < limits.MIN_SHUFFLE_TASK_SECONDS:
        return
    yield Finding(
        kind=Kind.ADAPTIVE_EXECUTION_OFF,
        cause=NOT_ADAPTIVE,
        short=f"{count_text(len(stages), 'stage')} without adaptive execution",
        text=f"{count_text(len(stages), 'stage')} read shuffles without adaptive execution, with "
        f"{seconds_text(seconds)} of task time. Spark cannot fit the number of tasks to the bytes.",
        apportion=f"needs {ADAPTIVE}=true too.",
        without=[f"{ADAPTIVE}=true"],
        gain=Gain(),
        evidence={
            "stages": len(stages),
            "tasks": sum(stage.tasks for stage in stages),
            "task_seconds": seconds,
        },
    )


def fixed_partitions(
    stages: Sequence[UnadaptedStage], confs: Confs, most_seconds: float
) -> Iterator[Finding]:
    """Find stages that read each tiny shuffle partition in a separate task."""
    number = confs.number("spark.sql.shuffle.partitions") or 200
    fixed = [stage for stage in stages if stage.is_fixed]
    seconds = sum(stage.task_seconds for stage in fixed)
    slots = max((stage.slots for stage in fixed), default=1)
    gain = total((stage.gain for stage in fixed), most_seconds, most_seconds * slots / 3600)
    is_small = gain.seconds_high < limits.MIN_GAIN_SECONDS
    # A single stage has a finding of its own.
    if len(fixed) < 2 or seconds < limits.MIN_SHUFFLE_TASK_SECONDS or is_small:
        return
    tasks, size = sum(stage.tasks for stage in fixed), sum(stage.shuffle_bytes for stage in fixed)
    most = max(stage.needed for stage in fixed)
    needed = max(stage.needed for stage in stages)
    # A number for all shuffles must be enough for the largest one.
    settings = (
        [f"spark.sql.shuffle.partitions={needed}"] if needed * limits.FEWER_TASKS <= number else []
    )
    yield Finding(
        kind=Kind.FIXED_PARTITIONS,
        cause=NOT_ADAPTIVE,
        short=f"{count_text(len(fixed), 'stage')} with all {number} shuffle partitions",
        text=f"{count_text(len(fixed), 'stage')} used all {number} shuffle partitions, with "
        f"{size_text(size // tasks)} per task on average. The tasks took {seconds_text(seconds)}.",
        apportion=f"decides at most {count_text(most, 'task')} for each of these stages by bytes.",
        without=[f"{ADAPTIVE}=true", *settings],
        helps=True,
        gain=gain,
        evidence={
            "stages": len(fixed),
            "partitions": number,
            "tasks": tasks,
            "shuffle_bytes": size,
            "mean_task_bytes": size // tasks,
            "task_seconds": seconds,
        },
    )


def _largest_text(layout: Decided) -> str:
    low, high = layout.largest_task_low, layout.largest_task_high
    if layout.tasks_high == 1:
        return ""
    if high is None or high <= low:
        return f" The largest task reads {size_text(low)} or more."
    return f" The largest task reads {size_text(low)} to {size_text(high)}."


def _need_text(stage: MeasuredStage) -> str:
    """Return a sentence if Apportion would keep the tasks of Spark, as the user wants them."""
    can_coalesce = stage.confs.flag(f"{_COALESCE}enabled")
    return "" if can_coalesce else f" It needs {_COALESCE}enabled=true too."


def _fewer_tasks_settings(stage: MeasuredStage, tasks: int) -> list[str]:
    if not stage.facts.is_adaptive:
        number = f"spark.sql.shuffle.partitions={tasks}, if the other shuffles are as small"
        return [f"{ADAPTIVE}=true", number]
    if not stage.confs.flag(f"{_COALESCE}enabled"):
        return [f"{_COALESCE}enabled=true"]
    # Without these settings, Spark makes as many tasks as slots, and ignores the advisory size.
    if not stage.confs.is_since(3, 2):
        return [f"{_COALESCE}minPartitionNum={tasks}"]
    size = f"{ADVISORY_SIZE}={_power(stage.shuffle_total, tasks)}"
    if not stage.confs.flag(f"{_COALESCE}parallelismFirst"):
        return [size]
    return [f"{_COALESCE}parallelismFirst=false, with {size}"]


def _more_tasks_settings(stage: MeasuredStage, more: Decided) -> list[str]:
    if not stage.facts.is_adaptive or stage.tasks >= (stage.facts.partitions or 0):
        return [f"spark.sql.shuffle.partitions={more.tasks_high}"]
    advisory = _power(more.total_bytes, more.tasks)
    if stage.confs.size(ADVISORY_SIZE) > more.total_bytes // more.tasks * limits.FAR_ABOVE:
        return [f"{ADVISORY_SIZE}={advisory}"]
    return ["keys with more values, because few shuffle partitions have most of the bytes"]


def _power(size: int, tasks: int) -> str:
    """Return the size of a task in MB, rounded up."""
    return f"{max(1, math.ceil(size / tasks / (1 << 20)))}MB"
