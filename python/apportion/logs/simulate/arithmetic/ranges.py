"""Ranges of consecutive subpartitions, one for each task, as in `Ranges.scala`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, zip_longest
from math import inf

Range = tuple[int, int]
"""Start and end of a range of subpartitions, with the end excluded."""


def even(subpartitions: int, tasks: int) -> list[Range]:
    """Return ranges of equally many subpartitions. Their widths differ by at most one."""
    return list(pairwise(k * subpartitions // tasks for k in range(tasks + 1)))


def halved(ranges: Iterable[Range], sizes: Sequence[int], limit: float) -> list[Range]:
    """Return ranges of at most `limit` bytes or one subpartition: halves of larger ranges.

    An empty half is no range of its own.
    """
    before = [0, *accumulate(sizes)]

    def halves(start: int, end: int) -> list[Range]:
        if end - start <= 1 or before[end] - before[start] <= limit:
            return [(start, end)]
        middle = (start + end) // 2
        left, right = halves(start, middle), halves(middle, end)
        if before[middle] == before[start]:
            return [(start, right[0][1]), *right[1:]]
        if before[end] == before[middle]:
            return [*left[:-1], (left[-1][0], end)]
        return left + right

    return [half for start, end in ranges for half in halves(start, end)]


def balanced(sizes: Sequence[int], tasks: int, max_width: int | None = None) -> list[Range]:
    """Return at most `tasks` ranges, with as few bytes as possible in the largest one.

    `max_width` is the maximum number of subpartitions per range. It is ignored if `tasks` ranges of
    that width cannot cover all subpartitions.
    """
    packer = RangePacker(sizes, attainable_width(max_width, len(sizes), tasks))
    return list(packer.ranges(packer.smallest_limit(tasks))) or [(0, 0)]


def sums(sizes: Sequence[int], ranges: Sequence[Range]) -> list[int]:
    """Return the bytes of each range."""
    before = [0, *accumulate(sizes)]
    return [before[end] - before[start] for start, end in ranges]


def sum_each(inputs: Sequence[Sequence[int]]) -> list[int]:
    """Return the total bytes of each subpartition. Inputs can have different lengths."""
    return [sum(sizes) for sizes in zip_longest(*inputs, fillvalue=0)]


def attainable_width(width: int | None, subpartitions: int, tasks: int) -> int:
    """Return `width`, or all subpartitions if `tasks` ranges of that width cannot cover them."""
    if width is None or width * tasks < subpartitions:
        return max(subpartitions, 1)
    return width


class RangePacker:
    """Packs consecutive subpartitions into tasks, up to a limit of bytes: `RangePacker.scala`.

    `split_in(place, limit)` returns the number of tasks for a single subpartition above the limit,
    or `inf` if it cannot be split.
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

    def smallest_limit(self, max_tasks: int, slack: float = 0.0) -> int:
        """Return the smallest limit under which at most `max_tasks` tasks are needed.

        The result may exceed the smallest limit by `slack`, a fraction of it.
        """
        total = self._before[-1]
        low = -(-total // max_tasks)
        # If widths do not matter, this limit suffices: all tasks but the last exceed the mean.
        sufficient = low + self._largest if self._max_width >= self._count else total
        high = max(low, min(sufficient, total))
        while high - low > low * slack:
            limit = (low + high) // 2
            if self.tasks(limit, max_tasks) <= max_tasks:
                high = limit
            else:
                low = limit + 1
        return high

    def tasks(self, limit: int, most: int) -> float:
        """Return the number of tasks under a limit. Counting stops above `most`."""
        start, used = 0, 0.0
        while start < self._count and used <= most:
            end = self._end(start, limit)
            used += 1 if end > start else self._split_in(start, limit)
            start = max(end, start + 1)
        return used

    def ranges(self, limit: int) -> Iterator[Range]:
        """Yield the ranges in order. An empty range marks a subpartition above the limit."""
        start = 0
        while start < self._count:
            end = self._end(start, limit)
            yield start, end
            start = max(end, start + 1)

    def _end(self, start: int, limit: int) -> int:
        end = bisect_right(self._before, self._before[start] + limit, start) - 1
        return min(end, start + self._max_width)
