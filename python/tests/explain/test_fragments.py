from __future__ import annotations

import pytest

from apportion.eventlog.fragments import fragments

from .plans import plan

JOIN = """
    AdaptiveSparkPlan
      ResultQueryStage
        SortMergeJoin
          AQEShuffleRead
            ShuffleQueryStage: 0
              Exchange: [plan_id=10]
                Scan a
          AQEShuffleRead
            ShuffleQueryStage: 1
              Exchange: [plan_id=20]
                BroadcastHashJoin
                  Scan b
                  BroadcastQueryStage: 2
                    BroadcastExchange: [plan_id=30]
                      Scan c
"""


def drawn(text: str) -> list[str]:
    return [
        f"{each.name} {each.kind}: {' '.join(node.name for node in each.operators())}"
        + (f" <- {', '.join(read.name for read in each.inputs)}" if each.inputs else "")
        for each in fragments(plan(text))
    ]


def test_fragments_come_after_their_inputs() -> None:
    assert drawn(JOIN) == [
        "stage 0 shuffle: Exchange Scan a",
        "stage 2 broadcast: BroadcastExchange Scan c",
        "stage 1 shuffle: Exchange BroadcastHashJoin Scan b <- stage 2",
        "result result: AdaptiveSparkPlan ResultQueryStage SortMergeJoin AQEShuffleRead "
        "AQEShuffleRead <- stage 0, stage 1",
    ]


def test_a_reused_exchange_is_one_fragment() -> None:
    text = JOIN.replace("Exchange: [plan_id=20]", "ReusedExchange: [plan_id=10]")
    found = drawn(text.split("                BroadcastHashJoin")[0])
    assert found == [
        "stage 0 shuffle: Exchange Scan a",
        "result result: AdaptiveSparkPlan ResultQueryStage SortMergeJoin AQEShuffleRead "
        "AQEShuffleRead <- stage 0, stage 0",
    ]


def test_a_plan_without_adaptive_execution_has_numbered_fragments() -> None:
    text = """
        HashAggregate
          Exchange: [plan_id=1]
            Union
              Scan a
              ReusedExchange: [plan_id=7]
              Subquery: subquery#1, [id=#2]
                BroadcastExchange: [plan_id=7]
                  Range
    """
    assert drawn(text) == [
        "broadcast 3 broadcast: BroadcastExchange Range",
        "subquery 2 subquery: Subquery <- broadcast 3",
        "shuffle 1 shuffle: Exchange Union Scan a <- broadcast 3, subquery 2",
        "result result: HashAggregate <- shuffle 1",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Execute CreateViewCommand",
        "ShuffleQueryStage: 0",
        "Union\n  ReusedExchange: [plan_id=404]\n  ReusedExchange",
        "Union\n  ShuffleQueryStage: none\n    ReusedExchange",
    ],
)
def test_incomplete_plans_have_a_result_fragment(text: str) -> None:
    assert drawn(text)[-1].startswith("result result: ")


def test_a_fragment_has_the_metrics_of_its_own_operators() -> None:
    found = fragments(plan(JOIN))
    by_name = {fragment.name: fragment.accumulators() for fragment in found}
    # Number 7 and 12 are of the records that are read from exchanges.
    assert by_name["stage 0"] == {6, 8}
    assert all(not one & two for one in by_name.values() for two in by_name.values() if one != two)
