from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.logs.simulate.arithmetic.ranges import balanced, even, halved, sum_each, sums

SIZES = st.lists(st.integers(0, 50), min_size=1, max_size=9)


def largest_possible(sizes: list[int], tasks: int) -> int:
    """The largest range of the best cuts there are, found by trying all of them."""
    found = []
    for count in range(min(tasks, len(sizes))):
        for cuts in combinations(range(1, len(sizes)), count):
            found.append(max(sums(sizes, list(pairwise([0, *cuts, len(sizes)])))))
    return min(found)


@pytest.mark.parametrize(
    ("subpartitions", "tasks", "ranges"),
    [
        (8, 4, [(0, 2), (2, 4), (4, 6), (6, 8)]),
        (5, 2, [(0, 2), (2, 5)]),
        (0, 1, [(0, 0)]),
    ],
)
def test_even_ranges_have_equal_widths(
    subpartitions: int, tasks: int, ranges: list[tuple[int, int]]
) -> None:
    assert even(subpartitions, tasks) == ranges


def test_larger_ranges_are_halved_until_they_are_small_or_have_one_subpartition() -> None:
    sizes = [1, 1, 1, 1, 9, 1, 1, 1]
    assert halved([(0, 4), (4, 8)], sizes, limit=4) == [(0, 4), (4, 5), (5, 6), (6, 8)]


def test_an_empty_half_is_no_range() -> None:
    assert halved([(0, 8)], [0, 0, 0, 0, 3, 0, 3, 0], limit=4) == [(0, 6), (6, 8)]
    assert halved([(0, 8)], [3, 3, 0, 0, 0, 0, 0, 0], limit=4) == [(0, 1), (1, 8)]


@given(SIZES, st.integers(1, 5))
def test_the_largest_balanced_range_is_as_small_as_possible(sizes: list[int], tasks: int) -> None:
    ranges = balanced(sizes, tasks)
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == len(sizes)
    assert len(ranges) <= tasks
    assert max(sums(sizes, ranges)) == largest_possible(sizes, tasks)


def test_balanced_ranges_use_no_unnecessary_tasks() -> None:
    assert balanced([100, 1, 1], 3) == [(0, 1), (1, 3)]
    assert balanced([], 3) == [(0, 0)]


def test_balanced_ranges_keep_the_maximum_width_if_possible() -> None:
    assert balanced([0] * 6, 3, max_width=2) == [(0, 2), (2, 4), (4, 6)]
    assert balanced([0] * 6, 2, max_width=2) == [(0, 6)]


def test_inputs_with_different_numbers_of_subpartitions_are_added() -> None:
    assert sum_each([[1, 2, 3], [10]]) == [11, 2, 3]
    assert sum_each([]) == []
