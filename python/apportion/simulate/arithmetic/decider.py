"""How many tasks read a group of shuffles, and what each reads: the extension's `Decider`.

A test asks the extension for the same decisions and compares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from apportion._util.checks import power_down, power_nearest, power_up
from apportion.simulate.arithmetic import skew
from apportion.simulate.arithmetic.policy import Policy
from apportion.simulate.arithmetic.ranges import Range, balanced, even, sum_each, sums

# What beginning a wave and launching a task cost, in bytes that a task reads in that time.
_WAVE_COST = 4 << 20
_LAUNCH_COST = 32 << 10


@dataclasses.dataclass(frozen=True)
class ShuffleInput:
    """A shuffle that a stage reads."""

    bytes: Sequence[int]
    """Of each subpartition."""
    written: Sequence[int] = ()
    """What each map task wrote; empty if that is not known."""
    splittable: bool = False
    """Whether a task may read what some map tasks wrote of a subpartition."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The tasks that were decided."""

    tasks: int
    """P: more than there are ranges where balanced ranges need no more."""
    ranges: list[Range]
    task_bytes: list[int]
    """Shuffle bytes of each task that runs: those of the ranges, then those of splits."""
    clamps: list[str] = dataclasses.field(default_factory=list)
    """Limits that changed the number, in order, as `Decision.clamps`."""


def decide(inputs: Sequence[ShuffleInput], broadcast: int, policy: Policy) -> Layout:
    """Return what a policy makes of shuffles, one or more, and of the bytes broadcast to each task.

    raw = ceil(bytes / (V - min(broadcast, cap, V - 1))), rounded and within the policy's bounds.
    """
    sizes = sum_each([each.bytes for each in inputs])
    total, subpartitions = sum(sizes), len(sizes)
    taken = min(broadcast, policy.broadcast_cap, policy.volume - 1)
    width = _widest_range(inputs, policy)
    if policy.parallelism is not None:
        wanted, clamps = policy.parallelism, ["explicit"]
    else:
        wanted, clamps = _bounded(_rounded(total, policy.volume - taken, policy), total, policy)
        wanted, clamps = _for_fan_in(wanted, clamps, subpartitions, width, policy)
    if split := skew.plan(inputs, wanted, width, policy):
        return Layout(wanted, split.ranges, sums(sizes, split.ranges) + split.task_bytes, clamps)
    plain = min(wanted, max(subpartitions, 1))
    if plain < wanted:
        clamps = [*clamps, "subpartitions"]
    if not policy.balanced:
        ranges = even(subpartitions, plain)
    else:
        explicit = policy.parallelism is not None
        chosen, ranges = _in_waves(sizes, plain, width, policy, explicit)
        clamps = clamps if chosen == plain else [*clamps, "waves"]
        plain = chosen
    return Layout(plain, ranges, sums(sizes, ranges), clamps)


def decide_source(size: int, policy: Policy) -> int:
    """Return how many tasks scan files of so many bytes, which can be cut anywhere."""
    if policy.parallelism is not None:
        return policy.parallelism
    exact = dataclasses.replace(policy, balanced=True, rounding="exact")
    return _bounded(max(1, -(-size // policy.volume)), size, exact)[0]


def likely_tasks(size: int, policy: Policy) -> int:
    """Return the tasks for shuffles of so many bytes, with as many subpartitions as it takes."""
    return _bounded(_rounded(size, policy.volume, policy), size, policy)[0]


def _rounded(size: int, volume: int, policy: Policy) -> int:
    raw = max(1, -(-size // volume))
    return power_nearest(raw) if policy.is_power_of_two else raw


def _bounded(rounded: int, size: int, policy: Policy) -> tuple[int, list[str]]:
    """Within the policy's bounds, and raised to fill the slots where it has some to fill."""
    tasks = min(max(rounded, policy.lower_bound), policy.upper_bound)
    clamps = ["minimum"] if tasks > rounded else ["maximum"] if tasks < rounded else []
    if policy.slots is not None:
        filled = min(policy.slots, size // policy.min_task_volume)
        greedy = power_down(filled) if policy.is_power_of_two else filled
        greedy = min(greedy, policy.upper_bound)
        if greedy > tasks:
            return greedy, [*clamps, "reactive"]
    return tasks, clamps


def _widest_range(inputs: Sequence[ShuffleInput], policy: Policy) -> int | None:
    """The most subpartitions of a range, so that none of that width has too many blocks.

    Spark writes no block for zero bytes.
    """
    blocks = sum_each([[len(each.written) * (size > 0) for size in each.bytes] for each in inputs])
    widest = policy.max_subpartitions_per_task
    within, start = 0, 0
    for end, own in enumerate(blocks):
        within += own
        while within > policy.max_blocks_per_range:
            widest = max(1, end - start if widest is None else min(widest, end - start))
            within -= blocks[start]
            start += 1
    return widest


def _for_fan_in(
    tasks: int, clamps: list[str], subpartitions: int, width: int | None, policy: Policy
) -> tuple[int, list[str]]:
    if width is None:
        return tasks, clamps
    least = -(-subpartitions // width)
    least = min(power_up(least) if policy.is_power_of_two else least, policy.upper_bound)
    return (least, [*clamps, "fanIn"]) if least > tasks else (tasks, clamps)


def _in_waves(
    sizes: Sequence[int], plain: int, width: int | None, policy: Policy, explicit: bool
) -> tuple[int, list[Range]]:
    """Balanced ranges, as many as fill the waves on the slots where that is cheaper."""
    slots = policy.steady_slots
    if policy.rounding != "waves" or explicit or slots is None:
        return plain, balanced(sizes, plain, width)
    least, most = policy.lower_bound, min(policy.upper_bound, max(len(sizes), 1))
    full = plain // slots * slots
    others = [n for n in (full, full + slots) if least <= n <= most and n != plain]
    layouts = [(n, balanced(sizes, n, width)) for n in (plain, *others)]
    return min(layouts, key=lambda layout: wave_price(sums(sizes, layout[1]), slots))


def wave_price(task_bytes: Sequence[int], slots: int) -> float:
    """Return what tasks that start in order, in waves, cost: as bytes read one after the other."""
    waves = range(0, len(task_bytes), slots)
    largest = sum(max(task_bytes[start : start + slots]) + _WAVE_COST for start in waves)
    return float(largest + len(task_bytes) * _LAUNCH_COST)
