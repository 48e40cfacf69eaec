from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apportion.logs.simulate.arithmetic.subpartitions import resized

SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=20)


def test_half_as_many_subpartitions_have_exact_sums() -> None:
    assert resized([1, 2, 3, 4], 2, contiguous=False) == [1 + 3, 2 + 4]


def test_twice_as_many_subpartitions_have_equal_halves() -> None:
    assert resized([10, 20], 4, contiguous=False) == [5, 10, 5, 10]


def test_other_numbers_of_subpartitions_keep_the_sums_of_the_common_divisor() -> None:
    # Modulo 4 and modulo 6, it is known modulo 2.
    assert resized([13, 30, 17, 33], 6, contiguous=False) == [10, 21, 10, 21, 10, 21]


def test_a_heavy_key_stays_in_one_subpartition() -> None:
    assert resized([10, 90, 10, 10], 8, contiguous=False) == [5, 85, 5, 5, 5, 5, 5, 5]
    assert resized([10, 10, 90, 10], 6, contiguous=False) == [6, 6, 87, 7, 7, 7]


def test_contiguous_subpartitions_are_merged_with_their_neighbours() -> None:
    assert resized([1, 2, 3, 4], 2, contiguous=True) == [3, 7]
    assert resized([10, 20], 4, contiguous=True) == [5, 5, 10, 10]
    assert resized([30, 60], 3, contiguous=True) == [20, 30, 40]


@given(SIZES, st.integers(1, 50), st.booleans())
def test_resized_subpartitions_keep_all_bytes(
    sizes: list[int], number: int, contiguous: bool
) -> None:
    found = resized(sizes, number, contiguous)
    assert len(found) == number
    assert sum(found) == sum(sizes)
    assert min(found) >= 0
