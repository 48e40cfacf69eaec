"""Ratios of times, and their statistics. A ratio above 1 is faster than the baseline."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

_RESAMPLES = 2000
_SEED = 20260101
_TAIL = 0.025


class Estimate(NamedTuple):
    """Number with its lower and upper bound."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def paired(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Return the ratio of each round: the baseline's seconds divided by the variant's."""
    return [ours / theirs for ours, theirs in zip(baseline, variant, strict=True)]


def median(ratios: Sequence[float]) -> Estimate:
    """Return the median of a query's ratios. The bounds are the smallest and largest ratio."""
    return Estimate(statistics.median(ratios), min(ratios), max(ratios))


def geometric_mean(queries: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of the queries' median ratios, with its 95 % interval.

    `queries` has the ratios of each query, one per round, and must not be empty. The interval comes
    from a bootstrap that resamples queries, and rounds within queries. The random seed is fixed.
    """
    draw = random.Random(_SEED)
    means = sorted(
        _mean_of_medians([draw.choices(rounds, k=len(rounds)) for rounds in resampled])
        for resampled in (draw.choices(queries, k=len(queries)) for _ in range(_RESAMPLES))
    )
    end = round(_TAIL * _RESAMPLES)
    return Estimate(_mean_of_medians(queries), means[end], means[-1 - end])


def _mean_of_medians(queries: Sequence[Sequence[float]]) -> float:
    return statistics.geometric_mean(map(statistics.median, queries))
