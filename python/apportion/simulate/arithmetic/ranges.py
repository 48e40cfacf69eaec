"""Contiguous ranges of subpartitions, one a task: the arithmetic of the extension's `Ranges`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf

Range = tuple[int, int]
"""Start and end of a range of subpartitions, the end excluded."""


def even(subpartitions: int, tasks: int) -> list[Range]:
    """Return ranges that hold equally many subpartitions; their widths differ by one at most."""
    return list(pairwise(k * subpartitions // tasks for k in range(tasks + 1)))


def balanced(sizes: Sequence[int], tasks: int, max_width: int | None = None) -> list[Range]:
    """Return at most `tasks` ranges whose largest has as few bytes as possible.

    `max_width` is the most subpartitions of a range, where that many ranges can be so narrow.
    """
    filling = Filling(sizes, attainable_width(max_width, len(sizes), tasks))
    return list(filling.steps(filling.least_limit(tasks))) or [(0, 0)]


def sums(sizes: Sequence[int], ranges: Sequence[Range]) -> list[int]:
    """Return the bytes of each range."""
    before = [0, *accumulate(sizes)]
    return [before[end] - before[start] for start, end in ranges]


def sum_each(inputs: Sequence[Sequence[int]]) -> list[int]:
    """Return the bytes of each subpartition over all inputs, some of which may have fewer."""
    found = [0] * max(map(len, inputs), default=0)
    for sizes in inputs:
        for place, size in enumerate(sizes):
            found[place] += size
    return found


def attainable_width(width: int | None, subpartitions: int, tasks: int) -> int:
    """Return `width`, or all subpartitions where that many ranges cannot be so narrow."""
    if width is None or width * tasks < subpartitions:
        return max(subpartitions, 1)
    return width


class Filling:
    """Fills tasks with subpartitions, one after the other, up to a limit of bytes.

    `split_in(place, limit)` is how many tasks read a single subpartition that is above the limit;
    `inf` where it cannot be split.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        max_width: int | None = None,
        split_in: Callable[[int, int], float] = lambda place, limit: inf,
    ) -> None:
        self._before = [0, *accumulate(sizes)]
        self._count = len(sizes)
        self._largest = max(sizes, default=0)
        self._max_width = max_width if max_width is not None else max(len(sizes), 1)
        self._split_in = split_in

    def least_limit(self, most: int, slack: float = 0.0) -> int:
        """Return the least limit under which no more than `most` tasks are needed.

        It may be higher by `slack`, as a part of it.
        """
        total = self._before[-1]
        low = -(-total // most)
        # With ranges of any width, each but the last would otherwise read more than the mean.
        enough = low + self._largest if self._max_width >= self._count else total
        high = max(low, min(enough, total))
        while high - low > low * slack:
            limit = (low + high) // 2
            if self.tasks(limit, most) <= most:
                high = limit
            else:
                low = limit + 1
        return high

    def tasks(self, limit: int, most: int) -> float:
        """Return how many tasks a limit makes; any number above `most` stands for more."""
        start, used = 0, 0.0
        while start < self._count and used <= most:
            end = self._end(start, limit)
            used += 1 if end > start else self._split_in(start, limit)
            start = max(end, start + 1)
        return used

    def steps(self, limit: int) -> Iterator[Range]:
        """Yield the ranges in order; one is empty where a single subpartition is too large."""
        start = 0
        while start < self._count:
            end = self._end(start, limit)
            yield start, end
            start = max(end, start + 1)

    def _end(self, start: int, limit: int) -> int:
        end = bisect_right(self._before, self._before[start] + limit, start) - 1
        return min(end, start + self._max_width)
