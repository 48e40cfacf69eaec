"""Policies: how many state partitions the load of a stream needs.

A policy sees the last batches and says which number it wants. `stabilizer.py` decides when the
stream is changed, and `sizes.py` keeps the number above what the bytes need.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from apportion._util import checks
from apportion._util.units import count_text, seconds_text
from apportion.errors import InputError
from apportion.streaming.batches import Batch

# The number goes down only if the load then stays this far below its goal. Otherwise it would go
# up again after a small change of the load.
_HEADROOM = 0.7
# More tasks must save at least this share of the time.
_LEAST_SAVED = 0.1


@dataclasses.dataclass(frozen=True)
class Load:
    """Load of a stream over its last batches. Rates are rows per second."""

    partitions: int
    slots: int
    """Task slots of the application. If it asks for executors, the most that it can have."""
    batch_seconds: float
    """Time of the batch that ran when half of the time of the last batches was over, by length.

    A late batch counts at once: while it runs, the next one gets more rows.
    """
    trigger_seconds: float | None
    """Interval of the trigger; None if a batch starts as soon as the one before has ended."""
    input_rate: float
    """Rows that arrive."""
    processing_rate: float
    """Rows that the stream processes while a batch runs."""
    backlog_rows: int | None
    """Rows that no batch has read yet; None if the sources do not report them."""
    state_rows: int
    state_bytes: int
    batch_bytes: int = 0
    """Median of the bytes that a batch shuffles to the state partitions; 0 if not known."""
    broadcast_bytes: int = 0
    """Bytes of the broadcast tables of the last batch."""
    largest_share: float | None = None
    """Share of the shuffled bytes in the largest partition, from 0 to 1."""
    last_gain: float | None = None
    """Share of the time of a row that the last rescale to more partitions has saved.

    None without such a rescale, and after the input has doubled: then another one can save more.
    """

    @property
    def tasks_at_once(self) -> int:
        """Tasks of one stateful stage that run at the same time."""
        return max(1, min(self.partitions, self.slots))

    @property
    def hot_share(self) -> float:
        """Share of the bytes that more partitions would not divide, such as those of one key.

        The largest partition has them, and its equal part of the others.
        """
        if self.largest_share is None or self.partitions == 1:
            return 0.0
        even = 1 / self.partitions
        return max(0.0, (self.largest_share - even) / (1 - even))

    @property
    def most_useful_tasks(self) -> int | None:
        """Power of two from which on twice as many tasks save little; None if there is none.

        With n tasks and the hot share h, the time is proportional to h + (1 - h) / n.
        """
        hot = self.hot_share
        if hot == 0:
            return None
        return checks.power_up(math.ceil((1 - hot) / hot * (0.5 / _LEAST_SAVED - 1))) or 1


def load_of(
    batches: Sequence[Batch],
    partitions: int,
    slots: int,
    trigger_seconds: float | None,
    before: Load | None = None,
) -> Load:
    """Return the load of a stream over its last batches, oldest first.

    `before` is the load before the last rescale.
    """
    first, last = batches[0], batches[-1]
    rows = sum(each.input_rows for each in batches)
    elapsed = (last.ended - first.ended).total_seconds()
    arrived = rows - first.input_rows
    seconds = sum(each.seconds for each in batches)
    sizes = [each.shuffled for each in batches if any(each.shuffled)]
    sums = [sum(partition) for partition in zip(*sizes, strict=True)]
    input_rate = arrived / elapsed if elapsed > 0 else last.input_rows_per_second
    processing_rate = rows / seconds if seconds > 0 else 0.0
    return Load(
        partitions=partitions,
        slots=slots,
        batch_seconds=_median_by_time([each.seconds for each in batches]),
        trigger_seconds=trigger_seconds,
        input_rate=input_rate,
        processing_rate=processing_rate,
        backlog_rows=last.backlog_rows,
        state_rows=last.state_rows,
        state_bytes=last.state_bytes,
        batch_bytes=round(statistics.median(map(sum, sizes))) if sizes else 0,
        broadcast_bytes=last.broadcast_bytes,
        largest_share=max(sums) / sum(sums) if sums else None,
        last_gain=_gain(before, partitions, input_rate, processing_rate),
    )


def _gain(
    before: Load | None, partitions: int, input_rate: float, processing_rate: float
) -> float | None:
    if before is None or before.partitions >= partitions or processing_rate <= 0:
        return None
    if input_rate > 2 * before.input_rate:
        return None
    return 1 - before.processing_rate / processing_rate


def _median_by_time(seconds: Sequence[float]) -> float:
    """Return the shortest time such that batches up to it have half of the total time."""
    ordered = sorted(seconds)
    passed = itertools.accumulate(ordered)
    half = sum(ordered) / 2
    return next(each for each, until in zip(ordered, passed, strict=True) if until >= half)


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Number of state partitions that a policy wants, and the reason."""

    partitions: int
    reason: str
    """Clause without the numbers of partitions, such as "batches took 41 s of a 30 s trigger"."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", checks.check("partitions", self.partitions, 0))


@runtime_checkable
class Policy(Protocol):
    """A policy. Your own class needs only these two members."""

    @property
    def name(self) -> str:
        """Name in records."""
        ...

    def wanted(self, load: Load) -> Wanted:
        """Return the number of state partitions for a load."""
        ...


@dataclasses.dataclass(frozen=True)
class Fixed:
    """Policy with the same number of state partitions for every load."""

    partitions: int
    name: str = dataclasses.field(default="fixed", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", checks.check("partitions", self.partitions))

    def wanted(self, load: Load) -> Wanted:
        """Return the fixed number."""
        return Wanted(self.partitions, "fixed number")


@dataclasses.dataclass(frozen=True)
class BatchTime:
    """Policy `load`: keep the time of a batch at or below a share of the trigger's interval."""

    share: float = 0.8
    name: str = dataclasses.field(default="load", init=False)

    def __post_init__(self) -> None:
        if not checks.is_number(self.share, 0.05, 1):
            raise InputError(f"share is {self.share!r}: allowed is a number from 0.05 to 1")

    def wanted(self, load: Load) -> Wanted:
        """Return the power of two of partitions that brings batches to their share."""
        if load.trigger_seconds is None:
            return Wanted(load.partitions, "the stream has no trigger interval")
        needed = load.batch_seconds / (load.trigger_seconds * self.share)
        spent = seconds_text(load.batch_seconds)
        reason = f"batches took {spent} of a {seconds_text(load.trigger_seconds)} trigger"
        return _scaled(load, needed, reason)


@dataclasses.dataclass(frozen=True)
class Backlog:
    """Policy `lag`: keep up with the input, and drain the backlog within a time."""

    drain_seconds: float = 300.0
    name: str = dataclasses.field(default="lag", init=False)

    def __post_init__(self) -> None:
        if not checks.is_number(self.drain_seconds, 1, 86_400):
            raise InputError(
                f"drain_seconds is {self.drain_seconds!r}: allowed is a number from 1 to 86400"
            )

    def wanted(self, load: Load) -> Wanted:
        """Return the power of two of partitions that drains the backlog in time."""
        if load.backlog_rows is None:
            return Wanted(load.partitions, "the sources do not report their backlog")
        if load.processing_rate <= 0:
            return Wanted(load.partitions, "no batch has processed rows yet")
        needed = load.input_rate + load.backlog_rows / self.drain_seconds
        reason = (
            f"{count_text(load.backlog_rows, 'row')} wait, {load.input_rate:.0f} arrive per "
            f"second, and batches process {load.processing_rate:.0f} per second"
        )
        return _scaled(load, needed / load.processing_rate, reason)


def _scaled(load: Load, needed: float, reason: str) -> Wanted:
    """Return the partitions for `needed` times the present capacity.

    The time of a batch falls with the tasks that run at the same time. Partitions beyond the slots
    only add a task, a load and a commit of state for each.
    """
    most = checks.power_up(load.slots)
    if needed > 1:
        tasks = checks.power_up(math.ceil(load.tasks_at_once * needed))
    else:
        tasks = checks.power_up(math.ceil(load.tasks_at_once * needed / _HEADROOM)) or 1
        tasks = min(tasks, load.partitions)
    if tasks > most or tasks == most < load.partitions:
        reason += f", limited by {count_text(load.slots, 'task slot')}"
        tasks = most
    if needed > 1:
        useful = load.most_useful_tasks
        if useful is not None and useful < tasks:
            reason += f", limited because one partition gets {load.largest_share:.0%} of the bytes"
            tasks = max(useful, checks.power_up(load.tasks_at_once))
        gain = load.last_gain
        if tasks > load.partitions and gain is not None and gain < _LEAST_SAVED:
            saved = f"{max(0.0, gain):.0%}"
            reason += f", limited because the last rescale saved {saved} of the time of a row"
            tasks = load.partitions
    return Wanted(tasks, reason)
