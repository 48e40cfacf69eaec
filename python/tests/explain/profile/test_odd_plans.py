"""Plans of other Spark versions, of accelerators, and of malformed logs are shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.logs.eventlog import Application, LoggedDecision, PlanNode, Query
from apportion.logs.explanation.explained import Explained
from apportion.logs.explanation.views.view import view
from tests.explain.plans import plan
from tests.explain.test_html import Page
from tests.explain.test_pipelines import drawn
from tests.explain.test_render import stage

from .test_attribution import on_scan, on_shuffles

NAMES = [
    "SortMergeJoin(skew=true)", "WholeStageCodegen (3)", "WholeStageCodegen", "ResultQueryStage",
    "ShuffleQueryStage", "BroadcastQueryStage", "TableCacheQueryStage", "Exchange", "Scan parquet ",
    "BroadcastExchange", "ReusedExchange", "ReusedSubquery", "Subquery", "SubqueryBroadcast",
    "AdaptiveSparkPlan", "InputAdapter", "InMemoryTableScan", "GpuColumnarExchange", "", "(",
    "Scan", "PhotonShuffleMapStage", "PhotonShuffleExchangeSink", "Execute CreateViewCommand",
]  # fmt: skip
METRICS = ["data size", "data size (bytes)", "number of output rows", "records read", "time"]


def nodes() -> st.SearchStrategy[PlanNode]:
    def node(children: st.SearchStrategy[list[PlanNode]]) -> st.SearchStrategy[PlanNode]:
        metrics = st.dictionaries(st.sampled_from(METRICS), st.integers(0, 9), max_size=3)
        text = st.sampled_from(["", "ShuffleQueryStage 0", "ShuffleQueryStage 1", "stage x"])
        return st.builds(PlanNode, st.sampled_from(NAMES), text, metrics, children)

    return st.recursive(
        node(st.just([])), lambda below: node(st.lists(below, max_size=3)), max_leaves=12
    )


def decisions() -> st.SearchStrategy[list[LoggedDecision]]:
    shuffles = st.builds(
        on_shuffles,
        st.integers(0, 9),
        st.lists(st.integers(0, 2), min_size=1, max_size=2),
        st.lists(st.integers(0, 9), max_size=2),
    )
    scans = st.builds(on_scan, st.integers(0, 9), st.none() | st.integers(0, 9))
    return st.lists(shuffles | scans, max_size=5)


@given(nodes(), decisions())
@settings(max_examples=150, deadline=None)
def test_any_plan_is_shown_with_each_decision_once(
    root: PlanNode, decided: list[LoggedDecision]
) -> None:
    query = Query(1, "", plan=root, decisions=decided)
    query.stages = [stage(number, number, [0, 5]) for number in range(4)]
    made = view(Application(), query)
    placed = [each for stage in made.stages for each in stage.decisions]
    assert sorted(map(id, [*placed, *made.elsewhere])) == sorted(map(id, decided))
    attempts = [number for each in made.stages if each.ran for number in each.ran.stages]
    outside = made.outside.stages if made.outside else []
    assert sorted([*attempts, *outside]) == [0, 1, 2, 3]
    explained = Explained("", [made], [])
    assert len(json.loads(explained.json())) == 1
    assert explained.text()
    assert explained.mermaid()
    page = Page(explained.html())
    assert len(page.ids) == len(set(page.ids))


def test_a_pipeline_of_spark_2_has_no_number() -> None:
    pipelines, links = drawn("WholeStageCodegen\n  Project\n    Filter")
    assert (pipelines, links) == (["- Project Filter"], [])
    made = view(Application(), Query(1, "", plan=plan("WholeStageCodegen\n  Project\n    Filter")))
    assert "  * Project <- Filter\n" in Explained("", [made], []).text()


@pytest.mark.parametrize("name", ["WholeStageCodegen (3)", "ResultQueryStage", "AdaptiveSparkPlan"])
def test_an_operator_without_its_input_is_a_pipeline(name: str) -> None:
    assert drawn(name) == ([f"- {name}"], [])


def test_a_limit_of_columns_that_is_no_number_is_sparks_default() -> None:
    found = drawn("Project: [a#1, b#2]\n  Filter", **{"spark.sql.codegen.maxFields": "many"})
    assert found[1] == ["Filter -> Project: expression without code generation"]
