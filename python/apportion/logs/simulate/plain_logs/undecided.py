"""Shuffles of stages whose tasks Apportion did not decide, from the facts of Spark's own log."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Callable, Sequence

from apportion.decision import Decision
from apportion.logs.eventlog import LoggedDecision, PlanNode, plan_text
from apportion.logs.eventlog.fragments import Fragment
from apportion.logs.eventlog.model import LoggedShuffle
from apportion.logs.simulate.arithmetic import spark_reads
from apportion.logs.simulate.arithmetic.adaptive_writes import MAX_PARTITIONS
from apportion.logs.simulate.arithmetic.policy import MULTIPLIED_ROWS, REQUESTED_SIZE, Confs
from apportion.logs.simulate.plain_logs.groups import ReadGroup, UnknownReadsError, read_groups
from apportion.logs.simulate.plain_logs.held_rows import RowTotals, held

# Shuffles whose number of partitions Spark may choose. Spark 3.0 and 3.1 write `true`.
_FREE_SCHEMES = {"hashpartitioning", "rangepartitioning"}
_REBALANCES = {"REBALANCE_PARTITIONS_BY_COL", "REBALANCE_PARTITIONS_BY_NONE"}
_FREE_ORIGINS = {"ENSURE_REQUIREMENTS", "REPARTITION_BY_COL", "true", *_REBALANCES}
# Logs are untrusted input, so memory for a stage has a limit.
_MOST_PARTITIONS = 4096
_MOST_SHUFFLES = 8
# Mean ratio of the bytes that Spark's driver knows to the bytes that tasks read. The driver has the
# size of each block, rounded up to a power of 1.1 (`MapStatus.compressSize`, Spark 3.0 to 4.3).
_KNOWN_BYTES = 0.1 / math.log(1.1)
_ADAPTIVE = "AdaptiveSparkPlan"


@dataclasses.dataclass(frozen=True)
class StageFacts:
    """Facts that the log has about a stage."""

    task_bytes: Sequence[int]
    """Shuffle bytes that each task read."""
    written: Callable[[Fragment], RowTotals]
    """Returns the rows that the tasks of a part of the plan wrote to their shuffle."""
    broadcast: int
    """Bytes of the broadcast tables that each task reads."""
    scans: int
    """Number of scans of files whose tasks belong to the stage."""
    confs: Confs
    default_parallelism: int
    """Spark's default parallelism."""


def is_adaptive(plan: PlanNode | None) -> bool:
    """Return whether a plan ran with adaptive execution. Only then Apportion decides tasks."""
    return plan is not None and any(plan_text.kind(n.name) == _ADAPTIVE for n in plan.walk())


def free_partitions(exchange: str) -> int:
    """Return the number of partitions if Spark may choose it, and 0 otherwise."""
    found = plan_text.partitioning(exchange)
    is_free = found and found.scheme in _FREE_SCHEMES and found.origin in _FREE_ORIGINS
    return found.number if found and is_free else 0


def assumed(fragment: Fragment, facts: StageFacts) -> list[tuple[LoggedDecision, list[Fragment]]]:
    """Return Spark's choices for the shuffles that a stage reads, with the parts that write them.

    The log has the total bytes of a shuffle, but not the bytes of its partitions, so they count as
    equally large. The result is empty if the query sets the tasks, or if they do not follow from
    the bytes.
    """
    try:
        groups = read_groups(fragment)
    except UnknownReadsError:
        return []
    total, tasks = int(sum(facts.task_bytes) * _KNOWN_BYTES), len(facts.task_bytes)
    numbers = [_number(group) for group in groups]
    if total <= 0 or not numbers or not all(numbers):
        return []
    most = min(_MOST_PARTITIONS + 100 * tasks, MAX_PARTITIONS)
    stored = sum(
        number * len(group.shuffles) for number, group in zip(numbers, groups, strict=True)
    )
    if max(numbers) > most or stored > _MOST_SHUFFLES * most:
        return []
    if len(groups) == 1 and not facts.scans:
        sizes, counts = [total], [tasks]
    else:
        sizes = [int(sum(_stored(group, facts)) * _KNOWN_BYTES) for group in groups]
        counts = _counts(groups, numbers, sizes, facts)
    if not counts or counts[0] > numbers[0]:
        return []
    return [
        (_logged(group, number, size, count, facts), group.shuffles)
        for group, number, size, count in zip(groups, numbers, sizes, counts, strict=True)
    ]


def _number(group: ReadGroup) -> int:
    """Return the number of partitions of a group; 0 if it is fixed, or if its shuffles differ."""
    numbers = {free_partitions(read.root.text) for read in group.shuffles}
    return numbers.pop() if len(numbers) == 1 else 0


def _stored(group: ReadGroup, facts: StageFacts) -> list[int]:
    """Return the bytes of each shuffle of a group."""
    return [facts.written(read).stored for read in group.shuffles]


def _counts(
    groups: Sequence[ReadGroup], numbers: Sequence[int], sizes: Sequence[int], facts: StageFacts
) -> list[int]:
    """Return the tasks of each group, as Spark calculates them; empty if they are not known.

    The log has only the tasks of the stage.
    """
    if any(group.is_local for group in groups):
        return []
    fewest = spark_reads.min_tasks(facts.confs, facts.default_parallelism, sizes)
    counts = [
        len(spark_reads.coalesced(_equal(size, number), minimum, facts.confs))
        for size, number, minimum in zip(sizes, numbers, fewest, strict=True)
    ]
    tasks = len(facts.task_bytes)
    # Each task of a Cartesian product reads a pair.
    possible = sum(counts) < tasks if facts.scans else tasks in (sum(counts), math.prod(counts))
    return counts if possible else []


def _equal(size: int, number: int) -> list[int]:
    each, rest = divmod(size, number)
    return [each + 1] * rest + [each] * (number - rest)


def _logged(
    group: ReadGroup, number: int, size: int, tasks: int, facts: StageFacts
) -> LoggedDecision:
    decision = Decision(
        query=None,
        group=0,
        decided_at=datetime.datetime.fromtimestamp(0, datetime.timezone.utc),
        operator="",
        stages=[],
        shuffles=[],
        input_bytes=size,
        broadcast_bytes=facts.broadcast,
        data_volume_per_task=1,
        broadcast_cap=None,
        raw=None,
        rounded=None,
        clamps=[],
        subpartitions=number,
        levels=[],
        blocks=None,
        sparks_blocks=None,
        bytes_read_twice=0,
        parallelism=tasks,
        tasks=tasks,
        ranges=[],
        layout="local" if group.is_local else "observed",
        largest_task_bytes=max(facts.task_bytes),
        mean_task_bytes=size // tasks,
        sources={},
        kind="formula",
        reason="",
        requirement=None,
        slots=None,
        slots_lost=0,
    )
    kinds = {}
    if group.multiplies_rows:
        kinds["dataVolumePerTask"] = MULTIPLIED_ROWS
    written = plan_text.partitioning(group.shuffles[0].root.text)
    if len(group.shuffles) == 1 and written and written.origin in _REBALANCES:
        kinds["mode"] = REQUESTED_SIZE
    stored = _stored(group, facts)
    if not sum(stored):
        stored = [1] * len(stored)
    shuffles = [
        LoggedShuffle(
            _equal(size * part // sum(stored), number),
            held=held(steps, facts.written(read)),
            partitions_set_by="spark",
        )
        for read, steps, part in zip(group.shuffles, group.steps, stored, strict=True)
    ]
    return LoggedDecision(decision, shuffles, source_kinds=kinds)
