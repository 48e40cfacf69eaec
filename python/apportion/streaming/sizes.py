"""Smallest number of state partitions for the bytes of the state."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from apportion._util import checks
from apportion._util.units import size_text
from apportion.decision import Input, decide
from apportion.streaming.policies import Load, Wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Bounds of the number of state partitions."""

    least: int
    most: int
    bytes_per_partition: int
    """Target size of the state of one partition."""

    def __post_init__(self) -> None:
        least = checks.check("min_partitions", self.least, 1, 100_000)
        most = checks.check("max_partitions", self.most, least, 100_000)
        size = self.bytes_per_partition
        size = checks.check("state_per_partition", size, 1, checks.LARGEST_LONG)
        object.__setattr__(self, "least", least)
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "bytes_per_partition", size)

    def apply(self, wanted: Wanted, needed: int, load: Load) -> Wanted:
        """Return a policy's number within the bounds, and at least the number for the bytes."""
        batches = (
            f" and batches of {size_text(load.batch_bytes)} need" if load.batch_bytes else " needs"
        )
        state = (
            f"the state of {size_text(load.state_bytes)}{batches} {needed} partitions "
            f"with {size_text(self.bytes_per_partition)} each"
        )
        if wanted.partitions < needed:
            wanted = Wanted(needed, state)
        if wanted.partitions < self.least:
            return Wanted(self.least, f"{wanted.reason}, limited by min_partitions")
        if wanted.partitions > self.most:
            return Wanted(self.most, f"{wanted.reason}, limited by max_partitions")
        return wanted


class StateSizes:
    """Numbers of state partitions for bytes, decided as for the shuffles of a batch query.

    A task reads its part of the state and of the batch, and all broadcast tables. A decision takes
    about a millisecond, so it is kept until one of these has changed by a tenth.
    """

    def __init__(self, spark: SparkSession, bounds: Bounds) -> None:
        self._spark = spark
        self._bounds = bounds
        self._decided: tuple[tuple[int, ...], int] | None = None

    def needed(self, load: Load) -> int:
        """Return the number of state partitions that the bytes need, from 1 to the maximum."""
        sizes = (load.state_bytes, load.batch_bytes, load.broadcast_bytes)
        if self._decided and all(map(_is_near, sizes, self._decided[0])):
            return self._decided[1]
        most = self._bounds.most
        decision = decide(
            self._spark,
            [
                Input(_even(load.state_bytes, most)),
                Input(_even(load.batch_bytes, most)),
                *[Input([size], broadcast=True) for size in [load.broadcast_bytes] if size],
            ],
            data_volume_per_task=self._bounds.bytes_per_partition,
            min_parallelism=1,
            max_parallelism=most,
            rounding="power-of-two",
            memory_enabled=False,
            # Other modes fill the slots, and only the bytes count here.
            mode="active",
        )
        self._decided = (sizes, decision.parallelism)
        return decision.parallelism


def _is_near(size: int, decided: int) -> bool:
    return abs(size - decided) <= decided / 10


def _even(size: int, parts: int) -> list[int]:
    each, rest = divmod(size, parts)
    return [each + (place < rest) for place in range(parts)]
