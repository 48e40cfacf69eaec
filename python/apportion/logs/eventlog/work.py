"""Measured work of the stages of a plan."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from apportion._util.units import count_text, size_text
from apportion.logs.eventlog import Stage
from apportion.logs.eventlog.fragments import Fragment
from apportion.logs.eventlog.tasks import busy_millis, median, merged, spans

# A stage is skewed if its longest or largest task is this many times the median. A factor below 3
# is common without skew, as the last partition of a scan shows.
_SKEW = 3.0
# Smaller differences do not slow a query down noticeably.
_LEAST_SKEWED_MILLIS = 1_000
_LEAST_SKEWED_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True)
class Ran:
    """Measured work of a stage, summed over all attempts."""

    stages: list[int]
    """Ids of Spark's stages."""
    tasks: int
    tasks_of_stages: list[int]
    """Number of tasks of each of Spark's stages."""
    most_tasks: int
    """Number of tasks of the largest of these stages. A stage that samples rows for a sort runs
    twice."""
    failed_tasks: int
    """Attempts of tasks that failed."""
    profile: int
    """Id of the resource profile. Stages with the same profile share slots."""
    started: int | None
    """Launch of the first task, in milliseconds since 1970."""
    ended: int | None
    """End of the last task, in milliseconds since 1970."""
    wall_millis: int
    """Time with running attempts: from the first launch to the last end of each attempt."""
    task_millis: int
    """Total time of the tasks that succeeded, each from its launch to its end."""
    input_bytes: int
    shuffle_read_bytes: int
    shuffle_written_bytes: int
    output_bytes: int
    """Bytes written to files."""
    spilled_bytes: int
    """Bytes spilled to disk."""
    gc_millis: int
    fetch_wait_millis: int
    """Time that the tasks waited for shuffle blocks."""
    peak_memory: int
    """Most bytes of execution memory of a task."""
    memory_failures: int
    """Attempts of tasks that ran out of memory."""
    wasted_millis: int
    """Run time of the attempts that failed."""
    longest_task_millis: int
    """This field and the next three are of the Spark stage with the most task time."""
    median_task_millis: int
    largest_task_bytes: int
    """Bytes that a task reads from files and shuffles."""
    median_task_bytes: int

    @property
    def name(self) -> str:
        """The ids of Spark's stages in words: `stage 9` or `stages 6 + 10`."""
        ids = " + ".join(map(str, self.stages))
        return f"{'stage' if len(self.stages) == 1 else 'stages'} {ids}"

    @property
    def tasks_text(self) -> str:
        """The number of tasks, as a sum over Spark's stages: `200 + 200`."""
        return " + ".join(map(str, self.tasks_of_stages))

    @property
    def gc_share(self) -> float:
        """Garbage collection as a share of the task time."""
        return self.gc_millis / self.task_millis if self.task_millis else 0.0

    @property
    def fetch_wait_share(self) -> float:
        """Waiting for shuffle blocks as a share of the task time."""
        return self.fetch_wait_millis / self.task_millis if self.task_millis else 0.0

    @property
    def time_ratio(self) -> float | None:
        """Longest task divided by the median; None for a median of 0."""
        return _ratio(self.longest_task_millis, self.median_task_millis)

    @property
    def bytes_ratio(self) -> float | None:
        """Bytes of the largest task divided by the median; None for a median of 0."""
        return _ratio(self.largest_task_bytes, self.median_task_bytes)

    @property
    def is_skewed(self) -> bool:
        """Whether one task has far more time or bytes than the median, and enough to matter."""
        millis = (self.longest_task_millis, self.median_task_millis, _LEAST_SKEWED_MILLIS)
        sizes = (self.largest_task_bytes, self.median_task_bytes, _LEAST_SKEWED_BYTES)
        return any(
            most >= _SKEW * median and most - median >= least
            for most, median, least in (millis, sizes)
        )

    def text(self) -> str:
        """Return a sentence about the stages, tasks and bytes."""
        moved = [
            ("scanned", self.input_bytes),
            ("read from shuffles", self.shuffle_read_bytes),
            ("written to a shuffle", self.shuffle_written_bytes),
            ("written to files", self.output_bytes),
        ]
        parts = [
            self.name,
            f"{self.tasks_text} {'task' if self.tasks == 1 else 'tasks'}",
            f"{self.task_millis / 1000:.1f} s of task time",
            *(f"{size_text(size)} {kind}" for kind, size in moved if size),
        ]
        if self.failed_tasks:
            parts.append(f"{count_text(self.failed_tasks, 'task')} failed")
        return f"Ran as Spark {', '.join(parts)}."


def attempts_of(fragments: Sequence[Fragment], stages: Iterable[Stage]) -> list[list[Stage]]:
    """Return the attempts of Spark's stages that ran each fragment, in the order of `fragments`.

    An attempt belongs to the fragment with most of the metrics that it updated. On a GPU, readers
    of an exchange also update metrics of its writers. A stage that only passes on the rows of an
    exchange, such as a broadcast of a shuffle, is found by the metrics of that exchange.
    """
    attempts: list[list[Stage]] = [[] for _ in fragments]
    unmatched = _match(stages, [fragment.accumulators() for fragment in fragments], attempts)
    read = [
        set[int]() if own else fragment.read_accumulators()
        for fragment, own in zip(fragments, attempts, strict=True)
    ]
    unmatched = _match(unmatched, read, attempts)
    # An attempt whose tasks all failed updated no metrics.
    own_of = {stage.id: own for own in attempts for stage in own}
    for stage in unmatched:
        own_of.get(stage.id, []).append(stage)
    return attempts


def place_failed(
    fragments: Sequence[Fragment], stages: Iterable[Stage], attempts: Sequence[list[Stage]]
) -> None:
    """Add a stage whose tasks all failed to `attempts`, if it can be of only one fragment.

    It updated no metrics. Its fragment has no attempts, but all fragments that it reads have some.
    """
    placed = {stage.id for own in attempts for stage in own}
    failed = [stage for stage in stages if stage.failed_tasks and stage.id not in placed]
    if len({stage.id for stage in failed}) != 1:
        return
    has_run = {id(each): bool(own) for each, own in zip(fragments, attempts, strict=True)}
    able = [
        own
        for fragment, own in zip(fragments, attempts, strict=True)
        if not own and bool(fragment.inputs) == bool(failed[0].parents)
        if all(has_run[id(read)] for read in fragment.inputs)
    ]
    if len(able) == 1:
        able[0].extend(failed)


def _match(
    stages: Iterable[Stage], accumulators: Sequence[set[int]], attempts: Sequence[list[Stage]]
) -> list[Stage]:
    """Add stages to the attempts of the fragments with these metrics. Return the other stages."""
    unmatched: list[Stage] = []
    for stage in stages:
        shared = [len(stage.accumulators.keys() & own) for own in accumulators]
        # The reader comes after the writer, so it is chosen if both have as many metrics.
        most, place = max(((count, place) for place, count in enumerate(shared)), default=(0, 0))
        (attempts[place] if most else unmatched).append(stage)
    return unmatched


def work_of(own: Sequence[Stage]) -> Ran | None:
    """Return the work of attempts of stages; None without attempts."""
    if not own:
        return None
    tasks: Counter[int] = Counter()
    for stage in own:
        tasks[stage.id] += stage.tasks
    every, longest = merged(own), merged(_attempts_of_longest(own))
    sizes = list(map(sum, zip(longest.input_bytes, longest.shuffle_read_bytes, strict=True)))
    return Ran(
        stages=sorted(tasks),
        tasks=tasks.total(),
        tasks_of_stages=[tasks[id] for id in sorted(tasks)],
        most_tasks=max(stage.tasks for stage in own),
        failed_tasks=every.failed_tasks,
        profile=every.profile,
        started=min(every.launched, default=None),
        ended=max(every.finished, default=None),
        wall_millis=busy_millis(spans(own)),
        task_millis=sum(every.task_millis),
        input_bytes=sum(every.input_bytes),
        shuffle_read_bytes=sum(every.shuffle_read_bytes),
        shuffle_written_bytes=sum(every.shuffle_written_bytes),
        output_bytes=sum(every.output_bytes),
        spilled_bytes=sum(every.spilled_bytes),
        gc_millis=every.collected_millis,
        fetch_wait_millis=sum(every.fetch_wait_millis),
        peak_memory=every.peak_memory,
        memory_failures=every.memory_failures,
        wasted_millis=every.wasted_millis,
        longest_task_millis=max(longest.run_millis, default=0),
        median_task_millis=median(longest.run_millis),
        largest_task_bytes=max(sizes, default=0),
        median_task_bytes=median(sizes),
    )


def _attempts_of_longest(own: Sequence[Stage]) -> list[Stage]:
    """Return the attempts of the Spark stage with the most task time.

    A stage that samples rows runs before the stage that sorts them, with other times.
    """
    totals: Counter[int] = Counter()
    for stage in own:
        totals[stage.id] += sum(stage.task_millis)
    longest = max(totals, key=lambda id: (totals[id], id))
    return [stage for stage in own if stage.id == longest]


def _ratio(most: float, median: float) -> float | None:
    return most / median if median > 0 else None
