from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

import apportion
from apportion import Decision
from apportion.decision import Decisions, decision_from_json
from apportion.logs.eventlog.model import LoggedDecision
from apportion.logs.explanation.render import text
from tests.records import RECORD


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session that has run one aggregate: 16 subpartitions, 4 tasks."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "16")
    session.conf.set("spark.apportion.parallelism", "4")
    session.sql("SELECT id % 10 AS k, count(*) FROM range(0, 100, 1, 2) GROUP BY k").collect()
    return session


def test_a_decision_has_the_values_of_its_query(session: SparkSession) -> None:
    [decision] = apportion.decisions(session)
    assert decision.query is not None
    assert decision.group == 0
    assert decision.operator == "HashAggregate"
    assert len(decision.stages) == len(decision.shuffles) == 1
    assert decision.subpartitions == 16
    assert decision.parallelism == decision.tasks == 4
    assert decision.ranges == [(0, 4), (4, 8), (8, 12), (12, 16)]
    assert (decision.layout, decision.kind) == ("even", "explicit")
    assert decision.input_bytes > decision.largest_task_bytes > 0
    assert decision.sources["parallelism"] == "session setting"
    assert decision.reason.startswith("4 tasks: parallelism is set to 4 (session setting)")
    assert (decision.levels, decision.blocks, decision.bytes_read_twice) == ([4], 8, 0)
    assert decision.decided_at.tzinfo is datetime.timezone.utc
    age = datetime.datetime.now(datetime.timezone.utc) - decision.decided_at
    assert datetime.timedelta(0) <= age < datetime.timedelta(minutes=10)


def test_the_fields_of_a_decision_are_the_columns_of_apportion_decisions(
    session: SparkSession,
) -> None:
    columns = session.sql("SELECT * FROM apportion_decisions()").columns
    assert [field.name for field in dataclasses.fields(Decision)] == columns


def test_spark_cuts_no_column_of_the_plan_that_reads_the_decisions(session: SparkSession) -> None:
    apportion.decisions(session)
    context: Any = session.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jvm: Any = session._jsparkSession
    plan = jvm.sharedState().statusStore().executionsList().last().physicalPlanDescription()
    assert "bytes_read_twice" in plan
    assert "more fields" not in plan
    assert session.conf.get("spark.sql.debug.maxToStringFields") == "25"


def test_a_part_of_the_decisions_is_a_table_too(session: SparkSession) -> None:
    decisions = apportion.decisions(session)
    assert "<table" in decisions[-1:]._repr_html_()
    assert isinstance(decisions[0], Decision)
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    assert list(decisions.to_pandas()["tasks"]) == [4]
    assert decisions.to_arrow().column("reason").to_pylist() == [decisions[0].reason]
    assert len(Decisions().to_pandas()) == 0


def test_the_latest_decision_comes_last(session: SparkSession) -> None:
    session.sql("SELECT DISTINCT id % 3 FROM range(0, 9, 1, 2)").collect()
    first, second = apportion.decisions(session)
    assert first.decided_at <= second.decided_at
    assert first.query is not None
    assert second.query is not None
    assert first.query < second.query


def test_a_new_session_has_no_decisions(session: SparkSession) -> None:
    assert apportion.decisions(session.newSession()) == []


def test_the_decision_of_an_unchanged_group_has_no_formula(spark: SparkSession) -> None:
    session = spark.newSession()
    session.sql("SELECT /*+ REPARTITION(3) */ id FROM range(0, 9, 1, 2)").collect()
    [decision] = apportion.decisions(session)
    assert (decision.layout, decision.kind) == ("unchanged", "unchanged")
    assert (decision.raw, decision.rounded, decision.broadcast_cap) == (None, None, None)
    assert decision.data_volume_per_task is None
    assert decision.ranges == []
    assert decision.tasks == 3


SCAN = {**RECORD, "layout": "files", "largest_task_bytes": 3 << 20, "operator": "Scan parquet"}


def test_the_largest_task_of_a_scan_is_shown_with_at_least_the_mean() -> None:
    decision = decision_from_json(SCAN)
    assert (decision.shown_largest_bytes, decision.mean_task_bytes) == (4 << 20, 4 << 20)
    logged = LoggedDecision(decision, [])
    shown = "\n".join(text._decision(logged))
    assert "largest task 4 MiB, mean 4 MiB\n" in shown
    note = "The bytes of files include spark.sql.files.openCostInBytes for each file."
    assert note in shown
    assert note in decision._repr_html_()
    assert note in Decisions([decision])._repr_html_()
    assert decision_from_json(RECORD).shown_largest_bytes == 5 << 20
    assert "openCost" not in decision_from_json(RECORD)._repr_html_()
