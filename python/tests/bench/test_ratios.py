from __future__ import annotations

import pytest

from apportion.bench.ratios import Estimate, geometric_mean, median, paired


def test_ratios_compare_runs_of_the_same_round() -> None:
    assert paired([4.0, 6.0], [1.0, 3.0]) == [4.0, 2.0]


def test_the_median_has_minimum_and_maximum() -> None:
    assert median([4.0, 1.0, 2.0]) == (2.0, 1.0, 4.0)
    assert median([1.0, 2.0]) == (1.5, 1.0, 2.0)
    assert str(median([4.0, 1.0, 2.0])) == "2.00 (1.00 to 4.00)"


def test_the_geometric_mean_uses_the_median_of_each_query() -> None:
    # The square root of 1 times 4; an arithmetic mean would be 2.5.
    assert geometric_mean([[0.1, 1.0, 7.0], [4.0]]).value == pytest.approx(2.0)


def test_equal_ratios_have_an_interval_without_width() -> None:
    assert geometric_mean([[2.0, 2.0], [2.0, 2.0]]) == pytest.approx((2.0, 2.0, 2.0))


def test_the_interval_resamples_queries() -> None:
    # Drawn are 1 and 1, 1 and 4, 4 and 1, or 4 and 4: each a quarter of the time.
    assert geometric_mean([[1.0], [4.0]]) == pytest.approx((2.0, 1.0, 4.0))


def test_the_interval_resamples_rounds() -> None:
    # One query: only its rounds can differ. Three times the same round is drawn 1 time in 27.
    assert geometric_mean([[1.0, 2.0, 4.0]]) == pytest.approx((2.0, 1.0, 4.0))


def test_more_queries_narrow_the_interval() -> None:
    few, many = geometric_mean([[1.0], [2.0]] * 2), geometric_mean([[1.0], [2.0]] * 50)
    assert few.value == pytest.approx(many.value)
    assert many.high - many.low < few.high - few.low


def test_the_same_ratios_give_the_same_interval() -> None:
    ratios = [[1.0, 1.1, 1.3], [0.7, 0.9, 0.8], [1.2, 1.0, 1.1]]
    assert geometric_mean(ratios) == geometric_mean(ratios)
    assert isinstance(geometric_mean(ratios), Estimate)
