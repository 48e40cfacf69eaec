"""Tasks whose rows fit their memory, as in `HeldRows.scala` and `MemoryLimit.scala`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apportion._util.checks import power_up
from apportion.decision import HeldRows
from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import Policy
from apportion.logs.simulate.arithmetic.ranges import RangePacker, even, sum_each, sums

# Subpartitions that need more than this multiple of the mean are skewed: `MemoryLimit.scala`.
_SKEW = 2


def needed(inputs: Sequence[HeldRows], sizes: Sequence[int]) -> int:
    """Return the bytes of execution memory of a task that reads `sizes` bytes of the inputs."""
    rows = sum(held.per_byte * size for held, size in zip(inputs, sizes, strict=True))
    used = [each * size for held, size in zip(inputs, sizes, strict=True) for each in held.arrays]
    allocated = [float(power_up(math.ceil(each))) if each >= 1 else 0.0 for each in used]
    largest = max(allocated, default=0.0)
    rows_at_growth = 0.0
    if largest:
        rows_at_growth = rows * min(1.0, largest / 2 / used[allocated.index(largest)])
    return int(sum(allocated) + max(rows, rows_at_growth + largest / 2))


def raised(
    tasks: int, clamps: list[str], shuffles: Sequence[ShuffleInput], policy: Policy
) -> tuple[int, list[str]]:
    """Raise the number of tasks until the rows of each task fit the memory of the policy."""
    limit = policy.task_memory
    inputs = [each for each in shuffles if each.held.per_byte or each.held.arrays]
    count = max((len(each.bytes) for each in inputs), default=0)
    most = min(policy.upper_bound, count)
    held = [each.held for each in inputs]
    total = needed(held, [sum(each.bytes) for each in inputs])
    if limit is None or tasks >= most or total <= limit:
        return tasks, clamps
    fitting = _without_skewed(inputs, count, limit)
    fewest = tasks
    if any(each.splittable for each in inputs):
        fewest = max(tasks, min(most, (total - 1) // limit + 1))
    if policy.balanced:
        bound = sum_each(
            [
                [int(size * _at_most(one.held)) for size in sizes]
                for one, sizes in zip(inputs, fitting, strict=True)
            ]
        )
        widest = max(limit, *bound)
        found = int(min(most, max(fewest, RangePacker(bound).tasks(widest, most))))
        found = min(most, power_up(found) if policy.is_power_of_two else found)
    else:
        reachable = max(limit, _largest(held, fitting, even(count, count)))
        found = power_up(fewest)
        while found < most and _largest(held, fitting, even(count, found)) > reachable:
            found *= 2
        found = min(found, most)
    return (found, [*clamps, "memory"]) if found > tasks else (tasks, clamps)


def _largest(
    held: Sequence[HeldRows], sizes: Sequence[Sequence[int]], ranges: Sequence[tuple[int, int]]
) -> int:
    read = [sums(each, ranges) for each in sizes]
    return max(needed(held, task) for task in zip(*read, strict=True))


def _without_skewed(inputs: Sequence[ShuffleInput], count: int, limit: int) -> list[list[int]]:
    """Return the bytes of each input, with 0 for skewed subpartitions."""
    sizes = [[*each.bytes, *[0] * (count - len(each.bytes))] for each in inputs]
    held = [each.held for each in inputs]
    need = [needed(held, at) for at in zip(*sizes, strict=True)]
    tolerated = max(limit, sum(need) // max(1, sum(each > 0 for each in need)) * _SKEW)
    return [
        [0 if each > tolerated else size for each, size in zip(need, bytes_of, strict=True)]
        for bytes_of in sizes
    ]


def _at_most(held: HeldRows) -> float:
    return held.per_byte + sum(2 * each for each in held.arrays) + max(held.arrays, default=0.0)
