"""Bytes of the subpartitions of a shuffle with another number of subpartitions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import accumulate
from math import gcd

# With many keys of similar weight, no subpartition is this many times the median.
_HEAVY = 2


def resized(sizes: Sequence[int], number: int, contiguous: bool) -> list[int]:
    """Return the bytes of each subpartition if the shuffle had `number` subpartitions.

    A row's subpartition is the hash of its key modulo the number, or follows the order of the keys
    if `contiguous`. With hashes, the result is exact (except for compression) if the new number
    divides the old one. Otherwise the bytes of several subpartitions are spread evenly over them.
    What a subpartition has above the median counts as one heavy key if it is much larger: the key
    stays in one subpartition.
    """
    if number == len(sizes) or not sizes:
        return list(sizes)
    if contiguous:
        return _interpolated(sizes, number)
    median = int(statistics.median(sizes))
    heavy = [size - median if size > median * _HEAVY else 0 for size in sizes]
    light = [size - key for size, key in zip(sizes, heavy, strict=True)]
    common = gcd(len(sizes), number)
    folded = [sum(light[place::common]) for place in range(common)]
    parts = number // common
    found = [_share(folded[place % common], parts, place // common) for place in range(number)]
    for place, key in enumerate(heavy):
        # Modulo the common divisor, the subpartition of the key is known.
        found[place % common + place // common % parts * common] += key
    return found


def _interpolated(sizes: Sequence[int], number: int) -> list[int]:
    prefix_sums = [0, *accumulate(sizes)]
    ends = []
    for place in range(1, number + 1):
        whole, rest = divmod(place * len(sizes), number)
        ends.append(prefix_sums[whole] + (sizes[whole] * rest // number if rest else 0))
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _share(total: int, parts: int, place: int) -> int:
    return total * (place + 1) // parts - total * place // parts
