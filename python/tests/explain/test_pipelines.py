from __future__ import annotations

import pytest

from apportion.logs.eventlog import Application, Query
from apportion.logs.eventlog.fragments import fragments
from apportion.logs.explanation.views.pipelines import Break, find_pipelines
from apportion.logs.explanation.views.view import view

from .plans import plan


def drawn(text: str, **conf: str) -> tuple[list[str], list[str]]:
    """Return the pipelines of the result, and the links between them."""
    found = find_pipelines(fragments(plan(text))[-1], conf)
    pipelines = [
        f"{pipeline.codegen or '-'} {' '.join(node.name for node in pipeline.operators)}"
        for pipeline in found.pipelines
    ]
    return pipelines, [str(link) for link in found.links]


def test_operators_of_one_compiled_function_are_one_pipeline() -> None:
    pipelines, links = drawn("""
        AdaptiveSparkPlan
          WholeStageCodegen (2)
            HashAggregate
              Project
                InputAdapter
                  AQEShuffleRead
                    ShuffleQueryStage: 0
                      Exchange
                        WholeStageCodegen (1)
                          Range
    """)
    assert pipelines == ["2 HashAggregate Project"]
    assert links == ["ShuffleQueryStage -> Project: exchange"]


def test_each_side_of_a_join_is_a_pipeline() -> None:
    pipelines, links = drawn("""
        WholeStageCodegen (3)
          Project
            SortMergeJoin
              InputAdapter
                WholeStageCodegen (1)
                  Sort
                    Range
              InputAdapter
                WholeStageCodegen (2)
                  Sort
                    Filter
                      Range
    """)
    assert pipelines == ["3 Project SortMergeJoin", "1 Sort Range", "2 Sort Filter Range"]
    assert links == ["Sort -> SortMergeJoin: side of a join"] * 2


@pytest.mark.parametrize(
    ("above", "below", "conf", "why"),
    [
        ("Window", "Sort", {}, Break.NO_CODEGEN),
        ("Project", "ArrowEvalPython", {}, Break.NO_CODEGEN),
        ("Project", "InMemoryTableScan", {}, Break.CACHE),
        ("Exchange", "Project", {}, Break.EXCHANGE),
        ("Project", "Filter", {"spark.sql.codegen.wholeStage": "false"}, Break.SWITCHED_OFF),
        ("Project: [a#1, b#2, ... 99 more fields]", "Filter", {}, Break.TOO_MANY_FIELDS),
        ("Project: [a, b]", "Filter", {"spark.sql.codegen.maxFields": "1"}, Break.TOO_MANY_FIELDS),
        ("Project: [a#1, b#2]", "Filter", {}, Break.EXPRESSION),
    ],
)  # fmt: skip
def test_the_reason_why_a_pipeline_ends(
    above: str, below: str, conf: dict[str, str], why: Break
) -> None:
    found = find_pipelines(fragments(plan(f"{above}\n  {below}"))[-1], conf)
    assert [link.why for link in found.links] == [why]
    assert [pipeline.codegen for pipeline in found.pipelines] == [None, None]


def test_a_setting_of_the_session_is_a_reason_why_a_pipeline_ends() -> None:
    query = Query(1, "", plan=plan("Project\n  Filter"))
    query.conf = {"spark.sql.codegen.wholeStage": "false"}
    (stage,) = view(Application(), query).stages
    assert [link.why for link in stage.pipelines.links] == [Break.SWITCHED_OFF]


def test_every_reason_why_a_pipeline_ends_is_explained() -> None:
    assert all(why.explanation.endswith(".") for why in Break)
