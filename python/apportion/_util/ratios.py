"""Ratios of times with their 95 % intervals. A ratio above 1 is faster than the baseline."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
import statistics
from collections.abc import Sequence

FEWEST_RUNS = 5
"""Runs of each side below which a ratio has no interval."""
_FEWEST_RATIOS = 10
"""Ratios of several queries below which their mean has no interval."""
_MOST_RUNS = 300
"""Runs of a side that count. Of more runs, evenly spaced ones count."""
_RESAMPLES = 2000
_SEED = 20260101
_TAIL = 0.025
# With 0.025, an interval from 7 runs misses the ratio in 8 % of the cases, if one side varies more
# than the other.
_TAIL_OF_MEDIANS = 0.01


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Ratio with the bounds of its 95 % interval."""

    value: float
    interval: tuple[float, float] | None = None
    """None if there are too few measurements."""

    @property
    def is_faster(self) -> bool:
        """Whether the whole interval is above 1."""
        return self.interval is not None and self.interval[0] > 1

    @property
    def is_slower(self) -> bool:
        """Whether the whole interval is below 1."""
        return self.interval is not None and self.interval[1] < 1

    @property
    def bars(self) -> tuple[float, float]:
        """Lengths of the error bars in a plot."""
        low, high = self.interval or (self.value, self.value)
        return self.value - low, high - self.value

    def __str__(self) -> str:
        if self.interval is None:
            return _digits(self.value)
        low, high = map(_digits, self.interval)
        return f"{_digits(self.value)} ({low} to {high})"


def _digits(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def of_runs(baseline: Sequence[float], variant: Sequence[float]) -> Estimate:
    """Return the ratio of the medians of two sides. Runs of different sides do not belong together.

    The interval is that of a bootstrap with every possible draw of the runs.
    """
    value = statistics.median(baseline) / statistics.median(variant)
    if min(len(baseline), len(variant)) < FEWEST_RUNS:
        return Estimate(value)
    pairs = itertools.product(_with_weights(baseline), _with_weights(variant))
    ratios = sorted((ours / theirs, p * q) for (ours, p), (theirs, q) in pairs)
    return Estimate(value, (_after_tail(ratios), _after_tail(ratios[::-1])))


def _with_weights(runs: Sequence[float]) -> list[tuple[float, float]]:
    """Return the runs with the probabilities that they are the median of a draw."""
    thinned = sorted(runs)
    step = (len(runs) - 1) / (_MOST_RUNS - 1)
    if step > 1:
        thinned = [thinned[round(place * step)] for place in range(_MOST_RUNS)]
    return list(zip(thinned, _weights(len(thinned)), strict=True))


@functools.cache
def _weights(runs: int) -> list[float]:
    """Return the probability of each of some sorted runs to be the median of a draw of as many.

    Of two middle runs, each is the median in half of the draws. A draw has its r-th smallest run
    among the i smallest of n runs if at least r of its n runs are: a binomial distribution with
    the probability i / n.
    """
    ranks = (runs + 1) // 2, runs // 2 + 1

    def within(smallest: int) -> float:
        share = smallest / runs
        chances = [
            math.comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(runs + 1)
        ]
        return statistics.fmean(sum(chances[rank:]) for rank in ranks)

    bounds = [within(smallest) for smallest in range(runs + 1)]
    return [after - before for before, after in itertools.pairwise(bounds)]


def _after_tail(ratios: Sequence[tuple[float, float]]) -> float:
    """Return the first ratio at which the sum of the weights is above the tail."""
    sums = itertools.accumulate(weight for _, weight in ratios)
    above = (
        ratio for (ratio, _), total in zip(ratios, sums, strict=True) if total > _TAIL_OF_MEDIANS
    )
    return next(above)


def of_rounds(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Return the ratio of each round: the baseline's seconds divided by the variant's."""
    return [ours / theirs for ours, theirs in zip(baseline, variant, strict=True)]


def median(rounds: Sequence[float]) -> Estimate:
    """Return the median of a query's rounds. Fewer than six rounds have no interval.

    The interval is that of the sign test: it misses the median if too many rounds are on one side.
    """
    tails = itertools.accumulate(math.comb(len(rounds), k) for k in range(len(rounds)))
    outside = sum(tail <= _TAIL * 2 ** len(rounds) for tail in tails)
    value = statistics.median(rounds)
    if not outside:
        return Estimate(value)
    return Estimate(value, (sorted(rounds)[outside - 1], sorted(rounds)[-outside]))


def geometric_mean(queries: Sequence[Sequence[float]]) -> Estimate:
    """Return the geometric mean of the queries' median ratios.

    `queries` has the ratios of each query, one per round, and must not be empty. The interval comes
    from a bootstrap that resamples queries, and rounds within queries. The random seed is fixed.
    That of a single query is the interval of its rounds.
    """
    if len(queries) == 1:
        return median(queries[0])
    value = mean_of_medians(queries)
    if sum(map(len, queries)) < _FEWEST_RATIOS:
        return Estimate(value)
    draw = random.Random(_SEED)
    means = sorted(
        mean_of_medians([draw.choices(rounds, k=len(rounds)) for rounds in resampled])
        for resampled in (draw.choices(queries, k=len(queries)) for _ in range(_RESAMPLES))
    )
    end = round(_TAIL * _RESAMPLES)
    return Estimate(value, (means[end], means[-1 - end]))


def mean_of_medians(queries: Sequence[Sequence[float]]) -> float:
    """Return the value of `geometric_mean`, without the time for its interval."""
    return statistics.geometric_mean(map(statistics.median, queries))
