from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from apportion import eventlog
from apportion.decision import Outcome
from apportion.logs.eventlog import Application
from apportion.logs.eventlog.fragments import fragments
from apportion.logs.explanation.views.view import memory_text
from tests.records import RECORD

QUERY_ID = "spark.sql.execution.id"

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
PLAN = {
    "nodeName": "Exchange",
    "simpleString": "Exchange hashpartitioning(k#1, 4)",
    "children": [
        {"nodeName": "Range", "simpleString": "Range (0, 10)", "children": [], "metrics": []}
    ],
    "metrics": [{"name": "data size", "accumulatorId": 7, "metricType": "size"}],
}


def decided(**more: Any) -> dict[str, Any]:
    return {"Event": "io.apportion.report.DecisionEvent", "decision": {**RECORD, **more}}


def task(stage: int, launched: int, read: int, **info: Any) -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task Info": {
            "Launch Time": launched,
            "Finish Time": launched + 9,
            "Failed": False,
            "Killed": False,
            **info,
        },
        "Task Metrics": {
            "Executor Run Time": 8,
            "Input Metrics": {"Bytes Read": 0},
            "Shuffle Read Metrics": {"Remote Bytes Read": read, "Local Bytes Read": 1},
            "Shuffle Write Metrics": {"Shuffle Bytes Written": 5},
        },
    }


def stage(event: str, number: int, **more: Any) -> dict[str, Any]:
    info = {
        "Stage ID": number,
        "Stage Attempt ID": 0,
        "Stage Name": "collect",
        "Parent IDs": [],
        "Number of Tasks": 2,
        **more,
    }
    return {"Event": f"SparkListenerStage{event}", "Stage Info": info}


def stage_of(number: int) -> dict[str, Any]:
    return stage("Submitted", number)


EVENTS: list[Mapping[str, Any]] = [
    {"Event": "SparkListenerLogStart", "Spark Version": "4.2.0"},
    {
        "Event": "SparkListenerExecutorAdded",
        "Timestamp": 1,
        "Executor ID": "1",
        "Executor Info": {"Total Cores": 4},
    },
    {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.master": "local[4]"}},
    {
        "Event": "SparkListenerApplicationStart",
        "App Name": "nightly",
        "App ID": "local-17",
        "Timestamp": 2,
    },
    {
        "Event": f"{SQL}ExecutionStart",
        "executionId": 3,
        "description": "a query",
        "time": 10,
        "sparkPlanInfo": PLAN,
    },
    {
        "Event": "SparkListenerJobStart",
        "Stage IDs": [5, 6],
        "Properties": {"spark.sql.execution.id": "3"},
    },
    {"Event": "SparkListenerJobStart", "Stage IDs": [9], "Properties": {}},
    stage("Submitted", 5),
    task(5, 20, 100),
    task(5, 21, 200),
    task(5, 22, 300, Failed=True),
    stage(
        "Completed",
        5,
        **{
            "Submission Time": 19,
            "Completion Time": 30,
            "Accumulables": [{"ID": 7, "Value": "12"}],
        },
    ),
    {
        "Event": f"{SQL}AdaptiveExecutionUpdate",
        "executionId": 3,
        "sparkPlanInfo": {**PLAN, "nodeName": "Final"},
    },
    {
        "Event": "io.apportion.report.QueryEvent",
        "query": {
            "query": 3,
            "sql": "SELECT 1",
            "operators": [
                {"depth": 0, "name": "Project", "text": "Project [1]", "start": 0, "stop": 7},
                {"depth": 1, "name": "OneRowRelation", "text": "OneRowRelation"},
            ],
        },
    },
    decided(subpartition_bytes=[[1, 2, 3, 4]], operators=[1]),
    stage("Submitted", 9),
    {"Event": f"{SQL}ExecutionEnd", "executionId": 3, "time": 40, "errorMessage": ""},
    {"Event": "SparkListenerExecutorRemoved", "Timestamp": 50, "Executor ID": "1"},
    {"Event": "SparkListenerApplicationEnd", "Timestamp": 60},
]


def lines(events: Sequence[Mapping[str, Any]]) -> list[str]:
    return [json.dumps(event, separators=(",", ":")) for event in events]


def read(tmp_path: Path, text: list[str]) -> Application:
    log = tmp_path / "local-17"
    log.write_text("\n".join(text))
    return eventlog.read(log)


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return read(tmp_path, lines(EVENTS))


def test_the_application_of_a_log_is_read(application: Application) -> None:
    assert (application.id, application.name, application.spark_version) == (
        "local-17",
        "nightly",
        "4.2.0",
    )
    assert (application.started, application.ended) == (2, 60)
    assert application.conf == {"spark.master": "local[4]"}
    assert application.slots == [(1, 4), (50, 0)]
    assert application.skipped == []


def test_a_query_has_its_last_plan(application: Application) -> None:
    query = application.queries[3]
    assert (query.description, query.submitted, query.completed) == ("a query", 10, 40)
    assert query.failure is None
    assert query.plan
    assert [node.name for node in query.plan.walk()] == ["Final", "Range"]
    assert query.plan.metrics == {"data size": 7}


def test_a_shuffle_that_spark_2_reuses_has_two_readers(tmp_path: Path) -> None:
    size = {"name": "data size total (min, med, max)", "accumulatorId": 7, "metricType": "size"}
    shuffle = {**PLAN, "metrics": [size]}
    reused = {"nodeName": "ReusedExchange", "simpleString": "ReusedExchange", "children": [shuffle]}
    join = {"nodeName": "Union", "simpleString": "Union", "children": [shuffle, reused]}
    start = {**next(event for event in EVENTS if "sparkPlanInfo" in event), "sparkPlanInfo": join}
    plan = read(tmp_path, lines([start])).queries[3].plan
    assert plan
    writer, reader = fragments(plan)
    assert reader.inputs == [writer, writer]
    assert writer.accumulators() == {7}


def test_a_stage_has_its_successful_tasks(application: Application) -> None:
    assert [(stage.id, stage.query) for stage in application.stages] == [(5, 3), (9, None)]
    (stage,) = application.queries[3].stages
    assert (stage.submitted, stage.completed, stage.accumulators) == (19, 30, {7: 12})
    assert list(stage.launched) == [20, 21]
    assert list(stage.shuffle_read_bytes) == [101, 201]
    assert stage.failed_tasks == 1


def test_a_stage_has_what_its_tasks_spilled_wrote_and_waited_for(tmp_path: Path) -> None:
    ran = task(5, 20, 100)
    ran["Task Metrics"] |= {
        "Peak Execution Memory": 900,
        "JVM GC Time": 3,
        "Disk Bytes Spilled": 70,
        "Output Metrics": {"Bytes Written": 40},
    }
    ran["Task Metrics"]["Shuffle Read Metrics"]["Fetch Wait Time"] = 2
    (stage,) = read(tmp_path, lines([stage_of(5), ran, task(5, 21, 200)])).stages
    assert list(stage.spilled_bytes) == [70, 0]
    assert list(stage.output_bytes) == [40, 0]
    assert list(stage.gc_millis) == [3, 0]
    assert list(stage.fetch_wait_millis) == [2, 0]
    assert (stage.peak_memory, stage.tasks) == (900, 2)


@pytest.mark.parametrize(
    ("reason", "out_of_memory"),
    [
        ({"Reason": "ExceptionFailure", "Class Name": "java.lang.OutOfMemoryError"}, 1),
        ({"Reason": "ExceptionFailure", "Class Name": "com.nvidia.GpuSplitAndRetryOOM"}, 1),
        ({"Reason": "ExecutorLostFailure", "Loss Reason": "exit status 137"}, 1),
        ({"Reason": "ExceptionFailure", "Class Name": "java.io.IOException"}, 0),
        ({"Reason": "FetchFailed"}, 0),
    ],
)
def test_a_failed_attempt_counts_its_time_and_lack_of_memory(
    tmp_path: Path, reason: Mapping[str, str], out_of_memory: int
) -> None:
    failed = {**task(5, 20, 100, Failed=True), "Task End Reason": reason}
    (stage,) = read(tmp_path, lines([stage_of(5), failed])).stages
    assert (stage.failed_tasks, stage.wasted_millis) == (1, 9)
    assert stage.memory_failures == out_of_memory
    assert stage.failure_reasons == {reason.get("Class Name", reason["Reason"]): 1}


@pytest.mark.parametrize("metrics", [True, False])
def test_an_attempt_that_spark_killed_is_no_failure(tmp_path: Path, metrics: bool) -> None:
    reason = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
    killed = {**task(5, 20, 100, Killed=True), "Task End Reason": reason}
    if not metrics:
        del killed["Task Metrics"]
    (stage,) = read(tmp_path, lines([stage_of(5), task(5, 20, 100), killed])).stages
    assert (stage.failed_tasks, stage.wasted_millis, stage.killed_millis) == (0, 0, 9)
    assert stage.tasks == 1


def test_a_decision_has_the_bytes_of_its_partitions(application: Application) -> None:
    (logged,) = application.queries[3].decisions
    assert logged.decision.reason == "2 tasks: because."
    assert logged.decision.ranges == [(0, 2), (2, 4)]
    assert logged.subpartition_bytes == [[1, 2, 3, 4]]


def test_a_decision_has_the_outcome_of_its_stage(tmp_path: Path) -> None:
    outcome = {
        "stage": 4,
        "spilled_bytes": 10,
        "peak_task_memory": 20,
        "gc_millis": 1,
        "fetch_wait_millis": 2,
        "median_task_millis": 3,
        "longest_task_millis": 4,
        "failed_tasks": 1,
        "memory_failures": 1,
    }
    events = [
        *EVENTS[:5],
        decided(query=3, group=0, task_memory=15, largest_task_memory=30),
        {
            "Event": "io.apportion.outcomes.OutcomeEvent",
            "outcome": {**outcome, "query": 3, "group": 0},
        },
    ]
    (logged,) = read(tmp_path, lines(events)).queries[3].decisions
    assert logged.decision.outcome == Outcome(**outcome)
    assert memory_text(logged.decision) == (
        "rows of the largest task need 30 B of 15 B memory, tasks used up to 20 B of memory, "
        "10 B spilled to disk, 1 task ran out of memory"
    )


def test_short_forms_of_bytes_and_ranges_are_decoded(tmp_path: Path) -> None:
    short = decided(
        subpartitions=5, subpartition_bytes=[[7, 5, 3]], subpartition_bytes_width=2,
        ranges=[], ranges_text="0-4/2,4-5",
    )  # fmt: skip
    (_, logged) = read(tmp_path, lines([*EVENTS, short])).queries[3].decisions
    assert logged.subpartition_bytes == [[4, 3, 3, 2, 3]]
    assert logged.subpartitions_per_sum == 2
    assert logged.decision.ranges == [(0, 2), (2, 4), (4, 5)]


def test_a_query_has_its_sql_text_and_optimized_operators(
    application: Application,
) -> None:
    query = application.queries[3]
    assert query.sql == "SELECT 1"
    assert [(each.depth, each.name) for each in query.operators] == [
        (0, "Project"),
        (1, "OneRowRelation"),
    ]
    assert [(each.start, each.end) for each in query.operators] == [(0, 8), (None, None)]
    assert query.decisions[0].operators == [1]


def test_the_name_of_an_event_can_come_last(tmp_path: Path) -> None:
    turned = [json.dumps(dict(reversed(list(event.items())))) for event in EVENTS]
    assert read(tmp_path, turned).queries[3].completed == 40


@pytest.mark.parametrize("length", range(0, 1200, 50))
def test_a_truncated_log_is_read_to_its_end(tmp_path: Path, length: int) -> None:
    text = "\n".join(lines(EVENTS))[:length]
    application = read(tmp_path, [text])
    whole = [line for line in text.split("\n") if line in lines(EVENTS)]
    cut = text.split("\n")[-1]
    assert len(application.skipped) == (0 if cut in whole or not cut else 1) or not cut
    assert (application.id == "local-17") == any("ApplicationStart" in line for line in whole)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "null",
        "7",
        '"text"',
        '{"Event":null}',
        '{"Event":[]}',
        '{"Event":"Unknown"}',
        '{"Event":"SparkListenerTaskEnd"}',
        '{"Event":"SparkListenerTaskEnd","Stage ID":"x","Stage Attempt ID":0}',
        '{"Event":"SparkListenerStageSubmitted","Stage Info":[]}',
        '{"Event":"SparkListenerApplicationStart","App Name":"a","Timestamp":"never"}',
        '{"Event":"io.apportion.report.DecisionEvent","decision":{}}',
        '{"Event":"io.apportion.report.DecisionEvent","decision":[1]}',
        json.dumps(decided(query=99)),
        json.dumps(decided(query=None)),
        json.dumps(decided(reason=None)),
        json.dumps(decided(raw="2")),
        json.dumps(decided(subpartition_bytes=[[1, 2], [3]])),
        json.dumps(decided(subpartition_bytes=[[1, 2, 3]], subpartition_bytes_width=2)),
        json.dumps(decided(subpartition_bytes=[[1]], subpartition_bytes_width=-1)),
        json.dumps(
            decided(
                subpartitions=1 << 30,
                subpartition_bytes=[[1, 2]],
                subpartition_bytes_width=1 << 29,
            )
        ),
        json.dumps(decided(ranges=[], ranges_text="0-4/3")),
        json.dumps(decided(ranges=[], ranges_text="4-0")),
        json.dumps(decided(ranges=[], ranges_text="all")),
        json.dumps(decided(ranges=[], ranges_text="0-1999999999/1")),
        '{"Event":"' + SQL + 'ExecutionStart","executionId":1e999,"description":"","time":0}',
        '{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":7}',
        "[" * 100_000,
        '{"Event":"SparkListenerJobStart","Stage IDs":{"a":1},'
        '"Properties":{"spark.sql.execution.id":"x"}}',
        "\\u0000\\ud800",
    ],
)
def test_malformed_events_are_left_out(tmp_path: Path, line: str) -> None:
    application = read(tmp_path, [*lines(EVENTS)[:5], line, *lines(EVENTS)[5:]])
    assert application.ended == 60
    assert len(application.queries[3].decisions) == 1
    assert len(application.skipped) <= 1


def test_left_out_events_are_counted(tmp_path: Path) -> None:
    application = read(tmp_path, [*lines(EVENTS), "{", "{", '{"Event":"SparkListenerTaskEnd"}'])
    assert application.skipped == [
        "2 times: a line that is not an event, such as the end of a truncated log",
        "a malformed event SparkListenerTaskEnd: the field Stage ID is missing",
    ]


def test_events_with_too_large_numbers_are_left_out(tmp_path: Path) -> None:
    application = read(tmp_path, [*lines(EVENTS), json.dumps(task(5, 2**70, 1))])
    (stage,) = application.queries[3].stages
    assert {len(stage.launched), len(stage.finished), len(stage.run_millis)} == {2}
    assert len(application.skipped) == 1


def test_values_of_malformed_events_are_not_kept(tmp_path: Path) -> None:
    hostile = [
        json.dumps({**task(5, 20, 100), "Stage ID": f"\x1b[2J{number}" + "x" * 1000})
        for number in range(100)
    ]
    application = read(tmp_path, [*lines(EVENTS), *hostile])
    assert application.skipped == [
        "100 times: a malformed event SparkListenerTaskEnd: a value has another type or format"
    ]


def test_the_last_name_of_an_event_does_not_raise(tmp_path: Path) -> None:
    twice = '{"Event":"SparkListenerTaskEnd","Event":[1]}'
    assert len(read(tmp_path, [*lines(EVENTS), twice]).skipped) == 1


def test_names_have_no_control_characters(tmp_path: Path) -> None:
    start: dict[str, Any] = {**EVENTS[4]}
    start["description"] = "\x1b[2J\ud800"
    start["sparkPlanInfo"] = {**PLAN, "nodeName": "\x9bExchange", "simpleString": "\x07"}
    query = read(tmp_path, lines([start])).queries[3]
    assert query.description == "\ufffd[2J\ufffd"
    assert query.plan
    assert (query.plan.name, query.plan.text) == ("\ufffdExchange", "\ufffd")


def test_a_stage_has_its_resource_profile(tmp_path: Path) -> None:
    other = stage("Submitted", 6, **{"Resource Profile Id": 2})
    application = read(tmp_path, lines([stage_of(5), other]))
    assert [each.profile for each in application.stages] == [0, 2]


@pytest.mark.parametrize(("depth", "kept"), [(1500, 1501), (4500, 4001), (50_000, None)])
def test_deep_plans_are_read(tmp_path: Path, depth: int, kept: int | None) -> None:
    node = '{"nodeName":"Project","simpleString":"Project","children":['
    plan = node * depth + '{"nodeName":"Leaf","simpleString":"Leaf"}' + "]}" * depth
    start = lines(EVENTS)[4].replace(json.dumps(PLAN, separators=(",", ":")), plan)
    application = read(tmp_path, [start, *lines(EVENTS)[5:12]])
    if kept is None:
        assert application.skipped == ["a plan that is nested too deeply"]
    else:
        found = application.queries[3].plan
        assert found
        assert len(list(found.walk())) == kept


@pytest.mark.parametrize(
    ("java", "spark", "query", "hour"),
    [
        ("Asia/Tokyo", None, None, 1),
        ("Asia/Tokyo", "America/New_York", None, 15),
        ("Asia/Tokyo", "America/New_York", "+02:00", 8),
        ("", None, None, 10),
        ("", None, "Java knows it", 10),
        ("", None, "../../etc/passwd", 10),
        ("GMT-03:00", None, None, 13),
    ],
)
def test_times_of_decisions_are_utc(
    tmp_path: Path, java: str, spark: str | None, query: str | None, hour: int
) -> None:
    key = "spark.sql.session.timeZone"
    events = [dict(event) for event in EVENTS]
    for event in events:
        if event["Event"] == "SparkListenerEnvironmentUpdate":
            event["System Properties"] = {"user.timezone": java}
            event["Spark Properties"] = {key: spark} if spark else {}
        if event["Event"] == f"{SQL}ExecutionStart" and query:
            event["modifiedConfigs"] = {key: query}
    decision = read(tmp_path, lines(events)).queries[3].decisions[0].decision
    assert decision.decided_at == datetime.datetime(
        2026, 11, 21, hour, 0, 0, 123_000, tzinfo=datetime.timezone.utc
    )


def test_a_decision_may_come_before_its_query(tmp_path: Path) -> None:
    # Spark plans a query without shuffles before it logs its start.
    names = [str(event["Event"]).rpartition(".")[2] for event in EVENTS]
    start = names.index("SparkListenerSQLExecutionStart")
    own = [event for event in EVENTS if "apportion" in str(event["Event"])]
    others = [event for event in EVENTS if event not in own]
    application = read(tmp_path, lines([*others[:start], *own, *others[start:]]))
    assert application.skipped == []
    query = application.queries[3]
    assert (query.sql, len(query.decisions)) == ("SELECT 1", 1)


def test_decisions_of_queries_without_a_start_are_left_out(tmp_path: Path) -> None:
    late = [decided(query=7), decided(query=7, decided_at="never"), decided(query=None)]
    assert sorted(read(tmp_path, lines([*EVENTS, *late])).skipped) == [
        "a decision for a query that is not in the log",
        "a decision outside a query",
        "a malformed event DecisionEvent: decided_at is not a time",
    ]


@pytest.mark.parametrize("depth", [-1, 3, 10**9, 10**30])
def test_an_operator_is_at_most_one_level_below_the_operators_before_it(
    tmp_path: Path, depth: int
) -> None:
    operator = {"depth": 0, "name": "Project", "text": "Project"}
    operators = [operator, {**operator, "depth": 1}, {**operator, "depth": depth}]
    event = {
        "Event": "io.apportion.report.QueryEvent",
        "query": {"query": 3, "sql": "SELECT 1", "operators": operators},
    }
    application = read(tmp_path, lines([*EVENTS[:5], event]))
    assert application.queries[3].operators == []
    assert application.skipped == [
        "a malformed event QueryEvent: the depth of an operator is out of range"
    ]


def test_tasks_of_a_rolling_log_without_its_first_file_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_app-1"
    log.mkdir()
    # Of the executors, only the last one is in the file.
    added = {**EVENTS[1], "Executor Info": {"Total Cores": 1}}
    events = [
        added,
        task(5, 20, 100),
        task(5, 21, 200),
        task(5, 22, 1, Failed=True),
        task(6, 28, 1),
    ]
    completed = stage("Completed", 5, **{"Parent IDs": [4], "Completion Time": 31})
    (log / "events_94_app-1").write_text("\n".join(lines([*events, completed])))
    application = eventlog.read(log)
    first, second = application.other_stages
    assert (first.id, first.name, first.parents, first.tasks_planned) == (5, "collect", [4], 2)
    assert (list(first.launched), first.failed_tasks, first.completed) == ([20, 21], 1, 31)
    assert (second.id, list(second.launched), second.name) == (6, [28], "")
    assert application.slots == [(0, 3)]
    assert application.skipped == [
        "events_1 to events_93 of the rolling log, because of missing files",
        "2 times: the start of a stage, whose tasks are counted",
    ]
    assert application.has_estimated_slots


def test_tasks_of_spark_1_are_counted(tmp_path: Path) -> None:
    plain = task(5, 20, 100)
    del plain["Task Info"]["Killed"]
    reads = {**plain, "Task Metrics": {"Executor Run Time": 8}}
    remote = {"Executor Run Time": 8, "Shuffle Read Metrics": {"Remote Bytes Read": 7}}
    events = [stage_of(5), plain, reads, {**plain, "Task Metrics": remote}]
    application = read(tmp_path, lines([*EVENTS[:2], EVENTS[3], *events]))
    (found,) = application.stages
    assert list(found.shuffle_read_bytes) == [101, 0, 7]
    assert list(found.shuffle_written_bytes) == [5, 0, 0]
    assert application.skipped == []


@pytest.mark.parametrize(
    ("master", "cpus", "cores", "is_known"),
    [
        ("local[8]", None, 8, True),
        ("local[8,3]", None, 8, True),
        ("local", None, 1, True),
        ("local[*]", None, 2, False),
        ("local[*]", "3", 6, False),
        ("local[*]", "many", 2, False),
        ("yarn", None, 2, False),
        (None, None, 2, False),
    ],
)
def test_slots_of_a_log_without_executors_come_from_its_conf_or_its_tasks(
    tmp_path: Path, master: str | None, cpus: str | None, cores: int, is_known: bool
) -> None:
    conf = {"spark.master": master, "spark.task.cpus": cpus}
    given = {key: value for key, value in conf.items() if value}
    environment = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": given}
    # Two tasks run at the same time, and the third after them.
    tasks = [task(5, 20, 1), task(5, 21, 1), task(5, 30, 1)]
    application = read(tmp_path, lines([EVENTS[3], environment, stage_of(5), *tasks]))
    assert application.slots == [(2, cores)]
    assert application.has_estimated_slots is not is_known
    assert application.skipped == []


def test_the_first_tasks_of_an_executor_are_known(tmp_path: Path) -> None:
    def ended(executor: str, launched: int, finished: int) -> dict[str, Any]:
        info = {"Launch Time": launched, "Finish Time": finished, "Executor ID": executor}
        return {
            "Event": "SparkListenerTaskEnd", "Stage ID": 0, "Stage Attempt ID": 0,
            "Task Info": info, "Task Metrics": {"Executor Run Time": 1},
        }  # fmt: skip

    added = {
        "Event": "SparkListenerExecutorAdded", "Timestamp": 0, "Executor ID": "1",
        "Executor Info": {"Total Cores": 2},
    }  # fmt: skip
    events = [added, ended("1", 0, 90), ended("1", 10, 95), ended("1", 92, 99), ended("2", 0, 99)]
    log = tmp_path / "log"
    log.write_text("\n".join(map(json.dumps, events)))
    (stage,) = eventlog.read(log).other_stages
    # The start of executor 2 is not in the log.
    assert stage.on_new_executors == [0, 1]


def test_stages_that_ran_before_the_start_of_their_query_belong_to_it(tmp_path: Path) -> None:
    # Databricks logs some queries after their first jobs.
    stage = {"Stage ID": 0, "Stage Attempt ID": 0, "Stage Name": "load", "Number of Tasks": 1}
    plan = {"nodeName": "Scan", "simpleString": "Scan", "children": []}
    start = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 5, "description": "load", "time": 7, "sparkPlanInfo": plan,
    }  # fmt: skip
    events = [
        {"Event": "SparkListenerJobStart", "Stage IDs": [0], "Properties": {QUERY_ID: "5"}},
        {"Event": "SparkListenerStageSubmitted", "Stage Info": stage},
        start,
        {"Event": "SparkListenerStageCompleted", "Stage Info": {**stage, "Completion Time": 9}},
    ]
    log = tmp_path / "log"
    log.write_text("\n".join(map(json.dumps, events)))
    application = eventlog.read(log)
    assert application.other_stages == []
    (adopted,) = application.queries[5].stages
    assert (adopted.query, adopted.completed) == (5, 9)
