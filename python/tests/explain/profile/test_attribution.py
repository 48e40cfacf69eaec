"""Each decision of a query is shown at one place."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from apportion import eventlog
from apportion.decision import decision_from_json
from apportion.logs.eventlog import Application, LoggedDecision, LoggedShuffle, PlanNode, Query
from apportion.logs.explanation.explained import Explained, from_log
from apportion.logs.explanation.render import mermaid, text
from apportion.logs.explanation.views.view import QueryView, view
from tests.records import RECORD

ROOT = Path(__file__).parents[4]
LOGS = [
    *sorted((ROOT / "python/tests/eventlog/golden").glob("*.zstd")),
    *sorted((ROOT / "docs/pictures").glob("*.zstd")),
]


def on_shuffles(
    group: int, stages: list[int], metrics: list[int], **more: object
) -> LoggedDecision:
    record = {**RECORD, "group": group, "stages": stages, "reason": f"reason {group}.", **more}
    shuffles = [LoggedShuffle([1, 2, 3, 4], exchange_metric=metric) for metric in metrics]
    return LoggedDecision(decision_from_json(record), shuffles)


def on_scan(group: int, metric: int | None) -> LoggedDecision:
    logged = on_shuffles(group, [], [], operator="Scan parquet", layout="files")
    logged.scan_metric = metric
    return logged


def exchange(metric: int, below: PlanNode) -> PlanNode:
    return PlanNode("Exchange", "Exchange", {"data size": metric}, [below])


def read(number: int, below: PlanNode) -> PlanNode:
    return PlanNode("ShuffleQueryStage", f"ShuffleQueryStage {number}", {}, [below])


def scan(metric: int) -> PlanNode:
    return PlanNode("Scan parquet ", "FileScan", {"number of output rows": metric}, [])


def operator(name: str, *below: PlanNode) -> PlanNode:
    return PlanNode(name, name, {}, list(below))


def groups(made: QueryView) -> dict[str, list[int]]:
    """The groups of the decisions on each stage, and of those that are not in the plan."""
    found = {stage.name: [each.decision.group for each in stage.decisions] for stage in made.stages}
    found["elsewhere"] = [each.decision.group for each in made.elsewhere]
    return {name: numbers for name, numbers in found.items() if numbers}


def viewed(plan: PlanNode, *decisions: LoggedDecision) -> QueryView:
    return view(Application(), Query(1, "", plan=plan, decisions=list(decisions)))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_each_decision_of_a_recorded_log_is_shown_once(log: Path) -> None:
    application = eventlog.read(log)
    explained = from_log(application, log.name)
    decisions = [each for query in application.queries.values() for each in query.decisions]
    assert decisions
    shown = json.loads(explained.json())
    in_json = [
        (query["id"], decision["group"], decision["operator"])
        for query in shown
        for decisions in [*(s["decisions"] for s in query["stages"]), query["decisions_elsewhere"]]
        for decision in decisions
    ]
    expected = [(d.decision.query, d.decision.group, d.decision.operator) for d in decisions]
    assert Counter(in_json) == Counter(expected)
    lines = Counter(f"  {d.decision.operator}: {d.decision.reason}" for d in decisions)
    in_text = explained.text().splitlines()
    assert {line: in_text.count(line) for line in lines} == lines
    page = explained.html()
    assert page.count("<summary>Numbers and settings</summary>") == len(decisions)


def test_each_scan_has_its_own_decision() -> None:
    plan = operator("SortMergeJoin", read(0, exchange(1, scan(10))), read(1, exchange(2, scan(20))))
    made = viewed(plan, on_scan(0, 20), on_scan(1, 10), on_shuffles(2, [0, 1], [1, 2]))
    assert groups(made) == {"query stage 0": [1], "query stage 1": [0], "result": [2]}


def test_the_decision_of_a_scan_whose_partitions_a_subquery_chooses_is_on_its_stage() -> None:
    pruned = scan(10)
    pruned.children.append(operator("SubqueryBroadcast", operator("BroadcastExchange", scan(20))))
    assert groups(viewed(pruned, on_scan(0, 10))) == {"result": [0]}


def test_scans_without_metric_ids_have_one_decision_each() -> None:
    plan = operator("SortMergeJoin", read(0, exchange(1, scan(10))), read(1, exchange(2, scan(20))))
    made = viewed(plan, on_scan(0, None), on_scan(1, None), on_scan(2, None))
    assert groups(made) == {"query stage 0": [1], "query stage 1": [2], "elsewhere": [0]}


def test_the_reader_of_a_reused_exchange_before_its_original_has_its_decision() -> None:
    original = exchange(1, scan(10))
    reused = PlanNode("ReusedExchange", "", {}, [original])
    plan = operator("SortMergeJoin", read(2, reused), read(0, original))
    made = viewed(plan, on_shuffles(0, [2, 0], [1, 1]))
    assert groups(made) == {"result": [0]}


def test_a_decision_on_a_part_that_an_equal_part_replaced_is_listed_separately() -> None:
    below = exchange(1, scan(10))
    above = exchange(2, operator("HashAggregate", read(0, below)))
    reused = PlanNode("ReusedExchange", "", {}, [above])
    plan = operator("SortMergeJoin", read(1, above), read(4, reused))
    decisions = [
        on_shuffles(0, [0], [1]),
        # The second reader of the scan was decided before Spark found that it is equal.
        on_shuffles(1, [3], [1]),
        on_scan(2, 10),
        on_scan(3, 11),
        on_shuffles(4, [1, 4], [2, 2], operator="SortMergeJoin"),
    ]
    made = viewed(plan, *decisions)
    assert groups(made) == {
        "query stage 0": [2],
        "query stage 1": [0],
        "result": [4],
        "elsewhere": [1, 3],
    }
    shown = text.render(made)
    heading = f"\n{text.ELSEWHERE}:\n"
    assert "reason 1." in shown.partition(heading)[2]
    assert "reason 3." in shown.partition(heading)[2]
    assert "reason 4." not in shown.partition(heading)[2]
    page = Explained("", [made], []).html()
    assert "reason 1." in page.partition("Spark&#39;s last plan does not have")[2]
    assert mermaid.render(made).endswith(
        f"""\
  subgraph elsewhere["{text.ELSEWHERE}"]
    d0["HashAggregate: reason 1."]
    d1["Scan parquet: reason 3."]
  end
"""
    )


def test_the_last_of_several_decisions_for_the_same_shuffles_is_on_the_stage() -> None:
    plan = operator("HashAggregate", read(0, exchange(1, scan(10))))
    made = viewed(plan, on_shuffles(0, [0], [1]), on_shuffles(1, [0], [1]))
    assert groups(made) == {"result": [1], "elsewhere": [0]}


def test_decisions_of_subqueries_with_the_same_stage_numbers_are_on_their_own_stages() -> None:
    inner = operator("Subquery", operator("HashAggregate", read(0, exchange(2, scan(20)))))
    plan = operator("HashAggregate", read(0, exchange(1, scan(10))), inner)
    made = viewed(plan, on_shuffles(0, [0], [2]), on_shuffles(1, [0], [1]))
    assert groups(made) == {"subquery 1": [0], "result": [1]}


def test_a_decision_of_a_query_without_a_plan_is_listed() -> None:
    made = view(Application(), Query(1, "", decisions=[on_shuffles(0, [0], [1])]))
    assert groups(made) == {"elsewhere": [0]}


def test_the_operator_of_a_skew_join_is_found_without_its_argument() -> None:
    below = exchange(1, scan(10))
    reused = PlanNode("ReusedExchange", "", {}, [below])
    plan = operator(
        "Union",
        operator("SortMergeJoin(skew=true)", read(0, below)),
        read(5, exchange(3, operator("Window", read(2, reused)))),
    )
    made = viewed(plan, on_shuffles(0, [9], [1], operator="SortMergeJoin"))
    assert groups(made) == {"result": [0]}
