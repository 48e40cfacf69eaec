"""When a stream is changed."""

from __future__ import annotations

import pytest

from apportion.errors import InputError
from apportion.streaming.policies import Wanted
from apportion.streaming.stabilizer import Stabilizer


def changes(
    wishes: list[tuple[float, int]], partitions: int = 8, cooldown: float = 0
) -> list[tuple[float, int]]:
    """Return (time, new number) of each change for wishes at these times."""
    stabilizer = Stabilizer(stabilization=60, cooldown=cooldown)
    made = []
    for now, wanted in wishes:
        steady = stabilizer.steady(now, partitions, Wanted(wanted, ""))
        if steady:
            partitions = steady.partitions
            stabilizer.changed(now)
            made.append((now, partitions))
    return made


def test_a_stream_grows_when_more_was_wanted_for_the_whole_stabilization() -> None:
    assert changes([(0, 16), (30, 16), (59, 16), (60, 16)]) == [(60, 16)]


def test_a_short_peak_changes_nothing() -> None:
    assert changes([(0, 64), (30, 64), (50, 8), (61, 64), (100, 64)]) == []


def test_a_stream_grows_to_the_smallest_number_that_was_wanted() -> None:
    assert changes([(0, 64), (30, 16), (60, 64)]) == [(60, 16)]


def test_a_stream_shrinks_to_the_largest_number_that_was_wanted() -> None:
    assert changes([(0, 1), (30, 4), (60, 2)]) == [(60, 4)]


def test_a_wish_from_before_the_stabilization_does_not_limit_the_change() -> None:
    assert changes([(0, 9), (10, 64), (65, 64)], cooldown=0) == [(65, 9)]
    stabilizer = Stabilizer(stabilization=60, cooldown=0)
    for now, wanted in [(0, 9), (10, 64), (40, 64)]:
        assert stabilizer.steady(now, 8, Wanted(wanted, "")) is None
    steady = stabilizer.steady(70, 8, Wanted(64, "late"))
    assert steady is not None
    assert (steady.partitions, steady.reason) == (64, "late")


def test_load_that_swings_around_the_present_number_changes_nothing() -> None:
    assert changes([(10.0 * n, 16 if n % 4 < 2 else 4) for n in range(100)]) == []


def test_no_change_comes_before_the_cooldown_has_passed() -> None:
    steps = [(10.0 * n, 16 if n < 10 else 4) for n in range(100)]
    assert changes(steps, cooldown=600) == [(60, 16), (660, 4)]


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), 1e9])
def test_wrong_times_are_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="stabilization is"):
        Stabilizer(wrong, 0)
    with pytest.raises(InputError, match="cooldown is"):
        Stabilizer(0, wrong)
