"""Batches of a log under other policies."""

from __future__ import annotations

import datetime
import random

import pytest

from apportion.errors import InputError
from apportion.streaming import Backlog, BatchTime, Fixed, simulate
from apportion.streaming.batch_time import Sample, fit
from apportion.streaming.batches import Batch
from apportion.streaming.journal import History
from apportion.streaming.policies import Load, Wanted
from apportion.streaming.simulation import StreamSimulation, parse_policy
from tests.streaming.histories import (
    BEGIN,
    OVERHEAD,
    ROW,
    TASK,
    batch_seconds,
    history,
    progress,
    record,
    rescale,
)


def steady(batches: int = 60, rows: int = 10_000, partitions: int = 4) -> History:
    return history(record(number, rows, partitions) for number in range(batches))


def peak(slots: int = 16) -> History:
    """1,000, 6,000 and 1,000 rows per second, with 2 and then 16 partitions."""
    numbers = [2] * 40 + [16] * 60
    return history(
        record(
            number,
            60_000 if 30 <= number < 70 else 10_000,
            partitions,
            slots=slots,
            run_id="run-2" if partitions == 16 else "run-1",
        )
        for number, partitions in enumerate(numbers)
    )


def samples(cases: list[tuple[int, int, int]]) -> list[Sample]:
    return [Sample(*case, batch_seconds(*case)) for case in cases]


def test_the_fit_finds_the_parameters_of_exact_batches() -> None:
    cases = [(rows, parts, 4) for rows in (0, 1_000, 50_000) for parts in (1, 4, 5, 8, 16)]
    model = fit(samples(cases))
    assert (model.overhead, model.task, model.row) == pytest.approx((OVERHEAD, TASK, ROW))
    assert model.worst_error < 1e-6
    assert model.knows_tasks


def test_one_outlier_does_not_change_the_fit() -> None:
    cases = [(rows, parts, 4) for rows in range(0, 50_000, 5_000) for parts in (4, 8, 16)]
    slow = Sample(10_000, 4, 4, 60.0)
    model = fit([*samples(cases), slow])
    assert (model.overhead, model.task, model.row) == pytest.approx((OVERHEAD, TASK, ROW), rel=0.01)
    assert model.worst_error > 0.9


@pytest.mark.parametrize("seed", range(20))
def test_no_parameter_is_negative(seed: int) -> None:
    numbers = random.Random(seed)
    noise = [
        Sample(numbers.randrange(1000), numbers.choice((1, 2, 8)), 4, numbers.random())
        for _ in range(numbers.randrange(1, 12))
    ]
    model = fit(noise)
    assert min(model.overhead, model.task, model.row) >= 0


def test_the_cost_of_a_task_is_unknown_with_one_number_of_waves() -> None:
    model = fit(samples([(rows, 4, 4) for rows in (1_000, 2_000, 9_000)]))
    assert not model.knows_tasks
    assert model.task == 0
    assert model.overhead == pytest.approx(OVERHEAD + TASK)


def test_the_replay_of_the_log_is_as_the_log() -> None:
    logged, replay = simulate(peak(), []).runs
    assert replay.partition_hours == pytest.approx(logged.partition_hours, rel=0.1)
    assert replay.worst_lag == pytest.approx(logged.worst_lag, rel=0.2)
    assert (logged.rescales, replay.rescales) == (1, 1)
    assert [number for _, number in replay.partitions] == [2, 16]


def test_a_peak_makes_the_stream_grow_and_shrink() -> None:
    *_, run = simulate(peak(), [BatchTime(0.8)], stabilization=30, cooldown=60).runs
    numbers = [number for _, number in run.partitions]
    assert max(numbers) >= 4
    assert numbers[-1] < max(numbers)
    assert run.rescales == len(numbers) - 1


def test_more_partitions_have_less_lag_and_more_partition_hours() -> None:
    few, many = simulate(peak(), [Fixed(1), Fixed(16)]).runs[-2:]
    assert few.worst_lag > 10 * many.worst_lag
    assert few.partition_hours < many.partition_hours
    assert many.late == 0
    assert few.late


def test_a_steady_stream_does_not_rescale() -> None:
    for policy in (BatchTime(0.8), Backlog(300)):
        *_, run = simulate(steady(rows=80_000), [policy]).runs
        assert (run.rescales, run.pauses) == (0, 0)


def test_a_stream_whose_batches_have_a_fixed_cost_rescales_once() -> None:
    logged = history(
        record(n, 5_000 + n % 3 * 5_000, batch_millis=9_000, slots=64) for n in range(300)
    )
    *_, run = simulate(logged, [BatchTime(0.8)], stabilization=60, cooldown=60).runs
    assert [number for _, number in run.partitions] == [4, 8]


def test_a_log_with_few_batches_in_a_century_is_not_simulated_for_hours() -> None:
    later = BEGIN + datetime.timedelta(days=36_500)
    records = [record(0, batch_millis=1), record(1, batch_millis=1, at=later)]
    with pytest.raises(InputError, match="more than 100 times the batches of the log"):
        simulate(history(records), [])


def test_all_rows_are_processed() -> None:
    batches: list[int] = []

    class Counting:
        name = "counting"

        def wanted(self, load: Load) -> Wanted:
            batches.append(round(load.processing_rate * load.batch_seconds))
            return Wanted(load.partitions, "")

    *_, run = simulate(steady(batches=30), [Counting()]).runs
    assert run.name == "counting"
    assert run.batches in (30, 31)
    assert all(rows == pytest.approx(10_000, rel=0.1) for rows in batches[:20])


def test_pauses_are_the_median_of_the_log() -> None:
    records = [record(0, partitions=2), record(1, partitions=2), rescale(2, 10_000, 2, 8)]
    measured = simulate(history([*records, record(4, partitions=8, run_id="run-2")]), [])
    assert (measured.pause, measured.pauses_measured) == (6.0, 1)
    assert measured.runs[0].pauses == 6.0
    assert simulate(steady(), []).pauses_measured == 0


def test_a_log_without_apportion_needs_the_slots() -> None:
    batches = [Batch.from_progress(progress(number)) for number in range(20)]
    logged = History("clicks", "query-1", batches=batches)
    with pytest.raises(InputError, match="does not have the task slots of clicks"):
        simulate(logged, [])
    result: StreamSimulation = simulate(logged, [Fixed(8)], slots=4, trigger=10)
    assert [run.name for run in result.runs] == ["logged", "replay", "fixed:8"]


def test_one_batch_is_too_few() -> None:
    with pytest.raises(InputError, match="the log has 1 batches of clicks: 2 are needed"):
        simulate(steady(1), [])


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("fixed:8", Fixed(8)),
        ("load", BatchTime()),
        ("load:0.5", BatchTime(0.5)),
        ("lag:5min", Backlog(300)),
        ("lag", Backlog()),
    ],
)
def test_policies_have_a_text(text: str, policy: object) -> None:
    assert parse_policy(text) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lod:0.8", "the policy lod:0.8 is unknown.* Did you mean load?"),
        ("fixed", "the policy fixed: '' is not a number"),
        ("fixed:0", "the policy fixed:0: partitions is 0"),
        ("load:2", "the policy load:2: share is 2.0: allowed is a number from 0.05 to 1"),
        ("lag:soon", "the policy lag:soon: 'soon' is not a time"),
    ],
)
def test_other_policies_get_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_policy(text)
