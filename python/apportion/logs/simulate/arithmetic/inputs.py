"""Inputs of a decision."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from apportion.decision import NOTHING_HELD, HeldRows


@dataclasses.dataclass(frozen=True)
class ShuffleInput:
    """A shuffle that a stage reads."""

    bytes: Sequence[int]
    """Bytes of each subpartition."""
    written: Sequence[int] = ()
    """Total bytes that each map task wrote; empty if they are not known."""
    splittable: bool = False
    """Whether tasks may read parts of a subpartition: the output of some map tasks."""
    held: HeldRows = NOTHING_HELD
    """Execution memory for one byte."""
    groups: int | None = None
    """Number of groups of subpartitions that each map task writes, over all levels; None if Spark
    writes the shuffle, with a block for each subpartition."""

    def blocks(self, size: int) -> int:
        """Return the maximum number of blocks of a subpartition of `size` bytes."""
        share = 1.0 if self.groups is None else self.groups / len(self.bytes)
        return math.ceil(len(self.written) * share) if size else 0
