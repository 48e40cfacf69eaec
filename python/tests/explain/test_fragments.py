from __future__ import annotations

import pytest

from apportion.logs.eventlog import PlanNode
from apportion.logs.eventlog.fragments import fragments

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
        "query stage 0 shuffle: Exchange Scan a",
        "query stage 2 broadcast: BroadcastExchange Scan c",
        "query stage 1 shuffle: Exchange BroadcastHashJoin Scan b <- query stage 2",
        "result result: AdaptiveSparkPlan ResultQueryStage SortMergeJoin AQEShuffleRead "
        "AQEShuffleRead <- query stage 0, query stage 1",
    ]


def test_a_reused_exchange_is_one_fragment() -> None:
    text = JOIN.replace("Exchange: [plan_id=20]", "ReusedExchange: [plan_id=10]")
    found = drawn(text.split("                BroadcastHashJoin")[0])
    assert found == [
        "query stage 0 shuffle: Exchange Scan a",
        "result result: AdaptiveSparkPlan ResultQueryStage SortMergeJoin AQEShuffleRead "
        "AQEShuffleRead <- query stage 0, query stage 0",
    ]


def test_a_scan_with_subqueries_is_a_leaf() -> None:
    [*_, result] = fragments(
        plan("""
            Filter
              Scan a
                SubqueryBroadcast
                  BroadcastExchange: [plan_id=10]
                    Scan b
                ReusedSubquery
              Subquery
                Scan c
        """)
    )
    assert [node.name for node in result.leaves()] == ["Scan a"]


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
    assert by_name["query stage 0"] == {6, 8}
    assert all(not one & two for one in by_name.values() for two in by_name.values() if one != two)


def test_a_reused_exchange_may_come_before_its_original() -> None:
    text = """
        Union
          ShuffleQueryStage: 3
            ReusedExchange: [plan_id=10]
          HashAggregate
            ShuffleQueryStage: 0
              Exchange: [plan_id=10]
                Scan a
    """
    assert drawn(text) == [
        "query stage 0 shuffle: Exchange Scan a",
        "result result: Union HashAggregate <- query stage 0, query stage 0",
    ]
    assert fragments(plan(text))[-1].query_stages == {0, 3}


def test_an_original_that_is_only_below_its_reuse_is_a_fragment() -> None:
    root = plan("Union\n  ShuffleQueryStage: 3\n    ReusedExchange: [plan_id=404]")
    scan = plan("Scan a")
    original = PlanNode("Exchange", "Exchange", {"data size": 99}, [scan])
    root.children[0].children[0].children.append(original)
    found = fragments(root)
    assert [(each.name, each.kind) for each in found] == [
        ("query stage 3", "shuffle"),
        ("result", "result"),
    ]
    assert [node.name for node in found[0].operators()] == ["Exchange", "Scan a"]


def test_a_cached_plan_that_is_scanned_twice_is_one_fragment() -> None:
    cached = plan("InMemoryTableScan\n  Exchange\n    Scan a")
    found = fragments(PlanNode("Union", "Union", {}, [cached, cached]))
    assert [each.name for each in found] == ["shuffle 1", "result"]
    assert found[1].inputs == [found[0], found[0]]


def test_stages_with_the_same_number_have_different_names() -> None:
    text = """
        Union
          ShuffleQueryStage: 0
            Exchange
              Scan a
          InMemoryTableScan
            ShuffleQueryStage: 0
              Exchange
                Scan b
    """
    assert [each.name for each in fragments(plan(text))] == [
        "query stage 0",
        "query stage 0 (2)",
        "result",
    ]


def test_a_fragment_that_reads_itself_has_no_input() -> None:
    exchange = PlanNode("Exchange", "Exchange", {"data size": 1}, [])
    exchange.children.append(PlanNode("ReusedExchange", "", {}, [exchange]))
    assert [each.name for each in fragments(exchange)] == ["result"]


def test_exchanges_of_accelerators_and_of_spark_2_end_fragments() -> None:
    text = """
        GpuHashAggregate
          ShuffleQueryStage: 5, Statistics(sizeInBytes=1 B, isRuntime=true)
            PhotonShuffleMapStage
              PhotonShuffleExchangeSink
                GpuBroadcastExchange
                  Scan a
    """
    assert [each.name for each in fragments(plan(text))] == [
        "broadcast 1",
        "query stage 5",
        "result",
    ]
    broadcast = PlanNode("BroadcastExchange", "", {"data size (bytes)": 7}, [])
    assert fragments(PlanNode("Join", "", {}, [broadcast]))[0].identity == 7
