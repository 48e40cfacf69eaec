from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.simulate.arithmetic.ranges import balanced, even, sum_each, sums

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
def test_even(subpartitions: int, tasks: int, ranges: list[tuple[int, int]]) -> None:
    assert even(subpartitions, tasks) == ranges


@given(SIZES, st.integers(1, 5))
def test_balanced_ranges_have_the_least_largest_one(sizes: list[int], tasks: int) -> None:
    ranges = balanced(sizes, tasks)
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == len(sizes)
    assert len(ranges) <= tasks
    assert max(sums(sizes, ranges)) == largest_possible(sizes, tasks)


def test_balanced_ranges_take_no_more_tasks_than_that_needs() -> None:
    assert balanced([100, 1, 1], 3) == [(0, 1), (1, 3)]
    assert balanced([], 3) == [(0, 0)]


def test_no_range_is_wider_than_allowed_where_that_many_can_be_so_narrow() -> None:
    assert balanced([0] * 6, 3, max_width=2) == [(0, 2), (2, 4), (4, 6)]
    assert balanced([0] * 6, 2, max_width=2) == [(0, 6)]


def test_inputs_with_fewer_subpartitions_are_empty_beyond_them() -> None:
    assert sum_each([[1, 2, 3], [10]]) == [11, 2, 3]
    assert sum_each([]) == []
