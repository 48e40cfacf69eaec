"""Partitions and blocks of shuffles whose map tasks decide how finely they write.

The sources are `AdaptiveWrites.scala`, `PartitionTree.scala`, `BlockChooser.scala` and
`WriteGoal.scala`. All partitions of a shuffle count as equally large.
"""

from __future__ import annotations

from collections.abc import Iterable

from apportion._util.checks import power_up
from apportion.logs.simulate.arithmetic.policy import Policy

MAX_PARTITIONS = 32768
# Partitions for each task that the bytes of a query's inputs need, and their maximum.
_HEADROOM = 2
_MAX_BY_BYTES = 8192
# Number of groups of the first level, unless tasks need more.
_FIRST_GROUPS = 2
# Binary logarithm of the parts of a group, unless they are twice as many.
_LOG_PARTS = 3
# Maximum bytes that tasks read twice, as a fraction of all bytes.
_READ_TWICE = 0.25
# Share of the first level in it, if map tasks have more rows than they keep.
_FIRST_SHARE = 1 / 8
# Partitions for each task if partitions are ranges of sort keys, and the maximum above the planned
# number.
_RANGES_PER_TASK = 4
_MAX_RANGES = 8192
# With more blocks in the tree, a map task never opens a file for each block.
_MAX_FILES = 400
# Bytes of rows that a map task keeps at most before it chooses their blocks. If these are all of
# its rows, it writes one file.
_MAX_KEPT = 4 << 20
# Bytes of rows that a block needs to get a file of its own.
_FILE_BYTES = 200 << 10


def partitions(spark_number: int, input_bytes: int, volume: int, policies: Iterable[Policy]) -> int:
    """Return the number of partitions of all shuffles of a query: a power of two.

    `input_bytes` are the bytes of the tables that the query reads, `volume` is the target size of
    the session, and `policies` are those of the stages that read shuffles.
    """
    by_bytes = min(input_bytes // volume * _HEADROOM, _MAX_BY_BYTES)
    by_tasks = max(map(_partitions_for, policies))
    return power_up(min(max(spark_number, by_bytes, by_tasks), MAX_PARTITIONS))


def ranges(row_bytes: int, planned: int, policy: Policy) -> int:
    """Return the number of partitions of a shuffle whose partitions are ranges of sort keys.

    Its `row_bytes` are counted before the first row is written. It has more partitions than the
    `planned` number only if the tasks need them.
    """
    filled = min(row_bytes // _slot_bytes(policy), policy.slots or 1)
    tasks = max(row_bytes // policy.data_volume_per_task, filled, _min_tasks(policy))
    if tasks <= 1:
        return 1
    return max(min(power_up(tasks * _RANGES_PER_TASK), planned), min(power_up(tasks), _MAX_RANGES))


def levels(number: int, least: int = _FIRST_GROUPS) -> list[int]:
    """Return the numbers of groups of the tree of a power of two of partitions.

    Tasks need `least` groups, a power of two.
    """
    first = max(least, _FIRST_GROUPS)
    if number <= first:
        return [number]
    log = (number // first).bit_length() - 1
    steps = max(1, log // _LOG_PARTS)
    return [first << log * step // steps for step in range(steps + 1)]


def written_levels(
    number: int, size: int, policy: Policy, map_tasks: int = 1, expansion: float = 1.0
) -> list[int]:
    """Return the numbers of groups that map tasks write for a shuffle of `size` stored bytes.

    `expansion` is the number of uncompressed bytes for a stored byte.
    """
    tasks = _min_tasks(policy)
    least = tasks if tasks & (tasks - 1) == 0 else tasks * _RANGES_PER_TASK
    tree = levels(number, power_up(least))
    kept = _MAX_KEPT / expansion * map_tasks
    slots = policy.slots or 1
    targets = [
        groups * (policy.data_volume_per_task if groups >= slots else _slot_bytes(policy))
        for groups in tree
    ]

    def limits(start: int) -> list[float]:
        if size <= kept:
            return [target * _READ_TWICE for target in targets]
        return [target * _allowance(tree, place, start) for place, target in enumerate(targets)]

    # The groups of the first rows are chosen once these rows are known.
    start = 0
    while start < len(tree) - 1 and min(size, kept) > limits(0)[start]:
        start += 1
    left = float(size)
    for place in range(start, len(tree)):
        left -= limits(start)[place]
        if left <= 0:
            return tree[start : place + 1]
    return tree[start:]


def _allowance(tree: list[int], place: int, start: int) -> float:
    """Return the part of a task's bytes that a group may have before it is divided.

    This is for map tasks with more rows than they keep. `start` is the first level with rows.
    """
    depth = len(tree) - 1
    if depth - start <= 1:
        return _READ_TWICE
    if place == 0:
        return _READ_TWICE * _FIRST_SHARE
    return _READ_TWICE * (1 if start else 1 - _FIRST_SHARE) / (depth - max(start, 1))


def files(written: list[int], number: int, row_bytes: float, bypass_up_to: int) -> int:
    """Return the number of files that a map task opens for its `row_bytes`.

    `written` are the levels that it writes. Spark opens files for up to `bypass_up_to` blocks.
    """
    blocks = sum(written)
    can_open = written[0] <= bypass_up_to and sum(levels(number)) <= _MAX_FILES
    fills = row_bytes > _MAX_KEPT and max(row_bytes, 2 * _MAX_KEPT) >= blocks * _FILE_BYTES
    return blocks if can_open and fills else 1


def _partitions_for(policy: Policy) -> int:
    """Return the number of partitions with which the tasks that are set can be even."""
    tasks = _min_tasks(policy)
    if policy.balanced:
        return tasks * 8
    return tasks if tasks & (tasks - 1) == 0 else tasks * 2


def _min_tasks(policy: Policy) -> int:
    return policy.parallelism or policy.lower_bound


def _slot_bytes(policy: Policy) -> int:
    return min(policy.min_task_volume, policy.data_volume_per_task)
