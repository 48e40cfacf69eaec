"""Splits of skewed subpartitions, as in `SkewSplits.scala`.

Several tasks read a split subpartition, each the output of some map tasks. Event logs do not have
the bytes of each map task in a subpartition. They are assumed to be proportional to the total
output of the map task.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from math import inf, prod

from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import Policy
from apportion.logs.simulate.arithmetic.ranges import (
    Range,
    RangePacker,
    attainable_width,
    balanced,
    sum_each,
    sums,
)

# `SkewSplits.scala` explains these values.
_TOLERANCE = 1.25
_LARGEST_PART = 0.75
_MAX_READ_FACTOR = 2
_MAX_SPLITS_WITH_EXTRA_TASKS = 4
_SLACK = 1 / 1024
_MAX_BLOCKS = 1 << 22

Splits = tuple[list[Range], list[int]]
"""Ranges, and the bytes of the tasks that read parts of the other subpartitions."""


def plan(
    inputs: Sequence[ShuffleInput], tasks: int, max_width: int | None, policy: Policy
) -> Splits | None:
    """Return ranges and splits for about `tasks` tasks; None if splits do not help."""
    map_tasks = sum(len(shuffle.written) for shuffle in inputs if shuffle.splittable)
    if not map_tasks:
        return None
    sizes = sum_each([shuffle.bytes for shuffle in inputs])
    min_share = min(policy.data_volume_per_task, policy.min_task_volume)
    fair_share = max(sum(sizes) // max(tasks, 1), min_share)
    skewed = sorted(
        (i for i, size in enumerate(sizes) if size > fair_share * _TOLERANCE),
        key=lambda i: -sizes[i],
    )[: max(1, _MAX_BLOCKS // map_tasks)]
    if not skewed:
        return None
    extra = 2 * min(len(skewed), _MAX_SPLITS_WITH_EXTRA_TASKS)
    max_tasks = max(tasks, min(tasks + extra, policy.upper_bound))
    budgets = [tasks] if policy.parallelism is not None else list(range(tasks, max_tasks + 1))
    candidates = {i: _Candidate(i, inputs) for i in skewed}
    return _fill(sizes, candidates, budgets, attainable_width(max_width, len(sizes), tasks))


def _fill(
    sizes: Sequence[int], candidates: dict[int, _Candidate], budgets: Sequence[int], width: int
) -> Splits | None:
    def split_in(place: int, limit: int) -> float:
        cut = candidates[place].cut(limit) if place in candidates else None
        return inf if cut is None else prod(cut)

    packer = RangePacker(sizes, width, split_in)
    limits = dict.fromkeys(packer.smallest_limit(budget, _SLACK) for budget in budgets)
    limit = min(limits, key=lambda each: each * packer.tasks(each, budgets[-1]))
    ranges, parts = [], []
    for start, end in packer.ranges(limit):
        if end > start:
            ranges.append((start, end))
        elif start in candidates and (cut := candidates[start].cut(limit)):
            parts.extend(candidates[start].parts(cut))
    return (ranges, parts) if parts else None


class _Candidate:
    """A subpartition that may be split."""

    def __init__(self, place: int, inputs: Sequence[ShuffleInput]) -> None:
        self._sizes = [shuffle.bytes[place] for shuffle in inputs]
        # The inputs that may be cut, with the bytes of each map task.
        self._blocks = {
            i: shares(shuffle.bytes[place], shuffle.written)
            for i, shuffle in enumerate(inputs)
            if shuffle.splittable and len(shuffle.written) > 1
        }
        # Sets of these inputs, smaller sets first.
        self._choices = [
            chosen for n in range(len(self._blocks)) for chosen in combinations(self._blocks, n + 1)
        ]
        self._packers = {i: RangePacker(blocks) for i, blocks in self._blocks.items()}
        self.cut = lru_cache(maxsize=1024)(self._cut)

    def _cut(self, limit: int) -> tuple[int, ...] | None:
        """Return the parts of each input for the fewest tasks under a limit; None if impossible."""
        part_limit = min(limit, int(sum(self._sizes) * _LARGEST_PART))
        cuts = [cut for chosen in self._choices if (cut := self._cut_inputs(chosen, part_limit))]
        return min(cuts, key=prod, default=None)

    def _cut_inputs(self, chosen: Sequence[int], limit: int) -> tuple[int, ...] | None:
        """Cut the chosen inputs into equal parts. Each task reads the other inputs whole."""
        whole = sum(size for i, size in enumerate(self._sizes) if i not in chosen)
        share = int((limit - whole) / len(chosen))
        counts = [1] * len(self._sizes)
        for i in chosen:
            if max(self._blocks[i]) > share:
                return None
            counts[i] = int(self._packers[i].tasks(share, len(self._blocks[i])))
        tasks = prod(counts)
        read = sum(size * (tasks / count) for size, count in zip(self._sizes, counts, strict=True))
        return tuple(counts) if read <= sum(self._sizes) * _MAX_READ_FACTOR else None

    def parts(self, cut: Sequence[int]) -> list[int]:
        """Return the bytes of each task: a part of each cut input, and all of the others."""
        parts = [
            sums(self._blocks[i], balanced(self._blocks[i], count)) if count > 1 else [size]
            for i, (count, size) in enumerate(zip(cut, self._sizes, strict=True))
        ]
        return [sum(combination) for combination in product(*parts)]


def shares(size: int, written: Sequence[int]) -> list[int]:
    """Return the estimated bytes of each map task in a subpartition of `size` bytes."""
    total = sum(written)
    if not total:
        return [size // len(written)] * len(written)
    return [size * output // total for output in written]
