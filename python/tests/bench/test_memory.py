from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession

from apportion.bench import report, runner
from apportion.bench.results import QueryResult, Results, load
from apportion.bench.suites import Suite
from apportion.bench.variants import memory_conf
from apportion.cli.commands import bench
from apportion.errors import SparkEndedError

from .test_runner import FOUR, GROUPED, TWO


@pytest.mark.parametrize(
    ("master", "key"),
    [
        (None, "spark.driver.memory"),
        ("local", "spark.driver.memory"),
        ("local[4]", "spark.driver.memory"),
        ("local-cluster[2,1,1024]", "spark.executor.memory"),
        ("yarn", "spark.executor.memory"),
    ],
)
def test_tasks_get_the_memory_of_the_driver_in_local_mode_only(
    master: str | None, key: str
) -> None:
    assert memory_conf("2g", master) == {key: "2g"}


def test_each_memory_and_variant_has_a_row_with_spill_and_failures(results: Results) -> None:
    table = report.memory_table({"4g": results, "1g": results})
    rows = [[cell.plain for cell in row] for row in table.rows]
    assert [row[:2] for row in rows] == [["4g", "a"], ["", "b"], ["1g", "a"], ["", "b"]]
    baseline, other = (dict(zip(table.columns, row, strict=True)) for row in rows[:2])
    assert (baseline["Times faster (95 %)"], baseline["Failed"], other["Failed"]) == (
        "baseline",
        "0",
        "1",
    )
    assert other["Times faster (95 %)"] not in ("", "baseline")


def test_a_query_that_ends_spark_has_failed_and_the_other_variants_run_again(
    spark: SparkSession, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = dataclasses.replace(
        results.conditions, variants=[TWO, FOUR], rounds=1, warmups=0, check=False
    )
    time = runner._time

    def end_under_four(session: SparkSession, sql: str) -> float:
        if session.conf.get("spark.apportion.parallelism") == "4":
            raise SparkEndedError("Spark has ended: no answer")
        return time(session, sql)

    monkeypatch.setattr(runner, "_time", end_under_four)
    session = spark.newSession()
    first = runner.run_query(session, GROUPED, conditions)
    assert first.spark_ended
    assert first.failures == {"four": "Spark has ended: no answer"}
    second = runner.run_query(session, GROUPED, conditions, first.failures)
    assert not second.spark_ended
    assert second.failures == first.failures
    assert list(second.runs) == ["two"]


def test_a_saved_result_of_ended_spark_is_read_again(results: Results, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    ended = QueryResult("SELECT 1", {}, {"b": "Spark has ended"}, spark_ended=True)
    dataclasses.replace(results, queries={"q": ended}).save(file)
    assert load(file).queries["q"] == ended
    assert [cell.plain for cell in report.queries_table(load(file)).rows[0]] == [
        *("q", "-", "failed", "- → failed"),
    ]


def test_a_sweep_goes_on_after_spark_has_ended_and_stops_if_nothing_changes(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bench._Job(
        Suite("s", {"q": "SELECT 1"}), results.conditions, {}, tmp_path / "b.json", None, None
    )
    ended = dataclasses.replace(results, queries={"q": QueryResult("SELECT 1", spark_ended=True)})
    again = dataclasses.replace(
        results,
        queries={"q": QueryResult("SELECT 1", {}, {"b": "Spark has ended"}, spark_ended=True)},
    )
    answers = iter([ended, again, results, ended, ended])
    monkeypatch.setattr(bench, "_measure_apart", lambda job, fresh: next(answers))
    # One of the queries of `results` has failed.
    with pytest.raises(typer.Exit):
        bench._sweep(job, ["1g"], fresh=True)
    assert next(answers) is ended
    answers = iter([ended, ended])
    with pytest.raises(typer.Exit):
        bench._sweep(job, ["1g"], fresh=True)
    assert next(answers, None) is None
