"""Spark's own splits of skewed joins, as in Spark 4 (`OptimizeSkewedJoin`).

Event logs do not have the bytes of each map task in a subpartition: `skew.py` estimates them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import product

from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import ADVISORY_SIZE, Confs
from apportion.logs.simulate.arithmetic.skew import shares

JOINS = ("SortMergeJoin", "ShuffledHashJoin")
"""Operators whose inputs Spark splits."""
_PREFIX = "spark.sql.adaptive.skewJoin."
# `ShufflePartitionsUtil` merges a part with the one before it if both are together not much above
# the target, or if one of them is far below it.
_MERGED = 1.2
_SMALL = 0.2


def splits(sides: Sequence[ShuffleInput], confs: Confs) -> dict[int, list[int]]:
    """Return the bytes of the tasks of each subpartition that Spark splits, by subpartition.

    `sides` are the inputs of a join. Spark splits no join of more than two shuffles.
    """
    if len(sides) != 2 or not confs.flag(f"{_PREFIX}enabled"):
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
    threshold = max(
        confs.size(f"{_PREFIX}skewedPartitionThresholdInBytes"),
        median * confs.factor(f"{_PREFIX}skewedPartitionFactor"),
    )
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
