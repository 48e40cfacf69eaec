"""Number of subpartitions of a shuffle, and their bytes with another number of subpartitions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import accumulate
from math import gcd

from apportion._util.checks import power_down, power_up
from apportion.simulate.arithmetic.decider import likely_tasks
from apportion.simulate.arithmetic.policy import Policy

# `SubpartitionFormula.scala` explains these values.
MAX_SUBPARTITIONS = 32768
_HEADROOM = 2
_BALANCED_HEADROOM = 8
_WORTH_INEXACT_SIZES = 2
_SLOW_BYPASS = 100
_SLOW_SORT = 1_000_000


@dataclasses.dataclass(frozen=True)
class Defaults:
    """Spark's settings for the partitions of a shuffle: `ShuffleDefaults` in Scala."""

    partitions: int = 200
    bypass_up_to: int = 200
    """`spark.shuffle.sort.bypassMergeThreshold`."""
    exact_sizes_up_to: int = 2000
    """`spark.shuffle.minNumPartitionsToHighlyCompress`."""

    @property
    def raised(self) -> int:
        """Spark's number, raised to a power of two unless Spark would then not keep exact sizes."""
        up = power_up(min(self.partitions, MAX_SUBPARTITIONS))
        loses_exact_sizes = self.partitions <= self.exact_sizes_up_to < up
        return self.partitions if loses_exact_sizes else up


def estimated(
    low: int,
    high: int | None,
    map_tasks: int,
    defaults: Defaults,
    policy: Policy,
    rows_per_map_task: float = 0,
) -> int:
    """Return the number of subpartitions for `low` to `high` bytes: `SubpartitionFormula.of`.

    `high` is None if the estimate has no upper bound.
    """
    if policy.parallelism is not None:
        tasks = policy.parallelism
        number = power_up(tasks * _BALANCED_HEADROOM) if policy.balanced else tasks
        return min(number, MAX_SUBPARTITIONS)
    affordable = max(1, power_down(policy.max_blocks_per_shuffle // max(map_tasks, 1)))
    spark_number = defaults.raised
    if spark_number > affordable:
        spark_number = min(defaults.partitions, MAX_SUBPARTITIONS)
    headroom = _BALANCED_HEADROOM if policy.balanced else _HEADROOM
    sufficient = spark_number if high is None else power_up(_tasks(high, policy) * headroom)
    needed = power_up(_tasks(low, policy) * (_BALANCED_HEADROOM if policy.balanced else 1))
    number = max(min(sufficient, spark_number), min(needed, affordable))
    number = _with_exact_sizes(number, spark_number, defaults)
    without_bypass = _without_bypass(number, defaults)
    if without_bypass <= affordable:
        number = without_bypass
    if rows_per_map_task >= _SLOW_SORT and defaults.partitions <= defaults.bypass_up_to:
        number = min(number, max(needed, defaults.partitions))
    return max(min(number, policy.upper_bound, MAX_SUBPARTITIONS), _minimum(policy))


def unestimated(defaults: Defaults, policy: Policy) -> int:
    """Return the number of subpartitions for a shuffle without an estimate."""
    return max(_without_bypass(defaults.raised, defaults), _minimum(policy))


def _tasks(size: int, policy: Policy) -> int:
    for_volume = -(-size // policy.data_volume_per_task)
    return min(max(likely_tasks(size, policy), for_volume), MAX_SUBPARTITIONS)


def _with_exact_sizes(number: int, spark_number: int, defaults: Defaults) -> int:
    limit = defaults.exact_sizes_up_to
    if limit < number <= limit * _WORTH_INEXACT_SIZES and spark_number <= limit:
        return max(power_down(limit), spark_number)
    return number


def _without_bypass(number: int, defaults: Defaults) -> int:
    limit = defaults.bypass_up_to
    is_slow = number <= limit < 2 * number and number >= _SLOW_BYPASS
    return power_up(limit + 1) if is_slow else number


def resized(sizes: Sequence[int], number: int, contiguous: bool) -> list[int]:
    """Return the bytes of each subpartition if the shuffle had `number` subpartitions.

    A row's subpartition is the hash of its key modulo the number, or follows the order of the keys
    if `contiguous`. With hashes, the result is exact (except for compression) if the new number
    divides the old one. Otherwise the bytes of several subpartitions are spread evenly over them,
    which hides heavy keys.
    """
    if number == len(sizes) or not sizes:
        return list(sizes)
    if contiguous:
        return _interpolated(sizes, number)
    common = gcd(len(sizes), number)
    folded = [sum(sizes[place::common]) for place in range(common)]
    parts = number // common
    return [_share(folded[place % common], parts, place // common) for place in range(number)]


def _interpolated(sizes: Sequence[int], number: int) -> list[int]:
    prefix_sums = [0, *accumulate(sizes)]
    ends = []
    for place in range(1, number + 1):
        whole, rest = divmod(place * len(sizes), number)
        ends.append(prefix_sums[whole] + (sizes[whole] * rest // number if rest else 0))
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _share(total: int, parts: int, place: int) -> int:
    return total * (place + 1) // parts - total * place // parts


def _minimum(policy: Policy) -> int:
    minimum = policy.lower_bound if policy.parallelism is None else policy.parallelism
    return min(minimum, MAX_SUBPARTITIONS)
