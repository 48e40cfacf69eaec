"""Spark's own reads of shuffles: coalesced partitions, and splits of skewed joins.

The sources are `ShufflePartitionsUtil` and `OptimizeSkewedJoin` of Spark 4. Event logs do not have
the bytes of each map task in a subpartition: `skew.py` estimates them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence
from itertools import groupby, product

from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import (
    ADVISORY_SIZE,
    MIN_SIZE,
    SKEW_FACTOR,
    SKEW_JOIN,
    SKEW_THRESHOLD,
    Confs,
)
from apportion.logs.simulate.arithmetic.ranges import Range
from apportion.logs.simulate.arithmetic.skew import shares

_COALESCE = "spark.sql.adaptive.coalescePartitions."
JOINS = ("SortMergeJoin", "ShuffledHashJoin")
"""Operators whose inputs Spark splits."""
# Spark merges a part with the one before it if both are together not much above the target, or if
# one of them is far below it.
_MERGED = 1.2
_SMALL = 0.2


def min_tasks(confs: Confs, default_parallelism: int, group_bytes: Sequence[int]) -> list[int]:
    """Return the minimum number of tasks of each group of shuffles in a stage.

    The groups share one minimum. It is `minPartitionNum` if that is set, 1 if `parallelismFirst` is
    off, and otherwise Spark's default parallelism.
    """
    minimum = confs.number(f"{_COALESCE}minPartitionNum")
    if minimum is None:
        minimum = default_parallelism if confs.flag(f"{_COALESCE}parallelismFirst") else 1
    return shared(minimum, group_bytes)


def shared(number: int, group_bytes: Sequence[int]) -> list[int]:
    """Return the part of a number for each group of a stage, 1 or more, in proportion to bytes."""
    total = sum(group_bytes)
    if not total:
        return [max(number, 1)] * len(group_bytes)
    return [max(1, math.floor(number * size / total + 0.5)) for size in group_bytes]


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
    if not sizes:
        return [(0, 0)]
    uncoalesced = [(place, place + 1) for place in range(len(sizes)) if place not in split]
    if not confs.flag(f"{_COALESCE}enabled"):
        return uncoalesced
    min_size = confs.size(MIN_SIZE)
    advisory_size = confs.size(ADVISORY_SIZE) if advisory is None else advisory
    target = max(min(math.ceil(sum(sizes) / min_tasks), advisory_size), min_size)
    ranges: list[Range] = []
    for is_split, run in groupby(range(len(sizes)), lambda place: place in split):
        places = list(run)
        between = [sizes[place] for place in places]
        if not is_split and (any(between) or not split):
            found = _packed(between, target, min_size)
            ranges += [(places[0] + start, places[0] + end) for start, end in found]
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


def splits(sides: Sequence[ShuffleInput], confs: Confs) -> dict[int, list[int]]:
    """Return the bytes of the tasks of each subpartition that Spark splits, by subpartition.

    `sides` are the inputs of a join. Spark splits no join of more than two shuffles.
    """
    if len(sides) != 2 or not confs.flag(SKEW_JOIN):
        return {}
    parts = [_parts(side, confs) for side in sides]
    return {
        place: [sum(task) for task in product(*(side[place] for side in parts))]
        for place in range(len(sides[0].bytes))
        if any(len(side[place]) > 1 for side in parts)
    }


def _parts(side: ShuffleInput, confs: Confs) -> list[list[int]]:
    """Return the bytes of the parts of each subpartition."""
    median = max(int(statistics.median(side.bytes)), 1)
    threshold = max(confs.size(SKEW_THRESHOLD), median * confs.factor(SKEW_FACTOR))
    others = [size for size in side.bytes if size <= threshold]
    target = max(confs.size(ADVISORY_SIZE), sum(others) // max(len(others), 1))
    return [
        split(shares(size, side.written), target)
        if size > threshold and side.splittable and side.written
        else [size]
        for size in side.bytes
    ]


def split(sizes: Sequence[int], target: int) -> list[int]:
    """Return the bytes of consecutive parts of about `target` bytes."""
    parts: list[int] = []
    current = 0
    for place, size in enumerate([*sizes, target + 1]):
        if place == 0 or current + size <= target:
            current += size
            continue
        is_small = parts and min(current, parts[-1]) < target * _SMALL
        if is_small or (parts and current + parts[-1] < target * _MERGED):
            parts[-1] += current
        else:
            parts.append(current)
        current = size
    return parts
