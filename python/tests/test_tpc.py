"""TPC-H and TPC-DS give the same results with Apportion and without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from apportion import Decision, decisions, hints
from apportion.bench.rows.ties import without_ties
from apportion.bench.suites import tpc
from apportion.decision import decisions_taken
from apportion.session import confs
from apportion.settings import ENABLED

NUMBERS: dict[tpc.Benchmark, range] = {"tpch": range(1, 23), "tpcds": range(1, 100)}

# Joins of every kind, subqueries, unions, windows, rollups, set operations, and CTEs used again.
QUICK: dict[tpc.Benchmark, set[int]] = {
    "tpch": {13, 15, 21},
    "tpcds": {36, 51, 75, 87},
}
FEW: dict[tpc.Benchmark, set[int]] = {"tpch": {21}, "tpcds": {5}}

# So small that stages have several tasks, and the same on every machine.
# More than 32 tasks would only take longer.
SETTINGS = {
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "8KB",
    "spark.apportion.maxParallelism": "32",
    "spark.sql.shuffle.partitions": "16",
    "spark.apportion.sources.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "64KB",
    # To compile these queries takes longer than to interpret them. `make demo` compiles some.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# What finished stages turn out to be can spare later ones their shuffle, if these have not begun:
# how many have is a matter of time, and how large they are one of how many tasks there were.
PLANNED_ONCE = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.optimizer.excludedRules": (
        "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation,"
        "org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowPlan"
    ),
}


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return _session(spark, "tpch", tmp_path_factory)


@pytest.fixture(scope="module")
def tpcds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    return _session(spark, "tpcds", tmp_path_factory)


def each_query(quick: dict[tpc.Benchmark, set[int]]) -> pytest.MarkDecorator:
    """All queries; those that are not quick are slow tests."""
    return pytest.mark.parametrize(
        ("benchmark", "number"),
        [
            pytest.param(name, number, marks=() if number in quick[name] else pytest.mark.slow)
            for name, numbers in NUMBERS.items()
            for number in numbers
        ],
    )


@each_query(QUICK)
def test_results_of_tpc_queries_are_the_same_with_and_without_apportion(
    request: pytest.FixtureRequest, benchmark: tpc.Benchmark, number: int
) -> None:
    session = request.getfixturevalue(benchmark)
    query = without_ties(session, tpc.queries(benchmark)[number])
    with confs(session, {ENABLED: "false"}), decisions_taken(session) as off:
        expected = session.sql(query).collect()
    with decisions_taken(session) as on:
        rows = session.sql(query).collect()
    assert_same_rows(rows, expected)
    assert not off
    if number in QUICK[benchmark]:
        assert rows
        assert on


@each_query(FEW)
def test_balanced_ranges_add_no_shuffles_and_keep_results(
    request: pytest.FixtureRequest, benchmark: tpc.Benchmark, number: int
) -> None:
    session = request.getfixturevalue(benchmark)
    query = without_ties(session, tpc.queries(benchmark)[number])
    with confs(session, {ENABLED: "false", **PLANNED_ONCE}):
        spark_shuffles, spark_rows = _shuffles(session, query)
    with confs(session, {"spark.apportion.ranges": "balanced", **PLANNED_ONCE}):
        shuffles, rows = _shuffles(session, query)
    assert shuffles <= spark_shuffles
    assert_same_rows(rows, spark_rows)


def _shuffles(session: SparkSession, query: str) -> tuple[int, list[Row]]:
    """The shuffles in the plan that a query ended with, and its rows."""
    result = session.sql(query)
    rows = result.collect()
    plan = result._jdf.queryExecution().executedPlan().toString()
    return len(re.findall(r"(?<!\w)Exchange ", plan.split("== Initial Plan ==")[0])), rows


@each_query(FEW)
def test_a_hint_changes_the_tasks_of_its_block_and_keeps_results(
    request: pytest.FixtureRequest, benchmark: tpc.Benchmark, number: int
) -> None:
    session = request.getfixturevalue(benchmark)
    query = without_ties(session, tpc.queries(benchmark)[number])
    innermost = max(hints.show(query), key=lambda block: block.path.count("/")).path

    with decisions_taken(session) as plain:
        expected = session.sql(query).collect()
    taken = {}
    for block in ("main", innermost):
        with decisions_taken(session) as taken[block]:
            rows = session.sql(hints.add(query, "PARALLELISM(7)", block)).collect()
        assert_same_rows(rows, expected)

    # Set operations at the top are of no block.
    if all(block.path == "main" for block in hints.show(query) if "/" not in block.path):
        assert {_number(d) for d in taken["main"]} <= {7, None}
    assert not any(_hinted(d) for d in plain)
    assert {_number(d) for d in taken[innermost] if _hinted(d)} <= {7, None}


def _hinted(decision: Decision) -> bool:
    return decision.sources.get("parallelism", "").startswith("hint")


def _number(decision: Decision) -> int | None:
    """The tasks that were decided, or None where there was nothing to decide."""
    unchanged = decision.kind in ("unchanged", "subpartitions")
    return None if unchanged else decision.parallelism


@pytest.mark.parametrize("number", [3, 5, 9, 18])
def test_the_executed_plan_has_the_decided_reads(tpch: SparkSession, number: int) -> None:
    result = tpch.sql(tpc.queries("tpch")[number])
    result.collect()
    latest = decisions(tpch)[-1].query
    decided = {
        stage: decision.tasks
        for decision in decisions(tpch)
        if decision.query == latest and decision.layout != "unchanged"
        for stage in decision.stages
    }
    plan: Any = result._jdf.queryExecution().executedPlan()
    assert max(decided.values()) > 1
    assert dict(_tasks_of_reads(plan)) == decided


def _tasks_of_reads(plan: Any) -> Iterator[tuple[int, int]]:
    """The stages that are read otherwise than as written, each with the tasks that read it."""
    kind = plan.getClass().getSimpleName()
    if kind == "AQEShuffleReadExec":
        yield plan.child().id(), plan.partitionSpecs().size()
    if kind == "AdaptiveSparkPlanExec":
        yield from _tasks_of_reads(plan.executedPlan())
    if kind in ("ShuffleQueryStageExec", "BroadcastQueryStageExec", "ResultQueryStageExec"):
        yield from _tasks_of_reads(plan.plan())
    children = plan.children()
    for place in range(children.size()):
        yield from _tasks_of_reads(children.apply(place))


def assert_same_rows(rows: list[Row], expected: list[Row]) -> None:
    """Compare rows in any order. Another order of additions changes the last digits of a sum."""
    near = [
        [pytest.approx(v, rel=1e-9, nan_ok=True) if isinstance(v, float) else v for v in row]
        for row in sorted(expected, key=_text)
    ]
    assert [list(row) for row in sorted(rows, key=_text)] == near


def _text(row: Row) -> list[str]:
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row]


def _session(
    spark: SparkSession, benchmark: tpc.Benchmark, directories: pytest.TempPathFactory
) -> SparkSession:
    """A session with the benchmark's tables as views."""
    session = spark.newSession()
    for key, value in SETTINGS.items():
        session.conf.set(key, value)
    for table in tpc.generate(benchmark, 0.01, directories.mktemp(benchmark)).iterdir():
        session.read.parquet(str(table)).createOrReplaceTempView(table.stem)
    return session
