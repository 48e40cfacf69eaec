"""Intervals of ratios hold in simulations with a fixed seed."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import pytest

from apportion._util.ratios import Estimate, geometric_mean, median, of_rounds, of_runs

TRIALS = 2000
# Three standard errors of a share of 5 % in as many trials.
ERROR = 3 * math.sqrt(0.05 * 0.95 / TRIALS)
SIDES = [(5, 5), (6, 6), (7, 7), (8, 8), (10, 10), (20, 5), (5, 20)]

Side = Callable[[random.Random], float]


def noise(share: float) -> Side:
    return lambda draw: math.exp(draw.gauss(0, share))


def pauses(draw: random.Random) -> float:
    """One of ten runs takes twice as long."""
    return noise(0.1)(draw) * (2 if draw.random() < 0.1 else 1)


def differing(
    before: Side, after: Side, sides: tuple[int, int], gain: float = 0, trials: int = TRIALS
) -> float:
    """Return the share of comparisons that claim a difference."""
    draw = random.Random(f"{sides}")
    claims = 0
    for _ in range(trials):
        old = [before(draw) for _ in range(sides[0])]
        new = [after(draw) * (1 - gain) for _ in range(sides[1])]
        found = of_runs(old, new)
        claims += found.is_faster or found.is_slower
    return claims / trials


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(
    ("before", "after"),
    [(noise(0.1), noise(0.1)), (noise(0.2), noise(0.05)), (pauses, pauses)],
    ids=["10 % noise", "unequal noise", "pauses"],
)
def test_equal_queries_differ_in_at_most_5_percent(
    before: Side, after: Side, sides: tuple[int, int]
) -> None:
    assert differing(before, after, sides) <= 0.05 + ERROR


def test_a_gain_of_20_percent_is_found_in_ten_runs_a_side() -> None:
    found = differing(noise(0.1), noise(0.1), (10, 10), gain=0.2, trials=4 * TRIALS)
    assert found - 3 * math.sqrt(0.1 * 0.9 / (4 * TRIALS)) > 0.9


def test_more_runs_find_a_smaller_gain() -> None:
    assert differing(noise(0.1), noise(0.1), (60, 60), gain=0.1, trials=100) > 0.9


@pytest.mark.parametrize("sides", [(1, 1), (2, 2), (4, 4), (4, 100), (100, 4)])
def test_fewer_than_five_runs_on_a_side_have_no_interval(sides: tuple[int, int]) -> None:
    assert of_runs([4.0] * sides[0], [2.0] * sides[1]) == Estimate(2.0)


def test_weights_are_those_of_drawn_medians() -> None:
    old, new, draw = [1.0, 2.0, 4.0, 8.0, 16.0], [1.0] * 5, random.Random(1)
    medians = sorted(statistics.median(draw.choices(old, k=5)) for _ in range(4000))
    assert of_runs(old, new).interval == (medians[40], medians[-40])


def test_a_thousand_runs_have_a_narrow_interval() -> None:
    found = of_runs([float(each) for each in range(1000, 2000)], [1.0] * 2000)
    assert found.value == 1499.5
    assert found.interval
    assert 1300 < found.interval[0] < 1499.5 < found.interval[1] < 1700


def test_a_ratio_is_faster_or_slower_if_its_interval_is_on_one_side_of_1() -> None:
    assert Estimate(2.0, (1.5, 3.0)).is_faster
    assert Estimate(0.5, (0.4, 0.6)).is_slower
    for other in (Estimate(2.0), Estimate(2.0, (1.0, 3.0)), Estimate(0.9, (0.8, 1.1))):
        assert not other.is_faster
        assert not other.is_slower


def test_an_estimate_as_text_has_its_interval() -> None:
    assert str(Estimate(2.0)) == "2.00"
    assert str(Estimate(20.4, (1.0, 33.3))) == "20 (1.00 to 33)"


def test_rounds_compare_runs_of_the_same_round() -> None:
    assert of_rounds([4.0, 6.0], [1.0, 3.0]) == [4.0, 2.0]


def test_fewer_than_six_rounds_of_a_query_have_no_interval() -> None:
    assert median([4.0, 1.0, 2.0]) == Estimate(2.0)
    assert median([1.0, 2.0, 3.0, 4.0, 5.0]) == Estimate(3.0)
    assert median([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == Estimate(3.5, (1.0, 6.0))


@pytest.mark.parametrize("rounds", range(6, 60))
def test_the_interval_of_rounds_misses_the_median_in_at_most_5_percent(rounds: int) -> None:
    found = median([float(each) for each in range(1, rounds + 1)])
    assert found.interval
    outside = sum(math.comb(rounds, k) for k in range(int(found.interval[0])))
    assert 2 * outside / 2**rounds <= 0.05


def test_the_geometric_mean_uses_the_median_of_each_query() -> None:
    # The square root of 1 times 4; an arithmetic mean would be 2.5.
    assert geometric_mean([[0.1, 1.0, 7.0], [4.0]]).value == pytest.approx(2.0)


def bounds(queries: Sequence[Sequence[float]]) -> tuple[float, float]:
    found = geometric_mean(queries).interval
    assert found
    return found


def test_equal_ratios_have_an_interval_without_width() -> None:
    assert bounds([[2.0, 2.0]] * 5) == pytest.approx((2.0, 2.0))


def test_the_interval_resamples_queries() -> None:
    # Five times the same query of two is drawn 1 time in 32.
    assert bounds([[1.0] * 5, [4.0] * 5]) == pytest.approx((1.0, 4.0))


def test_the_interval_resamples_rounds() -> None:
    low, high = bounds([[1.0, 2.0, 4.0]] * 4)
    assert 1 <= low < 2 < high <= 4


def test_a_single_query_has_the_interval_of_its_rounds() -> None:
    assert geometric_mean([[1.0, 2.0, 4.0]]) == Estimate(2.0)
    assert geometric_mean([[1.0, 2.0, 2.0, 2.0, 2.0, 4.0]]) == Estimate(2.0, (1.0, 4.0))


def test_few_ratios_of_several_queries_have_no_interval() -> None:
    assert geometric_mean([[1.0], [4.0]]).interval is None
    assert geometric_mean([[1.0, 1.0, 1.0]] * 3).interval is None
    assert geometric_mean([[1.0, 1.0]] * 5).interval


def test_more_queries_narrow_the_interval() -> None:
    few, many = bounds([[1.0], [2.0]] * 5), bounds([[1.0], [2.0]] * 50)
    assert many[1] - many[0] < few[1] - few[0]


def test_the_same_ratios_give_the_same_interval() -> None:
    ratios = [[1.0, 1.1, 1.3], [0.7, 0.9, 0.8], [1.2, 1.0, 1.1], [1.0, 1.0, 1.0]]
    assert geometric_mean(ratios) == geometric_mean(ratios)
