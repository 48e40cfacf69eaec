"""Spark's own coalescing of shuffle partitions, as its sources of version 4 do it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apportion.simulate.arithmetic.policy import ADVISORY_SIZE, Confs
from apportion.simulate.arithmetic.ranges import Range

_PREFIX = "spark.sql.adaptive.coalescePartitions."
MIN_SIZE = f"{_PREFIX}minPartitionSize"


def min_tasks(confs: Confs, default_parallelism: int, group_bytes: Sequence[int]) -> list[int]:
    """Return the least tasks of each group of shuffles in a stage: all share one number by bytes.

    It is Spark's default parallelism, unless confs set another or put the advisory size first.
    """
    wanted = confs.number(f"{_PREFIX}minPartitionNum")
    if wanted is None:
        wanted = default_parallelism if confs.flag(f"{_PREFIX}parallelismFirst") else 1
    total = sum(group_bytes)
    if len(group_bytes) == 1 or not total:
        return [max(wanted, 1)] * len(group_bytes)
    return [max(1, math.floor(wanted * own / total + 0.5)) for own in group_bytes]


def coalesced(
    sizes: Sequence[int], min_tasks: int, confs: Confs, advisory: int | None = None
) -> list[Range]:
    """Return the ranges that Spark makes of a group's subpartitions, whose sizes are summed up.

    Neighbours are put together up to a target: the advisory size (of the session, unless one is
    given), or less where that makes too few tasks, but not below the least size. A range below the
    least size joins the smaller of its neighbours. Empty ranges are left out.
    """
    whole = [(place, place + 1) for place in range(len(sizes))]
    if not sizes or not confs.flag(f"{_PREFIX}enabled"):
        return whole or [(0, 0)]
    least = confs.size(MIN_SIZE)
    advised = confs.size(ADVISORY_SIZE) if advisory is None else advisory
    target = max(min(math.ceil(sum(sizes) / min_tasks), advised), least)
    ranges = _packed(sizes, target, least)
    return ranges if len(ranges) < len(sizes) else whole


def _packed(sizes: Sequence[int], target: int, least: int) -> list[Range]:
    ranges: list[Range] = []
    start, current, before = 0, sizes[0], 0
    for place in range(1, len(sizes)):
        size = sizes[place]
        if current + size <= target:
            current += size
            continue
        if current < least and not 0 < before < size:
            # Too small for a task, and what follows is the smaller neighbour.
            current += size
            continue
        if current < least:
            ranges[-1] = (ranges[-1][0], place)
            before += current
        else:
            ranges.append((start, place))
            before = current
        start, current = place, size
    if current < least and before > 0:
        ranges[-1] = (ranges[-1][0], len(sizes))
    elif current > 0 or not ranges:
        ranges.append((start, len(sizes)))
    return ranges


def local_tasks(tasks: int, map_tasks: int) -> int:
    """Return how many tasks read a shuffle's map outputs locally where `tasks` are asked for."""
    return tasks // map_tasks * map_tasks if tasks >= map_tasks > 0 else tasks
