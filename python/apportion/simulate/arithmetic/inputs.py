"""Inputs of a decision."""

from __future__ import annotations

import dataclasses
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
