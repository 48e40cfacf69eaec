"""The measured work of stages: times, bytes, skew, rows and the critical path."""

from __future__ import annotations

import json
import re
from array import array

import pytest

from apportion import eventlog
from apportion.logs.advise.advice import advise
from apportion.logs.eventlog import Application, PlanNode, Query, Stage
from apportion.logs.eventlog.work import work_of
from apportion.logs.explanation.render import html, text
from apportion.logs.explanation.render.graph import heat
from apportion.logs.explanation.render.plots import slots_plot, ticks
from apportion.logs.explanation.views.view import QueryView, view
from tests.eventlog.test_golden import GOLDEN
from tests.explain.plans import plan
from tests.explain.test_render import stage

JOIN = """
    SortMergeJoin
      ShuffleQueryStage: 0
        Exchange
          Scan parquet db.orders
      ShuffleQueryStage: 1
        Exchange
          Scan parquet db.items
"""
# Metrics of `plan(JOIN)`, which are numbered from the top: of the join and of the first exchange.
RESULT, DATA_SIZE = 1, 3


def metric_of(root: PlanNode, name: str) -> int:
    return next(next(iter(node.metrics.values())) for node in root.walk() if name in node.name)


def example(*, seconds: int = 10) -> Query:
    """Two scans, of which the second one is longer, and a join with a long task."""
    query = Query(3, "daily", submitted=0, completed=1000 * seconds, plan=plan(JOIN))
    assert query.plan
    orders, items = (metric_of(query.plan, name) for name in ("orders", "items"))
    query.stages = [
        timed(1, orders, [(0, 1000)]),
        timed(2, items, [(0, 4000), (0, 3000)], input_bytes=[10, 30]),
        timed(3, RESULT, [(4000, 1000), (4000, 1000), (4000, 5000)], spilled_bytes=[0, 0, 1 << 30]),
    ]
    return query


def timed(number: int, metric: int, tasks: list[tuple[int, int]], **more: list[int]) -> Stage:
    """A stage with tasks of (launch, milliseconds)."""
    made = stage(number, metric, [launch for launch, _ in tasks])
    made.run_millis = array("q", [millis for _, millis in tasks])
    made.finished = array("q", [launch + millis for launch, millis in tasks])
    for name, values in more.items():
        setattr(made, name, array("q", values))
    return made


@pytest.fixture
def made() -> QueryView:
    return view(Application(), example())


def test_a_stage_has_its_share_of_the_task_time(made: QueryView) -> None:
    assert [each.share for each in made.stages] == [1 / 15, 7 / 15, 7 / 15]


def test_the_critical_path_is_shown_with_times(made: QueryView) -> None:
    assert made.critical == ["stage 2", "stage 3"]
    assert (
        made.critical_text
        == "Critical path: stage 2 4.0 s, stage 3 5.0 s, after the last task 1.0 s."
    )
    assert [each.name for each in made.stages if each.is_slowest] == ["stage 3"]
    assert made.answer == "10.0 s: 50 % in the join of db.items and db.orders (stage 3)."


def test_a_stage_that_waited_for_slots_is_not_the_slowest() -> None:
    query = example()
    assert query.plan
    query.stages[0] = timed(1, metric_of(query.plan, "orders"), [(0, 500), (9000, 500)])
    made = view(Application(), query)
    assert [each.name for each in made.stages if each.is_slowest] == ["stage 3"]


def test_the_text_has_times_skew_and_spills(made: QueryView) -> None:
    shown = text.render(made)
    assert "    time: 5.0 s, 47% of the task time, the query waited 5.0 s for it\n" in shown
    assert "    tasks: longest 5.0 s (5x the median), skewed\n" in shown
    assert "    tasks: longest 4.0 s (1x the median), largest reads 30 B (1x the median)" in shown
    assert "    spilled to disk: 1 GiB\n" in shown
    assert "  scans db.items\n" in shown


def test_the_page_marks_hot_critical_and_skewed_stages(made: QueryView) -> None:
    page = html.render("one", [made])
    graph = page[page.index('<div class="graph"') : page.index("</svg>")]
    boxes = re.findall(r'<a href="#q3-(\S+)" class="([^"]+)" aria-label="([^"]+)">', graph)
    assert boxes == [
        ("stage-1", "heat-1", "stage 1, 1 task"),
        ("stage-2", "heat-3 critical", "stage 2, 2 tasks, on the critical path"),
        (
            "stage-3",
            "heat-3 critical slowest",
            "stage 3, 3 tasks, skew, spill 1 GiB, on the critical path",
        ),
    ]
    assert ">scan of db.orders</text>" in graph
    assert ">40 B</text>" in graph
    assert ">5.0 s, 47% of task time</text>" in graph
    assert ">▲ skew, spill 1 GiB</text>" in graph
    assert graph.count('<path class="critical"') == 1


def test_only_the_slowest_stage_is_open_at_first(made: QueryView) -> None:
    page = html.render("one", [made])
    assert re.findall(r'class="stage" id="(\S+)" open', page) == ["q3-stage-3"]


def test_the_page_has_a_table_of_stages_with_the_longest_first(made: QueryView) -> None:
    page = html.render("one", [made])
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("</tr>")[:-1]]
    assert [re.sub("<.*?>", "", row[0]) for row in rows] == ["stage 3", "stage 2", "stage 1"]
    assert rows[0][1:] == ["5.0 s", "7.0 s", "47%", "3", "", "", "1 GiB", "0%", "5.0", "", ""]
    assert rows[1][5] == "40 B"


def test_json_has_the_measured_work(made: QueryView) -> None:
    [_, items, result] = json.loads(json.dumps(made.as_json()))["stages"]
    assert items["tables"] == ["db.items"]
    assert (items["ran"]["longest_task_millis"], items["ran"]["median_task_millis"]) == (4000, 4000)
    assert (items["ran"]["largest_task_bytes"], items["ran"]["median_task_bytes"]) == (30, 30)
    assert (result["ran"]["spilled_bytes"], result["ran"]["is_skewed"]) == (1 << 30, True)
    assert (result["ran"]["wall_millis"], result["is_critical"]) == (5000, True)


def test_failed_attempts_are_shown_with_the_time_that_they_lost() -> None:
    query = example()
    query.stages[2].failed_tasks = 3
    query.stages[2].memory_failures = 2
    query.stages[2].wasted_millis = 1500
    made = view(Application(), query)
    assert "    failed attempts: 3, 1.5 s lost, 2 out of memory\n" in text.render(made)
    assert "3 failed, on the critical path" in html.render("one", [made])


def test_an_attempt_whose_tasks_all_failed_is_on_the_stage_of_the_other_attempts() -> None:
    query = example()
    lost = Stage(3, 0, name="", parents=[], tasks_planned=3, query=3)
    lost.failed_tasks, lost.wasted_millis = 3, 1500
    query.stages[2].attempt = 1
    query.stages.insert(2, lost)
    assert "    failed attempts: 3, 1.5 s lost\n" in text.render(view(Application(), query))


@pytest.mark.parametrize(
    ("done", "parents", "part"), [(1, [], "query stage 1"), (2, [1, 2], "result")]
)
def test_a_stage_whose_tasks_all_failed_is_shown_where_only_it_can_be(
    done: int, parents: list[int], part: str
) -> None:
    query = example()
    del query.stages[done:]
    for attempt in (0, 1):
        lost = Stage(5, attempt, name="", parents=parents, tasks_planned=3, query=3)
        lost.failed_tasks, lost.wasted_millis = 2, 750
        query.stages.append(lost)
    made = text.render(view(Application(), query))
    assert re.search(rf"stage 5 \(.*{part}.*\n(  .*\n)*    failed attempts: 4, 1\.5 s lost\n", made)


def test_a_stage_whose_tasks_all_failed_can_be_of_no_part_of_the_plan() -> None:
    query = example()
    query.stages = [Stage(5, 0, name="", parents=[], tasks_planned=3, query=3)]
    query.stages[0].failed_tasks = 4
    assert "failed attempts" not in text.render(view(Application(), query))


def test_the_task_time_is_the_same_as_in_advice() -> None:
    application = eventlog.read(GOLDEN / "spark-4.2.zstd")
    explained = {}
    for query in application.queries.values():
        made = view(application, query)
        works = [*(each.ran for each in made.stages), made.outside]
        explained[query.id] = sum(work.task_millis for work in works if work) / 1000
    advised = advise(application, "the log").queries
    assert {query.id: query.task_seconds for query in advised} == pytest.approx(explained)


def test_garbage_collection_takes_at_most_the_time_of_the_task() -> None:
    loading = timed(1, 1, [(0, 1000), (0, 1000)], gc_millis=[1350, 0])
    work = work_of([loading])
    assert work
    assert (work.gc_millis, work.gc_share) == (1000, 0.5)


def test_small_differences_are_no_skew() -> None:
    small = work_of([timed(1, 1, [(0, 10), (0, 10), (0, 900)], input_bytes=[1, 1, 1 << 20])])
    large = work_of([timed(1, 1, [(0, 10), (0, 10), (0, 10)], input_bytes=[1, 1, 1 << 30])])
    assert small
    assert large
    assert (small.is_skewed, large.is_skewed) == (False, True)
    assert small.time_ratio == 90


def test_the_wall_time_of_overlapping_attempts_counts_once() -> None:
    first, second, third = (
        timed(1, 1, [(0, 1000)]), timed(1, 1, [(500, 1000)]), timed(2, 1, [(5000, 100)])
    )  # fmt: skip
    work = work_of([third, first, second])
    assert work
    assert work.wall_millis == 1600


def test_a_stage_that_updated_metrics_of_two_fragments_belongs_to_one() -> None:
    query = example()
    # The join also updated a metric of an exchange that it reads.
    query.stages[2].accumulators.update({DATA_SIZE: 0})
    made = view(Application(), query)
    assert [each.ran.stages for each in made.stages if each.ran] == [[1], [2], [3]]


def test_stages_outside_of_the_plan_are_counted() -> None:
    query = example()
    query.stages.append(timed(9, 999, [(0, 2000)]))
    made = view(Application(), query)
    assert "  Outside of the plan: 1 Spark stage, 2.0 s of task time.\n" in text.render(made)
    assert "Outside of the plan: 1 Spark stage" in html.render("one", [made])


def test_the_tasks_of_a_stage_that_ran_twice_are_shown_as_a_sum() -> None:
    query = example()
    # A stage samples the rows of a scan before another one sorts them.
    query.stages.insert(1, timed(9, next(iter(query.stages[1].accumulators)), [(0, 10), (0, 10)]))
    made = view(Application(), query)
    assert "  Ran as Spark stages 2 + 9, 2 + 2 tasks, 7.0 s of task time" in text.render(made)
    assert '<td class="number">2 + 2</td>' in html.render("one", [made])


def test_rows_are_those_of_the_exchange_or_of_the_operator_below() -> None:
    scan = PlanNode("Scan a", "", {"number of output rows": 1}, [])
    sort = PlanNode("Sort", "", {"sort time": 2}, [scan])
    exchange = PlanNode("Exchange", "", {"data size": 3}, [sort])
    limit = PlanNode("CollectLimit", "", {}, [exchange])
    query = Query(1, "", plan=limit)
    # A stage that samples rows counts them before the stage that sorts them.
    query.stages = [stage(1, 1, [0]), stage(2, 1, [0])]
    query.stages[0].accumulators = {1: 100, 3: 5}
    query.stages[1].accumulators = {1: 200, 3: 10}
    made = view(Application(), query)
    assert [each.rows for each in made.stages] == [100, None]
    as_json = made.as_json()["stages"][0]["pipelines"]
    assert [node["rows"] for part in as_json for node in part["operators"]] == [None, None, 100]
    assert "Scan a</span> <small>(100 rows)</small>" in html.render("one", [made])


def test_rows_of_a_broadcast_come_from_the_driver() -> None:
    root = PlanNode("BroadcastExchange", "", {"data size": 1, "number of output rows": 2}, [])
    query = Query(1, "", plan=PlanNode("Join", "", {}, [root]), driver_metrics={2: 25})
    assert view(Application(), query).stages[0].rows == 25


def test_a_query_without_tasks_has_no_times() -> None:
    made = view(Application(), Query(1, "", plan=plan(JOIN)))
    assert (made.critical, made.critical_text, made.stages[0].share) == ([], "", None)
    page = html.render("one", [made])
    assert "<h3>Times</h3>" not in page
    assert "Critical path" not in text.render(made)


@pytest.mark.parametrize(
    ("share", "colour"), [(None, 0), (0.0, 0), (0.02, 1), (0.2, 2), (0.25, 3), (0.5, 4), (1.0, 4)]
)
def test_the_colour_of_a_box_grows_with_the_share(share: float | None, colour: int) -> None:
    assert heat(share) == colour


@pytest.mark.parametrize(
    ("millis", "labels"),
    [
        (0, ["0.000 s"]),
        (10, ["0.000 s", "0.002 s", "0.004 s", "0.006 s", "0.008 s"]),
        (2_600, ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]),
        (71_000, ["0 s", "20 s", "40 s", "60 s"]),
        (7_200_000, ["0 s", "2000 s", "4000 s", "6000 s"]),
    ],
)
def test_the_axis_has_round_seconds(millis: int, labels: list[str]) -> None:
    assert [tick.text for tick in ticks([(100, 1), (100 + millis, 0)])] == labels


def test_a_stage_that_only_passes_rows_on_is_found_by_the_exchange_that_it_reads() -> None:
    drawn = """
        BroadcastHashJoin
          BroadcastExchange
            Exchange
              Scan parquet db.orders
    """
    query = Query(1, "", plan=plan(drawn))
    # Metric 5 counts the rows that are read from the exchange, and metric 1 is of the join.
    query.stages = [stage(1, 6, [0]), stage(2, 5, [0]), stage(3, 1, [0])]
    made = view(Application(), query)
    assert [each.ran.stages if each.ran else [] for each in made.stages] == [[1], [2], [3]]


def test_the_plot_of_running_tasks_stacks_the_stages() -> None:
    # In 1 ms, a column: first a task of `a` and one of `b`, then only `a`, then a task outside.
    running, a, b = [(0, 2), (1, 1), (3, 0)], [(0, 1), (2, 0)], [(0, 1), (1, 0)]
    plot = slots_plot(running, {"a": a, "b": b})
    paths = re.findall(r'<path class="([\w-]+)" d="([^"]*)"><title>([^<]*)', plot)
    assert [(kind, title) for kind, _, title in paths] == [
        ("part-1", "a"),
        ("part-2", "b"),
        ("rest", "other tasks"),
    ]
    outlines = [
        re.findall(r"M([\d.]+) ([\d.]+)h[\d.]+v([\d.]+)", outline) for _, outline, _ in paths
    ]
    # Place, top and height of each bar: two tasks are as high as the plot.
    assert outlines == [
        [("0.00", "50.00", "50.00"), ("333.33", "50.00", "50.00")],
        [("0.00", "0.00", "50.00")],
        [("666.67", "50.00", "50.00")],
    ]


def test_the_legend_has_no_other_tasks_if_those_of_a_stage_all_failed() -> None:
    query = example()
    assert query.plan
    query.stages[0] = timed(1, metric_of(query.plan, "orders"), [])
    query.stages[0].failed_tasks = 1
    assert "other tasks" not in html.render("one", [view(Application(), query)])
