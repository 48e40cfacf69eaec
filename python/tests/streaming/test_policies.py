"""How many state partitions each policy wants for a load."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from apportion.errors import InputError
from apportion.streaming.batches import Batch
from apportion.streaming.policies import (
    Backlog,
    BatchTime,
    Fixed,
    Load,
    Policy,
    Wanted,
    load_of,
)
from apportion.streaming.sizes import Bounds

LOAD = Load(
    partitions=8,
    slots=64,
    batch_seconds=20.0,
    trigger_seconds=30.0,
    input_rate=100.0,
    processing_rate=150.0,
    backlog_rows=0,
    state_rows=1000,
    state_bytes=1 << 20,
)


def load(**changed: Any) -> Load:
    return dataclasses.replace(LOAD, **changed)


@pytest.mark.parametrize(
    ("batch_seconds", "partitions"),
    [(24, 8), (25, 16), (48, 16), (49, 32), (240, 128), (16.8, 8), (8.3, 4), (8.5, 8), (0, 1)],
)
def test_batch_time_keeps_batches_at_80_percent_of_the_trigger(
    batch_seconds: float, partitions: int
) -> None:
    wanted = BatchTime(0.8).wanted(load(batch_seconds=batch_seconds, slots=1000))
    assert wanted.partitions == partitions


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [((2, 2, 2, 2, 2), 2), ((1, 2, 3, 4, 5), 4), ((5, 6, 5, 2, 17), 6), ((5, 6, 5, 2, 19), 19)],
)
def test_a_batch_that_takes_as_long_as_all_others_is_the_load(
    seconds: tuple[int, ...], expected: float
) -> None:
    progress = {"batchId": 0, "id": "a", "runId": "b", "timestamp": "2026-03-01T10:00:00Z"}
    batches = [Batch.from_progress({**progress, "batchDuration": 1000 * each}) for each in seconds]
    assert load_of(batches, 8, 8, 30.0).batch_seconds == expected


def test_the_reason_of_batch_time_has_the_times() -> None:
    wanted = BatchTime().wanted(load(batch_seconds=41.0))
    assert wanted.reason == "batches took 41.0 s of a 30.0 s trigger"


def test_more_partitions_than_slots_are_not_wanted() -> None:
    wanted = BatchTime().wanted(load(batch_seconds=100.0, slots=10))
    assert wanted.partitions == 16
    assert wanted.reason.endswith(", limited by 10 task slots")


@pytest.mark.parametrize("batch_seconds", [15.0, 25.0])
def test_the_reason_of_a_fall_to_the_task_slots_has_their_number(batch_seconds: float) -> None:
    wanted = BatchTime().wanted(load(batch_seconds=batch_seconds, slots=3))
    assert wanted.partitions == 4
    assert wanted.reason.endswith(" trigger, limited by 3 task slots")


def test_a_hot_partition_limits_the_partitions_that_are_wanted() -> None:
    # The largest of 8 partitions has 65 %: 60 % that cannot be divided, and an eighth of the rest.
    late = load(batch_seconds=200.0, largest_share=0.65)
    wanted = BatchTime().wanted(late)
    assert late.hot_share == pytest.approx(0.6)
    assert wanted.partitions == 8
    assert wanted.reason.endswith(", limited because one partition gets 65% of the bytes")


@pytest.mark.parametrize(
    ("largest", "partitions"), [(0.125, 128), (0.2, 64), (0.31, 16), (None, 128)]
)
def test_more_partitions_are_wanted_while_they_divide_the_bytes(
    largest: float | None, partitions: int
) -> None:
    late = load(batch_seconds=240.0, slots=1000, largest_share=largest)
    assert BatchTime().wanted(late).partitions == partitions


def test_a_hot_partition_does_not_keep_a_stream_from_shrinking() -> None:
    early = load(batch_seconds=1.0, largest_share=0.65)
    assert BatchTime().wanted(early).partitions == 1


def test_partitions_beyond_the_slots_go_even_if_batches_are_late() -> None:
    assert BatchTime().wanted(load(partitions=200, slots=8, batch_seconds=40.0)).partitions == 8


def test_a_stream_that_just_shrank_does_not_want_to_grow_at_the_same_load() -> None:
    for batch_seconds in range(1, 25):
        before = load(batch_seconds=float(batch_seconds))
        wanted = BatchTime().wanted(before).partitions
        # The worst case: the time of a batch depends only on its tasks.
        after = load(partitions=wanted, batch_seconds=batch_seconds * 8 / wanted)
        assert BatchTime().wanted(after).partitions == wanted


def batches(rows: int, seconds: int) -> list[Batch]:
    progress = {"id": "a", "runId": "b", "numInputRows": rows, "batchDuration": 1000 * seconds}
    return [
        Batch.from_progress({**progress, "batchId": n, "timestamp": f"2026-03-01T10:0{n}:00Z"})
        for n in range(5)
    ]


@pytest.mark.parametrize(
    ("rows", "seconds", "gain"),
    # The rows double at once, and in the last case they are more than twice as many.
    [(6000, 20, 0.0), (6000, 15, 0.25), (12_000, 20, 0.5), (13_000, 20, None), (0, 20, None)],
)
def test_the_gain_of_a_rescale_is_the_time_of_a_row(
    rows: int, seconds: int, gain: float | None
) -> None:
    before = load_of(batches(6000, 20), 4, 64, 60.0)
    assert before.last_gain is None
    assert load_of(batches(rows, seconds), 8, 64, 60.0, before).last_gain == gain
    # The number has not grown.
    assert load_of(batches(rows, seconds), 4, 64, 60.0, before).last_gain is None


@pytest.mark.parametrize("policy", [BatchTime(), Backlog()])
def test_a_stream_does_not_grow_again_after_a_rescale_that_saved_little(policy: Policy) -> None:
    late = load(batch_seconds=100.0, backlog_rows=10**6, last_gain=0.09)
    wanted = policy.wanted(late)
    assert wanted.partitions == 8
    assert wanted.reason.endswith("the last rescale saved 9% of the time of a row")
    assert policy.wanted(dataclasses.replace(late, last_gain=0.1)).partitions > 8
    assert BatchTime().wanted(load(batch_seconds=1.0, last_gain=0.0)).partitions == 1


def test_batch_time_wants_no_change_without_a_trigger_interval() -> None:
    assert BatchTime().wanted(load(trigger_seconds=None, batch_seconds=999.0)).partitions == 8


@pytest.mark.parametrize(
    ("backlog_rows", "partitions"), [(0, 8), (15_000, 8), (15_001, 16), (120_000, 32)]
)
def test_backlog_drains_in_time(backlog_rows: int, partitions: int) -> None:
    policy = Backlog(drain_seconds=300)
    assert policy.wanted(load(backlog_rows=backlog_rows)).partitions == partitions


def test_backlog_wants_no_change_if_the_sources_do_not_report_it() -> None:
    wanted = Backlog().wanted(load(backlog_rows=None))
    assert (wanted.partitions, wanted.reason) == (8, "the sources do not report their backlog")


def test_fixed_wants_its_number_for_every_load() -> None:
    assert Fixed(12).wanted(load(batch_seconds=500.0)).partitions == 12


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Fixed(0), "partitions is 0"),
        (lambda: BatchTime(1.5), "share is 1.5"),
        (lambda: BatchTime(float("nan")), "share is nan"),
        (lambda: BatchTime("a"), "share is 'a'"),  # type: ignore[arg-type]
        (lambda: Backlog(0.5), "drain_seconds is 0.5"),
        (lambda: Backlog(None), "drain_seconds is None"),  # type: ignore[arg-type]
    ],
)
def test_wrong_numbers_are_refused(wrong: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()  # type: ignore[operator]


def test_numbers_of_numpy_become_numbers_that_json_can_hold() -> None:
    three: Any = np.int64(3)
    bounds = Bounds(three, three, three)
    numbers = [Fixed(three).partitions, Wanted(three, "").partitions, *dataclasses.astuple(bounds)]
    assert json.dumps(numbers) == "[3, 3, 3, 3, 3]"


def test_all_policies_have_the_members_of_a_policy() -> None:
    assert all(isinstance(policy, Policy) for policy in (Fixed(1), BatchTime(), Backlog()))
