from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apportion.bench import report
from apportion.bench.measure import job_group
from apportion.bench.plans import FIELDS, PlanCounts, count_plan, is_worse
from apportion.bench.results import Conditions, Results
from apportion.bench.runner import limits, run_query
from apportion.bench.variants import Variant
from apportion.session import confs

NOTHING = PlanCounts(**dict.fromkeys(FIELDS, 0))


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with the table `sales`, which has 8 days as partitions, and the table `days`."""
    session = spark.newSession()
    folder = tmp_path_factory.mktemp("tables")
    sales = session.range(800).selectExpr("id AS amount", "id % 8 AS day").coalesce(1)
    sales.write.partitionBy("day").parquet(f"{folder}/sales")
    days = session.range(8).selectExpr("id AS day", "id % 4 AS week").coalesce(1)
    days.write.parquet(f"{folder}/days")
    for name in ("sales", "days"):
        session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    return session


def counts(session: SparkSession, sql: str) -> PlanCounts:
    with job_group(session) as group:
        result = session.sql(sql)
        result.collect()
    return count_plan(session, result, group)


def test_plan_counts_of_a_pruned_scan_under_a_broadcast_join(session: SparkSession) -> None:
    found = counts(session, "SELECT sum(amount) FROM sales JOIN days USING (day) WHERE week = 2")
    # Two of the eight days are in week 2, and days itself is a file.
    assert (found.dynamic_filters, found.partitions, found.files) == (1, 2, 3)
    assert (found.broadcast_joins, found.shuffled_joins, found.exchanges) == (1, 0, 1)
    # The filter reads the broadcast of the join.
    assert found.reused_exchanges == 1


def test_plan_counts_of_a_scan_without_pruning(session: SparkSession) -> None:
    found = counts(session, "SELECT sum(amount) FROM sales JOIN days USING (day)")
    assert (found.dynamic_filters, found.partitions, found.files) == (0, 8, 9)


def test_plan_counts_include_reused_exchanges_and_subqueries(session: SparkSession) -> None:
    grouped = "(SELECT day, max(amount) AS most FROM sales GROUP BY day)"
    found = counts(
        session,
        f"SELECT /*+ MERGE(b) */ count(*) FROM {grouped} a JOIN {grouped} b ON a.day = b.day",
    )
    # The other side of the join reads the shuffle again; the second exchange is the count's.
    assert (found.exchanges, found.reused_exchanges, found.shuffled_joins) == (2, 1, 1)
    mean = "(SELECT avg(amount) FROM sales)"
    found = counts(session, f"SELECT amount > {mean}, amount < {mean} FROM sales WHERE day = 1")
    assert found.reused_subqueries == 1


def test_plan_counts_include_scan_stages_and_tasks(session: SparkSession) -> None:
    found = counts(session, "SELECT id % 3, count(*) FROM range(0, 90, 1, 5) GROUP BY 1")
    assert (found.scan_stages, found.exchanges) == (1, 1)
    assert found.tasks > 5


def test_more_exchanges_or_fewer_filters_are_worse() -> None:
    assert is_worse("exchanges", 1, 2)
    assert not is_worse("exchanges", 2, 1)
    assert is_worse("dynamic_filters", 1, 0)
    assert not is_worse("dynamic_filters", 0, 1)
    assert not is_worse("tasks", 1, 100)
    changed = dataclasses.replace(NOTHING, files=3, broadcast_joins=2, tasks=9)
    assert changed.worse(NOTHING) == ["files"]
    assert NOTHING.worse(changed) == ["broadcast_joins"]


def test_plans_of_variants_are_compared(session: SparkSession, results: Results) -> None:
    limit = "spark.sql.autoBroadcastJoinThreshold"
    conditions = dataclasses.replace(
        results.conditions,
        variants=[Variant("broadcast", {limit: "10MB"}), Variant("merge", {limit: "-1"})],
        rounds=1, warmups=0, check=False, plans=True,
    )  # fmt: skip
    sql = "SELECT count(*) FROM days a JOIN days b ON a.day = b.day"
    result = run_query(session, sql, conditions)
    joins = {
        name: (plan.broadcast_joins, plan.shuffled_joins) for name, plan in result.plans.items()
    }
    assert joins == {"broadcast": (1, 0), "merge": (0, 1)}
    table = report.plans_table(Results(conditions, results.environment, {"q": result}))
    cells = [(cell.plain, cell.style) for cell in table.rows[0]]
    assert cells[:2] == [("q", ""), ("merge", "")]
    assert ("1 → 0", "red") in cells


def test_plan_counts_are_saved_and_loaded(results: Results, tmp_path: Path) -> None:
    from apportion.bench.results import load

    results.queries["q1"].plans["a"] = NOTHING
    results.save(tmp_path / "bench.json")
    assert load(tmp_path / "bench.json") == results


def test_plans_are_counted_only_on_request(session: SparkSession, results: Results) -> None:
    conditions: Conditions = dataclasses.replace(
        results.conditions, variants=[Variant("a", {}), Variant("b", {})], rounds=1, warmups=0
    )
    assert run_query(session, "SELECT 1", conditions).plans == {}


def test_the_factors_of_limited_decisions_are_read(session: SparkSession) -> None:
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.apportion.adaptiveWrites": "false",
        "spark.apportion.dataVolumePerTask": "1KB",
    }
    began = time.time()
    with confs(session, conf):
        session.sql("SELECT sha2(string(id), 256) FROM range(1000) ORDER BY 1").collect()
    session.sql("SELECT id % 3, count(*) FROM range(10) GROUP BY 1").collect()
    taken = "SELECT count(*) FROM apportion_decisions() WHERE decided_at >= timestamp_seconds(:at)"
    assert session.sql(taken, {"at": int(began)}).collect()[0][0] >= 2
    # The second query is not limited.
    (factor,) = limits(session, began)
    assert factor > 2
    assert limits(session, time.time() + 60) == []
