from __future__ import annotations

import json
from array import array

import pytest

from apportion.decision import decision_from_json
from apportion.logs.eventlog import Application, LoggedDecision, LoggedShuffle, Query, Stage
from apportion.logs.explanation.render import mermaid, text
from apportion.logs.explanation.views.view import QueryView, view
from tests.records import RECORD

from .plans import plan

PLAN = """
    AdaptiveSparkPlan
      WholeStageCodegen (2)
        HashAggregate
          InputAdapter
            AQEShuffleRead
              ShuffleQueryStage: 0
                Exchange
                  WholeStageCodegen (1)
                    Range
"""
DECIDED = {
    **RECORD,
    "largest_task_bytes": 3000,
    "mean_task_bytes": 2048,
    "sources": {"parallelism": "hint on the query block, line 2", "mode": "default"},
}
TASK_ARRAYS = (
    "input_bytes", "shuffle_read_bytes", "shuffle_written_bytes", "output_bytes", "spilled_bytes",
    "gc_millis", "fetch_wait_millis",
)  # fmt: skip


def stage(number: int, accumulator: int, launched: list[int], **more: int) -> Stage:
    times = array("q", launched)
    made = Stage(number, 0, "collect", [], len(launched), 3, accumulators={accumulator: 0})
    made.launched, made.finished = times, array("q", [time + 30 for time in launched])
    made.run_millis = array("q", [20] * len(launched))
    for name in TASK_ARRAYS:
        setattr(made, name, array("q", [more.get(name, 0)] * len(launched)))
    return made


@pytest.fixture
def query() -> QueryView:
    ran = Query(3, "SELECT <b>1</b>", submitted=0, completed=1500, plan=plan(PLAN))
    ran.stages = [
        stage(7, 7, [0, 5], shuffle_written_bytes=2048),
        stage(9, 3, [40, 41], shuffle_read_bytes=2048),
    ]
    ran.decisions = [
        LoggedDecision(
            decision_from_json(DECIDED),
            [LoggedShuffle([1024, 0, 2048, 1024], groups=[1, 4], bytes_by_level=[1024, 3072])],
        )
    ]
    return view(Application(), ran)


def test_a_view_has_stages_with_decisions_and_work(query: QueryView) -> None:
    below, result = query.stages
    assert (below.name, below.part, below.depth, below.slots) == ("stage 7", "query stage 0", 0, 2)
    assert (result.name, result.part, result.depth, result.slots) == ("stage 9", "result", 1, 2)
    assert (below.reads, result.reads) == ([], ["stage 7"])
    assert (below.purpose, result.purpose) == ("range", "aggregation")
    assert [each.decision.reason for each in result.decisions] == ["2 tasks: because."]
    assert not below.decisions
    assert below.ran
    assert result.ran
    assert (below.ran.stages, result.ran.stages) == ([7], [9])
    assert (query.slots, query.useful_slots, query.peak_tasks) == (2, 2, 2)


def test_text_of_a_query(query: QueryView) -> None:
    assert (
        text.render(query)
        == """\
Query 3: SELECT <b>1</b> (1.5 s)
  1.5 s: 95 % after the last task.
  Critical path: stage 7 0.0 s, between stages 0.0 s, stage 9 0.0 s, after the last task 1.4 s.
  Peak concurrency: 2 tasks.

stage 9 (aggregation, result): 2 tasks
  reads stage 7
  HashAggregate: 2 tasks: because.
    ▄▁|█▄ 4 shuffle partitions, 4 KiB
    written: 8 blocks; 1 KiB in 1 group of partitions, 3 KiB in 4
    largest task 2.9 KiB, mean 2 KiB
    parallelism: hint on the query block, line 2
  Ran as Spark stage 9, 2 tasks, 0.1 s of task time, 4 KiB read from shuffles.
    time: 0.0 s, 50% of the task time, the query waited 0.0 s for it
    tasks: longest 0.0 s (1x the median), largest reads 2 KiB (1x the median)
  *(2) HashAggregate

stage 7 (range, query stage 0, shuffle): 2 tasks
  Ran as Spark stage 7, 2 tasks, 0.1 s of task time, 4 KiB written to a shuffle.
    time: 0.0 s, 50% of the task time, the query waited 0.0 s for it
    tasks: longest 0.0 s (1x the median)
  Exchange
  *(1) Range
"""
    )


def test_mermaid_flowchart_of_a_query(query: QueryView) -> None:
    assert (
        mermaid.render(query)
        == """\
flowchart BT
  s0["stage 7: 2 tasks<br/>Exchange<br/>Range"]
  s1["stage 9: 2 tasks<br/>HashAggregate: 2 tasks: because.<br/>HashAggregate"]
  s0 --> s1
"""
    )


def test_mermaid_labels_are_escaped() -> None:
    drawn = view(Application(), Query(1, "", plan=plan('Scan a"]; click s0 "x" <script>&#35;')))
    assert '["result<br/>Scan a#quot;]; click s0 #quot;x#quot; #lt;script#gt;#amp;#35;35;"]' in (
        mermaid.render(drawn)
    )


def test_json_of_a_query(query: QueryView) -> None:
    data = json.loads(json.dumps(query.as_json()))
    assert [stage["name"] for stage in data["stages"]] == ["stage 7", "stage 9"]
    assert data["critical_path"] == ["stage 7", "stage 9"]
    assert sum(part["millis"] for part in data["time_parts"]) == 1500
    assert data["stages"][1]["share_of_task_time"] == 0.5
    assert data["stages"][1]["ran"]["shuffle_read_bytes"] == 4096
    assert (data["outside_of_plan"], data["decisions_elsewhere"]) == (None, [])
    assert data["stages"][1]["decisions"][0]["subpartition_bytes"] == [[1024, 0, 2048, 1024]]
    assert data["stages"][1]["breaks"] == [
        {"above": "HashAggregate", "below": "ShuffleQueryStage", "why": "exchange"}
    ]


@pytest.mark.parametrize(
    ("values", "ranges", "plotted"),
    [
        ([], [], ""),
        ([0, 0], [(0, 2)], "▁▁"),
        ([1, 2, 3], [(0, 1), (1, 3)], "▃|▅█"),
        (list(range(128)), [(0, 64), (64, 128)], text.plot(range(1, 128, 2), [(0, 32), (32, 64)])),
    ],
)
def test_text_plots_have_a_bar_for_each_shuffle_partition(
    values: list[int], ranges: list[tuple[int, int]], plotted: str
) -> None:
    assert text.plot(values, ranges) == plotted


def test_a_failed_query_without_a_plan_is_shown() -> None:
    failed = Query(1, "SELECT", failure="no such thing\n\tat java")
    assert text.render(view(Application(), failed)).splitlines()[:2] == [
        "Query 1: SELECT (not ended)",
        "  Failed: no such thing",
    ]


def test_stages_with_different_resource_profiles_share_no_slots() -> None:
    query = Query(3, "an example", plan=plan(PLAN))
    query.stages = [stage(7, 7, [0, 5]), stage(9, 3, [25, 26, 27])]
    query.stages[1].profile = 1
    made = view(Application(), query)
    assert (made.slots_by_group, made.slots) == ({0: 2, 1: 3}, 5)
