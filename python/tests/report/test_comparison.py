from __future__ import annotations

import math
import random
import re
from array import array

import pytest

from apportion.logs.eventlog import Application, Query, Stage, Unread
from apportion.logs.report.comparison import Comparison, compare
from apportion.logs.report.render import text
from apportion.logs.report.runs import QueryRun, runs

from .samples import log, run


def compared(before: list[QueryRun], after: list[QueryRun]) -> Comparison:
    return compare([log(*before)], [log(*after)])


def test_a_ratio_of_five_runs_a_side_has_an_interval() -> None:
    result = compared([run(each) for each in (10, 11, 12, 13, 14)], [run(6)] * 5)
    ratio = result.queries[0].wall_ratio
    assert ratio
    assert ratio.value == 2
    assert ratio.interval == (10 / 6, 14 / 6)
    shown = text(result, 20)
    assert "2.00 (1.67 to 2.33)" in shown
    assert "Brackets are 95 % intervals." in shown
    assert "too few" not in shown


def test_fewer_runs_on_a_side_claim_nothing() -> None:
    result = compared([run(10)] * 100, [run(5)] * 4)
    ratio = result.queries[0].wall_ratio
    assert ratio
    assert ratio.interval is None
    shown = text(result, 20)
    assert "A query without brackets has fewer than 5 runs on a side." in shown
    assert "2.00\n" in shown
    assert "intervals" not in shown


def test_a_missing_interval_is_null_in_json() -> None:
    (few,) = compared([run(10)], [run(5)]).as_json()["queries"]
    assert few["wall_ratio"] == {"value": 2, "interval": None}
    (many,) = compared([run(10)] * 5, [run(6)] * 5).as_json()["queries"]
    assert many["wall_ratio"] == {"value": 1.666667, "interval": [1.666667, 1.666667]}


@pytest.mark.parametrize(
    ("before", "after", "is_regression"),
    [(10, 12, True), (10, 10.9, False), (100, 104, False), (100, 106, True), (0.1, 1.2, True)],
)
def test_a_regression_is_5_percent_and_1_second_slower(
    before: float, after: float, is_regression: bool
) -> None:
    result = compared([run(before)] * 5, [run(after)] * 5)
    assert bool(result.with_verdict("regression")) == is_regression


def simulated(factor: float, runs: int, noise: float = 0.1, queries: int = 1000) -> Comparison:
    """Compare queries of 30 s that take `factor` times as long after."""
    draw = random.Random(5)

    def times(seconds: float) -> list[QueryRun]:
        return [
            run(seconds * math.exp(draw.gauss(0, noise)), fingerprint=name, description=name)
            for name in map(str, range(queries))
            for _ in range(runs)
        ]

    return compared(times(30), times(30 * factor))


@pytest.mark.parametrize("noise", [0.1, 0.3])
@pytest.mark.parametrize("runs", [1, 2, 5, 10])
def test_at_most_one_of_40_equal_queries_is_a_regression(runs: int, noise: float) -> None:
    share = len(simulated(1, runs, noise).with_verdict("regression")) / 1000
    assert share <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 1000)


def test_a_gain_and_a_loss_of_20_percent_are_found_in_ten_runs_a_side() -> None:
    # About 91 % are found, so a sample of fewer queries can have less than 90 %.
    gains, losses = (simulated(factor, 10, queries=4000) for factor in (0.8, 1 / 0.8))
    faster = [each for each in gains.queries if each.wall_ratio and each.wall_ratio.is_faster]
    assert gains.with_verdict("regression") == []
    assert len(faster) / 4000 > 0.9
    assert len(losses.with_verdict("regression")) / 4000 > 0.9


def test_a_slower_query_with_few_runs_is_no_regression() -> None:
    result = compared([run(10)] * 4, [run(20)] * 4)
    assert [query.verdict for query in result.queries] == ["few runs"]
    shown = text(result, 20)
    assert "No regressions.\n" in shown
    assert "1 slower query with too few runs to tell:" in shown


@pytest.mark.parametrize("runs", [1, 5])
def test_a_slower_query_with_twice_the_data_is_no_regression(runs: int) -> None:
    before = [run(10, scanned_bytes=2 << 30, shuffled_bytes=5 << 30)]
    after = [run(20, scanned_bytes=4 << 30, shuffled_bytes=9 << 30)]
    result = compared(before * runs, after * runs)
    (query,) = result.queries
    assert (query.verdict, result.with_verdict("regression")) == ("more data", [])
    assert query.wall_ratio_per_byte
    assert query.wall_ratio_per_byte.value == 1
    shown = text(result, 20)
    assert "1 slower query with more data:" in shown
    assert "The data grew from 2 GiB to 4 GiB." in shown
    assert re.search(r"Wall time per byte +1\.00", shown)
    assert re.search(r"Shuffled +5 GiB +9 GiB", shown)


def test_the_files_measure_the_data_if_spark_counts_few_scanned_bytes() -> None:
    old = log(*(run(10.0 + i / 10, file_bytes=100 << 20, scanned_bytes=21_000) for i in range(5)))
    new = log(*(run(20.0 + i / 10, file_bytes=200 << 20, scanned_bytes=20_000) for i in range(5)))
    comparison = compare([old], [new])
    assert comparison.with_verdict("regression") == []
    (query,) = comparison.with_verdict("more data")
    assert query.wall_ratio_per_byte
    assert query.wall_ratio_per_byte.value == pytest.approx(1, rel=0.05)
    shown = text(comparison, 20)
    grew = "The data grew from 500 MiB to 1000 MiB. Compare the time per byte."
    assert shown.index(grew) < shown.index("1 query compared")


def test_10_percent_more_data_does_not_excuse_a_regression() -> None:
    before, after = run(10, scanned_bytes=1000), run(20, scanned_bytes=1100)
    result = compared([before] * 5, [after] * 5)
    assert len(result.with_verdict("regression")) == 1
    assert "per byte" not in text(result, 20)


def test_a_gain_from_less_data_shows_the_ratio_per_byte() -> None:
    result = compared([run(10, scanned_bytes=2000)], [run(5, scanned_bytes=1000)])
    assert re.search(r"Wall time per byte +1\.00", text(result, 20))


def test_regressions_come_first_and_then_the_largest_savings() -> None:
    names = ("small", "large", "slow", "slower")
    before = [run(10, 100, fingerprint=name, description=name) for name in names]
    after = [
        run(9, 90, fingerprint="small", description="small"),
        run(8, 20, fingerprint="large", description="large"),
        run(12, 10, fingerprint="slow", description="slow"),
        run(20, 10, fingerprint="slower", description="slower"),
    ]
    result = compared(before * 5, after * 5)
    assert [query.title for query in result.queries] == ["slower", "slow", "large", "small"]
    shown = text(result, 1)
    assert "2 regressions:" in shown
    assert shown.count("1 more query: show them with --top.") == 2


def test_totals_use_the_number_of_runs_after() -> None:
    result = compared([run(10, 40), run(20, 60)], [run(5, 20)])
    assert result.totals["core_seconds_before"] == 50
    assert result.totals["core_seconds_after"] == 20
    assert result.totals["seconds_before"] == 15
    assert result.queries[0].saved_core_seconds == 30


def test_failed_runs_are_counted_and_not_compared() -> None:
    failed = run(1, has_succeeded=False)
    result = compared([run(10), failed], [run(10), failed, failed])
    assert (result.before.failed_runs, result.after.failed_runs) == (1, 2)
    assert result.queries[0].wall_ratio
    assert result.queries[0].wall_ratio.value == 1
    assert result.queries[0].after.failed_runs == 2
    assert "not compared: 1 before, 2 after." in text(result, 20)


def test_a_query_that_always_failed_on_one_side_is_listed_apart() -> None:
    result = compared([run(10, has_succeeded=False)], [run(10)])
    assert result.queries == []
    assert len(result.not_compared) == 1
    shown = text(result, 20)
    assert "1 query without a successful run on one side:" in shown
    assert "0 succeeded and 1 failed before, 1 succeeded and 0 failed after" in " ".join(
        shown.split()
    )


def test_spills_and_failures_are_means_of_a_run() -> None:
    before = [run(spilled_bytes=2048, failed_tasks=1, memory_failures=1), run()]
    result = compared(before, [run(), run()])
    numbers = result.queries[0].before
    assert (numbers.spilled_bytes, numbers.failed_tasks, numbers.memory_failures) == (
        1024,
        0.5,
        0.5,
    )
    shown = text(result, 20)
    for name in ("Spilled", "Failed tasks", "Out of memory"):
        assert name in shown


def test_unmatched_queries_are_listed_by_their_runs() -> None:
    other = run(fingerprint="b", description="other")
    rare = run(fingerprint="c", description="rare")
    result = compared([run(), rare, other, other], [run()])
    assert [(row.title, row.runs) for row in result.before.unmatched] == [("other", 2), ("rare", 1)]
    assert "2 queries only before:" in text(result, 20)


def test_text_has_at_most_80_columns() -> None:
    long = "SELECT " + "a_rather_long_name, " * 40
    runs_before = [run(1234.5, 123_456, description=long, spilled_bytes=1 << 40), run(11.11)]
    other = run(description=long, fingerprint="b")
    result = compare(
        [log(*runs_before, other), Unread("a log", "damaged")], [log(*runs_before, name="x" * 30)]
    )
    shown = text(result, 20)
    assert max(map(len, shown.splitlines())) <= 80
    assert "a log: damaged" in shown


def test_a_run_has_the_numbers_of_its_stages() -> None:
    stage = Stage(0, 0, "collect", [], 2, 0)
    stage.launched, stage.finished = array("q", [0, 100]), array("q", [1000, 600])
    stage.spilled_bytes = array("q", [5, 6])
    stage.input_bytes, stage.shuffle_written_bytes = array("q", [7, 8]), array("q", [1, 2])
    stage.failed_tasks, stage.memory_failures, stage.wasted_millis = 2, 1, 300
    stage.killed_millis = 200
    query = Query(0, "report", submitted=0, completed=1500, stages=[stage])
    made = Application(name="nightly", queries={0: query}, conf={"spark.task.cpus": "2"})
    (only,) = runs(made, "log").runs
    assert (only.seconds, only.core_seconds, only.tasks) == (1.5, 4.0, 2)
    assert (only.scanned_bytes, only.shuffled_bytes) == (15, 3)
    assert (only.spilled_bytes, only.failed_tasks, only.memory_failures) == (11, 2, 1)
    assert only.has_succeeded


def test_failed_and_unfinished_queries_did_not_succeed() -> None:
    stage = Stage(0, 0, "collect", [], 2, 0)
    failed = Query(0, "", submitted=0, completed=9, failure="boom", stages=[stage])
    running = Query(1, "", submitted=0, stages=[stage])
    command = Query(2, "SET x", submitted=0, completed=1)
    made = Application(queries={0: failed, 1: running, 2: command})
    assert [(each.id, each.has_succeeded) for each in runs(made, "log").runs] == [
        (0, False),
        (1, False),
    ]
