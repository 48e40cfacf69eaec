"""Spark's own coalescing of shuffle partitions, as in Spark 4 (`ShufflePartitionsUtil`)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from apportion.logs.simulate.arithmetic.policy import ADVISORY_SIZE, Confs
from apportion.logs.simulate.arithmetic.ranges import Range

_PREFIX = "spark.sql.adaptive.coalescePartitions."
MIN_SIZE = f"{_PREFIX}minPartitionSize"


def min_tasks(confs: Confs, default_parallelism: int, group_bytes: Sequence[int]) -> list[int]:
    """Return the minimum number of tasks of each group of shuffles in a stage.

    The groups share one minimum in proportion to their bytes. It is `minPartitionNum` if that is
    set, 1 if `parallelismFirst` is off, and otherwise Spark's default parallelism.
    """
    minimum = confs.number(f"{_PREFIX}minPartitionNum")
    if minimum is None:
        minimum = default_parallelism if confs.flag(f"{_PREFIX}parallelismFirst") else 1
    total = sum(group_bytes)
    if len(group_bytes) == 1 or not total:
        return [max(minimum, 1)] * len(group_bytes)
    return [max(1, math.floor(minimum * size / total + 0.5)) for size in group_bytes]


def coalesced(
    sizes: Sequence[int],
    min_tasks: int,
    confs: Confs,
    advisory: int | None = None,
    split: Collection[int] = (),
) -> list[Range]:
    """Return Spark's ranges for a group of shuffles. `sizes` are totals over the shuffles.

    Neighbouring subpartitions are coalesced up to a target: the advisory size, or less if that
    makes too few tasks, but at least the minimum size. `advisory` replaces the session's advisory
    size. A range below the minimum size is merged into its smaller neighbour. Empty ranges are left
    out. The subpartitions in `split` are in no range.
    """
    uncoalesced = [(place, place + 1) for place in range(len(sizes)) if place not in split]
    if not sizes or not confs.flag(f"{_PREFIX}enabled"):
        return uncoalesced or [(0, 0)]
    min_size = confs.size(MIN_SIZE)
    advisory_size = confs.size(ADVISORY_SIZE) if advisory is None else advisory
    target = max(min(math.ceil(sum(sizes) / min_tasks), advisory_size), min_size)
    ends = [*sorted(split), len(sizes)]
    starts = [0, *(place + 1 for place in ends)]
    ranges = [
        (start + first, start + last)
        for start, end in zip(starts, ends, strict=False)
        if start < end
        for first, last in _packed(sizes[start:end], target, min_size)
        if not split or any(sizes[start:end])
    ]
    return ranges if len(ranges) < len(uncoalesced) else uncoalesced


def _packed(sizes: Sequence[int], target: int, min_size: int) -> list[Range]:
    ranges: list[Range] = []
    start, current, previous = 0, sizes[0], 0
    for place in range(1, len(sizes)):
        size = sizes[place]
        if current + size <= target:
            current += size
            continue
        if current < min_size and not 0 < previous < size:
            # The range is too small, and the next subpartition is its smaller neighbour.
            current += size
            continue
        if current < min_size:
            ranges[-1] = (ranges[-1][0], place)
            previous += current
        else:
            ranges.append((start, place))
            previous = current
        start, current = place, size
    if current < min_size and previous > 0:
        ranges[-1] = (ranges[-1][0], len(sizes))
    elif current > 0 or not ranges:
        ranges.append((start, len(sizes)))
    return ranges


def local_tasks(tasks: int, map_tasks: int) -> int:
    """Return the number of tasks of a local read for a desired number of `tasks`."""
    return tasks // map_tasks * map_tasks if tasks >= map_tasks > 0 else tasks
