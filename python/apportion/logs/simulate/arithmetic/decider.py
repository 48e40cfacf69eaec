"""Number of tasks for a group of shuffles, and the bytes of each task, as in `Decider.scala`.

A test compares the results with the extension's decisions.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence

from apportion._util.checks import power_down, power_nearest, power_up
from apportion.logs.simulate.arithmetic import memory, skew
from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import Policy
from apportion.logs.simulate.arithmetic.ranges import (
    Range,
    RangePacker,
    balanced,
    even,
    halved,
    sum_each,
    sums,
)

# Cost to start a wave and to launch a task, in bytes that a task reads in that time: `Waves.scala`.
_WAVE_COST = 4 << 20
_LAUNCH_COST = 32 << 10
# Maximum ratio of the bytes of the largest even range to the largest that Spark would make.
_LARGER_THAN_SPARKS = 1.1


@dataclasses.dataclass(frozen=True)
class Layout:
    """Decided tasks of a group."""

    tasks: int
    """P. Balanced ranges can be fewer, and halves of even ranges more."""
    ranges: list[Range]
    task_bytes: list[int]
    """Shuffle bytes of each task: first the ranges, then the splits."""
    clamps: list[str] = dataclasses.field(default_factory=list)
    """Limits that changed the number, in order, as in `Decision.clamps`."""


def decide(inputs: Sequence[ShuffleInput], broadcast: int, policy: Policy) -> Layout:
    """Return the layout for one or more shuffles, with `broadcast` bytes sent to each task.

    raw = ceil(bytes / (V - min(broadcast, cap, V - 1))), rounded, and within the policy's bounds.
    """
    sizes = sum_each([shuffle.bytes for shuffle in inputs])
    subpartitions = len(sizes)
    max_width = _widest_range(inputs, policy)
    if policy.parallelism is not None:
        unlimited, clamps = policy.parallelism, ["explicit"]
    else:
        unlimited, clamps = _for_bytes(sum(sizes), broadcast, policy)
        unlimited, clamps = _for_fan_in(unlimited, clamps, subpartitions, max_width, policy)
        unlimited, clamps = memory.raised(unlimited, clamps, inputs, policy)
    if split := skew.plan(inputs, unlimited, max_width, policy):
        ranges, parts = split
        return Layout(unlimited, ranges, sums(sizes, ranges) + parts, clamps)
    tasks = min(unlimited, max(subpartitions, 1))
    if tasks < unlimited:
        clamps = [*clamps, "subpartitions"]
    if not policy.balanced:
        ranges = _even(sizes, tasks, policy)
    else:
        chosen, ranges = _in_waves(sizes, tasks, max_width, policy)
        clamps = clamps if chosen == tasks else [*clamps, "waves"]
        tasks = chosen
    return Layout(tasks, ranges, sums(sizes, ranges), clamps)


def likely_tasks(size: int, policy: Policy, broadcast: int = 0) -> int:
    """Return the number of tasks for `size` bytes of files, or of enough subpartitions."""
    return _for_bytes(size, broadcast, policy)[0]


def _for_bytes(size: int, broadcast: int, policy: Policy) -> tuple[int, list[str]]:
    """Return the number within the policy's bounds, raised to fill the policy's slots."""
    volume = policy.data_volume_per_task
    taken = min(broadcast, policy.broadcast_cap, volume - 1)
    raw = max(1, -(-size // (volume - taken)))
    rounded = power_nearest(raw) if policy.is_power_of_two else raw
    tasks = min(max(rounded, policy.lower_bound), policy.upper_bound)
    clamps = ["minimum"] if tasks > rounded else ["maximum"] if tasks < rounded else []
    if policy.slots is not None:
        filled = min(policy.slots, size // policy.min_task_volume)
        slot_tasks = power_down(filled) if policy.is_power_of_two else filled
        slot_tasks = min(slot_tasks, policy.upper_bound)
        if slot_tasks > tasks:
            return slot_tasks, [*clamps, "reactive"]
    return tasks, clamps


def _widest_range(inputs: Sequence[ShuffleInput], policy: Policy) -> int | None:
    """Return the maximum width of ranges such that none of them has too many blocks.

    Spark writes no block for zero bytes.
    """
    blocks = sum_each([[shuffle.blocks(size) for size in shuffle.bytes] for shuffle in inputs])
    widest = policy.max_subpartitions_per_task
    total, start = 0, 0
    for end, count in enumerate(blocks):
        total += count
        while total > policy.max_blocks_per_range:
            widest = max(1, end - start if widest is None else min(widest, end - start))
            total -= blocks[start]
            start += 1
    return widest


def _for_fan_in(
    tasks: int, clamps: list[str], subpartitions: int, width: int | None, policy: Policy
) -> tuple[int, list[str]]:
    if width is None:
        return tasks, clamps
    needed = -(-subpartitions // width)
    needed = min(power_up(needed) if policy.is_power_of_two else needed, policy.upper_bound)
    return (needed, [*clamps, "fanIn"]) if needed > tasks else (tasks, clamps)


def _even(sizes: Sequence[int], tasks: int, policy: Policy) -> list[Range]:
    """Return even ranges, with halves of those that Spark would make smaller."""
    ranges = even(len(sizes), tasks)
    if policy.parallelism is not None:
        return ranges
    ranges = _halved(ranges, sizes, policy.data_volume_per_task, policy)
    if policy.slots is None:
        return ranges
    # Spark fills the slots too.
    volume = max(sum(sizes) // policy.slots, policy.min_task_volume)
    halves = _halved(ranges, sizes, min(volume, policy.data_volume_per_task), policy)
    before, after = (_end(sums(sizes, each), policy.slots) for each in (ranges, halves))
    return halves if after * _LARGER_THAN_SPARKS < before else ranges


def _halved(ranges: list[Range], sizes: Sequence[int], volume: int, policy: Policy) -> list[Range]:
    limit = int(_largest_of_spark(sizes, volume, policy) * _LARGER_THAN_SPARKS)
    halves = halved(ranges, sizes, limit)
    return halves if len(halves) <= policy.upper_bound else ranges


def _end(task_bytes: Sequence[int], slots: int) -> int:
    """Return the bytes that a slot reads until all tasks have ended, as in `Waves.scala`."""
    busy = [0] * min(slots, len(task_bytes))
    for size in task_bytes:
        heapq.heapreplace(busy, busy[0] + size)
    return max(busy)


def _largest_of_spark(sizes: Sequence[int], volume: int, policy: Policy) -> int:
    """Return the bytes of the largest task that Spark would make."""
    filled = [(start, max(end, start + 1)) for start, end in RangePacker(sizes).ranges(volume)]
    largest = max(sums(sizes, filled), default=0)
    if policy.sparks_partitions is None or policy.sparks_partitions >= len(sizes):
        return largest
    each = max(-(-sum(sizes) // policy.sparks_partitions), 1)
    return max(min(largest, max(volume // each, 1) * each), max(sizes))


def _in_waves(
    sizes: Sequence[int], tasks: int, max_width: int | None, policy: Policy
) -> tuple[int, list[Range]]:
    """Return balanced ranges and their number, rounded to full waves if that costs less."""
    slots = policy.steady_slots
    if policy.rounding != "waves" or policy.parallelism is not None or slots is None:
        return tasks, balanced(sizes, tasks, max_width)
    lowest, highest = policy.lower_bound, min(policy.upper_bound, max(len(sizes), 1))
    full = tasks // slots * slots
    others = [n for n in (full, full + slots) if lowest <= n <= highest and n != tasks]
    layouts = [(n, balanced(sizes, n, max_width)) for n in (tasks, *others)]
    return min(layouts, key=lambda layout: wave_price(sums(sizes, layout[1]), slots))


def wave_price(task_bytes: Sequence[int], slots: int) -> float:
    """Return the cost of tasks that run in waves, in bytes that one slot reads in that time."""
    waves = range(0, len(task_bytes), slots)
    largest = sum(max(task_bytes[start : start + slots]) + _WAVE_COST for start in waves)
    return float(largest + len(task_bytes) * _LAUNCH_COST)
