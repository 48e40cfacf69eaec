"""Subpartitions that several tasks read, each a part of them: the extension's `SkewSplits`.

A part is what some map tasks wrote. How much each wrote of a subpartition is not in event logs;
here it is in proportion to all that the map task wrote.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations, product
from math import inf, prod
from typing import TYPE_CHECKING

from apportion.simulate.arithmetic.policy import Policy
from apportion.simulate.arithmetic.ranges import (
    Filling,
    Range,
    attainable_width,
    balanced,
    sum_each,
    sums,
)

if TYPE_CHECKING:
    from apportion.simulate.arithmetic.decider import ShuffleInput

# The same numbers as in the extension, where each is explained.
_TOLERANCE = 1.25
_LARGEST_PART = 0.75
_MOST_READING = 2
_MOST_EXTRA = 4
_SLACK = 1 / 1024
_MOST_BLOCKS = 1 << 22


@dataclasses.dataclass(frozen=True)
class Splits:
    """Ranges, and the bytes of the tasks that read parts of subpartitions beside them."""

    ranges: list[Range]
    task_bytes: list[int]


def plan(
    inputs: Sequence[ShuffleInput], tasks: int, max_width: int | None, policy: Policy
) -> Splits | None:
    """Return ranges and splits for about `tasks` tasks; None where splits would not help."""
    blocks = sum(len(each.written) for each in inputs if each.splittable)
    if not blocks:
        return None
    sizes = sum_each([each.bytes for each in inputs])
    fair = max(sum(sizes) // max(tasks, 1), min(policy.volume, policy.min_task_volume))
    large = sorted(
        (i for i, size in enumerate(sizes) if size > fair * _TOLERANCE), key=lambda i: -sizes[i]
    )[: max(1, _MOST_BLOCKS // blocks)]
    if not large:
        return None
    most = max(tasks, min(tasks + 2 * min(len(large), _MOST_EXTRA), policy.upper_bound))
    budgets = [tasks] if policy.parallelism is not None else list(range(tasks, most + 1))
    candidates = {i: _Candidate(i, inputs) for i in large}
    return _fill(sizes, candidates, budgets, attainable_width(max_width, len(sizes), tasks))


def _fill(
    sizes: Sequence[int], candidates: dict[int, _Candidate], budgets: Sequence[int], width: int
) -> Splits | None:
    def split_in(place: int, limit: int) -> float:
        cut = candidates[place].cut(limit) if place in candidates else None
        return inf if cut is None else prod(cut)

    filling = Filling(sizes, width, split_in)
    limits = dict.fromkeys(filling.least_limit(budget, _SLACK) for budget in budgets)
    limit = min(limits, key=lambda each: each * filling.tasks(each, budgets[-1]))
    ranges, parts = [], []
    for start, end in filling.steps(limit):
        if end > start:
            ranges.append((start, end))
        elif start in candidates and (cut := candidates[start].cut(limit)):
            parts.extend(candidates[start].parts(cut))
    return Splits(ranges, parts) if parts else None


class _Candidate:
    def __init__(self, place: int, inputs: Sequence[ShuffleInput]) -> None:
        self._sizes = [each.bytes[place] for each in inputs]
        self._blocks = [
            _shares(size, each.written) if each.splittable and len(each.written) > 1 else None
            for size, each in zip(self._sizes, inputs, strict=True)
        ]
        own = [i for i, blocks in enumerate(self._blocks) if blocks is not None]
        self._choices = list(chain.from_iterable(combinations(own, n + 1) for n in range(len(own))))
        self._fillings = [None if blocks is None else Filling(blocks) for blocks in self._blocks]
        self.cut = lru_cache(maxsize=1024)(self._cut)

    def _cut(self, limit: int) -> tuple[int, ...] | None:
        """How many parts of each input make the fewest tasks under a limit of bytes."""
        most = min(limit, int(sum(self._sizes) * _LARGEST_PART))
        found = [cut for chosen in self._choices if (cut := self._cut_some(chosen, most))]
        return min(found, key=prod, default=None)

    def _cut_some(self, chosen: Sequence[int], limit: int) -> tuple[int, ...] | None:
        """Cuts some inputs into parts of equal size, and lets each task read the others whole."""
        whole = sum(size for i, size in enumerate(self._sizes) if i not in chosen)
        share = int((limit - whole) / len(chosen))
        counts = [1] * len(self._sizes)
        for i in chosen:
            blocks, filling = self._blocks[i], self._fillings[i]
            if blocks is None or filling is None or max(blocks) > share:
                return None
            counts[i] = int(filling.tasks(share, len(blocks)))
        tasks = prod(counts)
        read = sum(size * (tasks / count) for size, count in zip(self._sizes, counts, strict=True))
        return tuple(counts) if read <= sum(self._sizes) * _MOST_READING else None

    def parts(self, cut: Sequence[int]) -> list[int]:
        """The bytes of each task: a part of each input that is cut, and all of the others."""
        parts = [
            sums(blocks, balanced(blocks, count)) if blocks is not None and count > 1 else [size]
            for blocks, count, size in zip(self._blocks, cut, self._sizes, strict=True)
        ]
        return [sum(combination) for combination in product(*parts)]


def _shares(size: int, written: Sequence[int]) -> list[int]:
    """A subpartition's bytes by map task."""
    total = sum(written)
    if not total:
        return [size // len(written)] * len(written)
    return [size * own // total for own in written]
