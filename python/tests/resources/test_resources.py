"""What queries need of slots, on the two that tests have."""

from __future__ import annotations

from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession

import apportion
from apportion import InputError, resources
from apportion.resources import Requirement

QUERY = "SELECT id % 10 AS k, count(*) FROM range(0, 1000, 1, 4) GROUP BY 1"


def test_planning_slots_does_not_run_the_query(spark: SparkSession) -> None:
    plan = resources.plan(spark.newSession(), "SELECT raise_error('it ran') FROM range(9)")
    assert [stage.kind for stage in plan.stages] == ["result"]


def test_a_slot_plan_has_stages_groups_and_totals(spark: SparkSession) -> None:
    plan = resources.plan(spark.newSession(), QUERY, slots=3)
    scan, result = plan.stages
    assert (scan.kind, scan.reads, scan.depth, scan.tasks) == ("shuffle", [], 0, 4)
    assert (result.kind, result.reads, result.depth) == ("result", [0], 1)
    assert (scan.requirement, scan.slots) == (Requirement(1, 4, 4), 3)
    assert scan.spec.cores == 1
    assert scan.spec.memory_bytes > 0
    (group,) = plan.groups
    assert group.requirement == plan.requirement
    assert group.spec.cores == 2, "one for each stage"
    assert (plan.at_once >= 4, plan.slots) == (True, 3)


def test_a_hint_sets_min_target_and_max_slots(spark: SparkSession) -> None:
    plan = resources.plan(spark, QUERY.replace("SELECT", "SELECT /*+ PARALLELISM(7) */", 1))
    assert plan.requirement == Requirement(7, 7, 7)
    assert plan.stages[1].slots is None, "two slots are too few"
    assert "hint on the query block, line 1" in plan.stages[1].why


def test_a_hint_with_three_numbers_sets_the_slots_that_stages_declare(spark: SparkSession) -> None:
    plan = resources.plan(spark, QUERY.replace("SELECT", "SELECT /*+ SLOTS(2, 6, 9) */", 1))
    assert [stage.requirement for stage in plan.stages][1] == Requirement(2, 6, 9)


def test_the_plan_to_end_in_time_comes_from_the_last_run(spark: SparkSession) -> None:
    session = spark.newSession()
    session.sql(QUERY.replace("SELECT", "SELECT /*+ FINISH_WITHIN('1 h') */", 1)).collect()
    jvm: Any = session._jsc
    jvm.sc().listenerBus().waitUntilEmpty()
    timed = resources.plan(session, QUERY, finish_within="10 min").timed
    assert timed
    assert (timed.finish_within, timed.source, timed.slots, timed.in_time) == (
        600,
        "earlier runs",
        1,
        True,
    )
    assert [stage.reads for stage in timed.stages] == [[], [0]]
    last = [each for each in resources.history(session) if each.phase == "ended"][-1]
    assert last.finish_within == 3600
    assert last.elapsed
    assert last.elapsed > 0


def test_a_query_without_a_time_has_no_plan_to_end_in_time(spark: SparkSession) -> None:
    assert resources.plan(spark, QUERY).timed is None


@pytest.mark.parametrize("time", ["10", "0 s", "ten minutes", "", "400 d", 600])
def test_an_invalid_time_raises(spark: SparkSession, time: object) -> None:
    with pytest.raises(InputError, match=r"finish_within is .*: allowed is a time from 1 second"):
        resources.plan(spark, QUERY, finish_within=time)  # type: ignore[arg-type]


def test_stages_with_a_resource_profile_have_slots_of_their_own(spark: SparkSession) -> None:
    if not pyspark.__version__ >= "4":
        pytest.skip("mapInPandas takes a profile since Spark 4.0")
    profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(2)).build
    mapped = spark.range(0, 100, 1, 4).mapInPandas(lambda rows: rows, "id long", profile=profile)
    mapped.createOrReplaceTempView("mapped_with_a_profile")
    plan = resources.plan(spark, "SELECT id % 3, count(*) FROM mapped_with_a_profile GROUP BY 1")
    scan, result = plan.stages
    assert scan.profile != result.profile
    assert (scan.spec.cores, result.spec.cores) == (2, 1)
    assert {group.profile for group in plan.groups} == {scan.profile, result.profile}
    assert plan.requirement.max == sum(group.requirement.max for group in plan.groups)


@pytest.mark.parametrize("text", ["a 'quote'", '"double"', "back\\slash", "two\nlines", "r'raw'"])
def test_a_query_with_quotes_and_backslashes_can_be_planned(spark: SparkSession, text: str) -> None:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    plan = resources.plan(spark, f"SELECT '{escaped}', count(*) FROM range(9)")
    assert len(plan.stages) == 2


@pytest.mark.parametrize("slots", [0, -1, True, 2.5, "many", 2**31])
def test_an_invalid_number_of_slots_raises(spark: SparkSession, slots: object) -> None:
    with pytest.raises(InputError, match=r"slots is .*: allowed is a whole number from 1"):
        resources.plan(spark, QUERY, slots)  # type: ignore[arg-type]


def test_a_query_that_is_no_text_raises(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="sql is None: allowed is text with a query"):
        resources.plan(spark, None)  # type: ignore[arg-type]


def test_a_query_that_spark_cannot_plan_raises_the_error_of_spark(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException):
        resources.plan(spark, "SELEKT 1")


def test_state_and_history_have_the_phases_of_a_query(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.apportion.resources.minSlots", "1")
    session.conf.set("spark.apportion.resources.stabilization", "0s")
    session.sql(QUERY).collect()
    query = apportion.decisions(session)[-1].query
    of_query = [each for each in resources.history(session) if each.query == query]
    assert of_query[0].phase == "running"
    assert of_query[0].requirement
    assert of_query[0].requirement.min == 1
    state = resources.state(session)
    assert (state.slots, state.declared) == (2, None)


def test_a_decision_has_the_declared_slots(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.apportion.parallelism", "3")
    session.sql(QUERY).collect()
    decision = apportion.decisions(session)[-1]
    assert decision.requirement == Requirement(3, 3, 3)
    assert (decision.slots, decision.slots_lost) == (2, 0)
