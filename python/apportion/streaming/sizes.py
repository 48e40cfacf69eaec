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
        checks.check("min_partitions", self.least, 1, 100_000)
        checks.check("max_partitions", self.most, self.least, 100_000)
        checks.check("state_per_partition", self.bytes_per_partition, 1, checks.LARGEST_LONG)

    def apply(self, wanted: Wanted, needed: int, load: Load) -> Wanted:
        """Return a policy's number within the bounds, and at least the number for the bytes."""
        state = (
            f"the state of {size_text(load.state_bytes)} needs {needed} partitions "
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

    A decision takes about a millisecond, so it is kept until the state has changed by a tenth.
    """

    def __init__(self, spark: SparkSession, bounds: Bounds) -> None:
        self._spark = spark
        self._bounds = bounds
        self._decided: tuple[int, int] | None = None

    def needed(self, state_bytes: int) -> int:
        """Return the number of state partitions that the bytes need, from 1 to the maximum."""
        if self._decided and abs(state_bytes - self._decided[0]) <= self._decided[0] / 10:
            return self._decided[1]
        most = self._bounds.most
        each, rest = divmod(state_bytes, most)
        decision = decide(
            self._spark,
            [Input([each + (place < rest) for place in range(most)])],
            data_volume_per_task=self._bounds.bytes_per_partition,
            min_parallelism=1,
            max_parallelism=most,
            rounding="power-of-two",
            memory_enabled=False,
            # Other modes fill the slots, and only the bytes count here.
            mode="active",
        )
        self._decided = (state_bytes, decision.parallelism)
        return decision.parallelism
