"""Ratios of times, and what many of them say together. Above 1 is faster than the baseline."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import NamedTuple

_RESAMPLES = 2000
_SEED = 20260101
_TAIL = 0.025


class Estimate(NamedTuple):
    """A number, and how far down and up it may be."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def paired(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Return the ratio of each round: seconds of the baseline by seconds of the variant."""
    return [ours / theirs for ours, theirs in zip(baseline, variant, strict=True)]


def median(ratios: Sequence[float]) -> Estimate:
    """Return the median of a query's ratios, from the least to the largest of them."""
    return Estimate(statistics.median(ratios), min(ratios), max(ratios))


def geometric_mean(queries: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of the medians of each query's ratios, one or more.

    Its interval holds 95 % of what comes out when queries, and rounds within them, are drawn at
    random with replacement, as many as there are. The draws are the same each time.
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
