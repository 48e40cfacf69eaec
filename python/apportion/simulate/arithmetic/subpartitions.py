"""How many subpartitions a shuffle gets, and what is in them with another number of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import gcd

from apportion._util.checks import power_down, power_up
from apportion.simulate.arithmetic.decider import likely_tasks
from apportion.simulate.arithmetic.policy import Policy

MOST = 32768
# What an estimate may be wrong by, and how much finer balanced ranges are cut.
_HEADROOM = 2
_BALANCED_HEADROOM = 8


def estimated(likely_bytes: int, map_tasks: int, policy: Policy) -> int:
    """Return the number for a shuffle that is likely to have so many bytes."""
    if policy.parallelism is not None:
        tasks = policy.parallelism
        return min(power_up(tasks * _BALANCED_HEADROOM) if policy.balanced else tasks, MOST)
    headroom = _BALANCED_HEADROOM if policy.balanced else _HEADROOM
    wanted = power_up(likely_tasks(likely_bytes, policy) * headroom)
    affordable = max(1, power_down(policy.max_blocks_per_shuffle // max(map_tasks, 1)))
    return max(min(wanted, affordable, policy.upper_bound, MOST), _least(policy))


def unestimated(planned: int, policy: Policy) -> int:
    """Return the number for a shuffle of which only the number is known that Spark planned."""
    return max(power_down(planned), _least(policy))


def resized(sizes: Sequence[int], number: int, contiguous: bool) -> list[int]:
    """Return the bytes that the rows of a shuffle would have in another number of subpartitions.

    Rows go by a hash of their key modulo the number, or where `contiguous` by the order of their
    keys. By the hash it is exact where the new number divides the old one, but for compression.
    What is known of several subpartitions together alone is taken to be spread evenly over them,
    which misses heavy keys.
    """
    if number == len(sizes) or not sizes:
        return list(sizes)
    if contiguous:
        return _interpolated(sizes, number)
    common = gcd(len(sizes), number)
    folded = [sum(sizes[place::common]) for place in range(common)]
    each = number // common
    return [_share(folded[place % common], each, place // common) for place in range(number)]


def _interpolated(sizes: Sequence[int], number: int) -> list[int]:
    before = [0, *accumulate(sizes)]
    ends = []
    for place in range(1, number + 1):
        whole, rest = divmod(place * len(sizes), number)
        ends.append(before[whole] + (sizes[whole] * rest // number if rest else 0))
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _share(total: int, parts: int, place: int) -> int:
    return total * (place + 1) // parts - total * place // parts


def _least(policy: Policy) -> int:
    return min(policy.lower_bound if policy.parallelism is None else policy.parallelism, MOST)
