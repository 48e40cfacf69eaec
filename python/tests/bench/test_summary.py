from __future__ import annotations

import dataclasses

import pytest

from apportion._util.ratios import Estimate
from apportion.bench.report import variants_table
from apportion.bench.results import QueryResult, Results, Run
from apportion.bench.summary import ratio, summarise

from .conftest import run


def test_the_ratio_of_a_query_is_the_median_of_its_rounds(results: Results) -> None:
    # Seconds 4, 6, 8 by 1, 3, 2.
    assert ratio(results, "q1", "b") == Estimate(4.0)
    assert ratio(results, "q1", "a") == Estimate(1.0)


def test_a_query_that_failed_has_no_ratio(results: Results) -> None:
    assert ratio(results, "q3", "b") is None


def test_the_summary_has_only_queries_that_ran_under_all_variants(results: Results) -> None:
    a, b = summarise(results)
    assert (a.variant, b.variant) == ("a", "b")
    # q1 is 4 times as fast and q2 as fast as before; q3 failed and does not count.
    assert b.faster.value == pytest.approx(2.0)
    assert (b.worst_query, b.worst_ratio) == ("q2", 1.0)
    assert (a.seconds, b.seconds) == (6 + 1, 2 + 1)
    assert (a.task_seconds, b.task_seconds) == (4, 4)
    assert (a.tasks, b.tasks) == (4 + 4, 4 + 8)
    assert (a.reduce_tasks, b.reduce_tasks) == (2 + 2, 2 + 4)
    assert (a.blocks_written, b.blocks_written) == (60, 60)
    assert b.largest_to_mean == pytest.approx(1.5)


def test_the_summary_has_limited_decisions_spills_and_failures(results: Results) -> None:
    results.queries["q1"].runs["b"][:] = [
        dataclasses.replace(run(1), limited_decisions=2, limit_factor=factor, spilled_bytes=10)
        for factor in (1.5, 3.0, 2.0)
    ]
    a, b = summarise(results)
    assert (a.limited_decisions, a.limit_factor, a.spilled_bytes) == (0, None, 0)
    assert (b.limited_decisions, b.limit_factor, b.spilled_bytes) == (2, 3.0, 10)
    table = variants_table([a, b])
    assert [[cell.plain for cell in row[-3:]] for row in table.rows] == [
        ["0 B", "0", "0"],
        ["10 B", "1", "2 (up to 3.0)"],
    ]


def test_the_summary_of_queries_without_shuffles_has_no_largest_task(results: Results) -> None:
    alone = Run(1.0, 10, 1, 0, 0, 0, 0)
    scan = QueryResult("SELECT 1", {"a": [alone] * 3, "b": [alone] * 3})
    assert (
        summarise(dataclasses.replace(results, queries={"scan": scan}))[0].largest_to_mean is None
    )


def test_the_summary_is_empty_if_no_query_ran_under_all_variants(results: Results) -> None:
    failed = QueryResult("SELECT 1", {"a": [run(1)] * 3}, {"b": "no luck"})
    assert summarise(dataclasses.replace(results, queries={"q": failed})) == []
