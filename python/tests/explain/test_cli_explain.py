from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import app
from apportion.logs.eventlog import PlanNode

from .plans import plan
from .test_render import DECIDED, PLAN

SVG = "{http://www.w3.org/2000/svg}"
SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"


def explain(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


def info(node: PlanNode) -> dict[str, Any]:
    children = [info(child) for child in node.children]
    return {"nodeName": node.name, "simpleString": node.text, "children": children}


def started(number: int, description: str) -> dict[str, Any]:
    return {
        "Event": f"{SQL}ExecutionStart", "executionId": number, "description": description,
        "time": 0, "sparkPlanInfo": info(plan(PLAN)),
    }  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Queries 3 and 4, of which 3 has a decision; the last line is cut off."""
    events = [
        {
            "Event": "SparkListenerApplicationStart",
            "App Name": "nightly",
            "App ID": "local-17",
            "Timestamp": 2,
        },
        started(3, "the daily report"),
        {
            "Event": "io.apportion.report.DecisionEvent",
            "decision": {**DECIDED, "subpartition_bytes": [[1, 2, 3, 4]]},
        },
        started(4, "another"),
    ]
    path = tmp_path / "local-17"
    path.write_text("\n".join(json.dumps(event) for event in events) + '\n{"Event":')
    return path


def test_explain_shows_the_queries_with_decisions(log: Path) -> None:
    result = explain(log)
    assert result.exit_code == 0
    assert "Query 3: the daily report" in result.stdout
    assert "HashAggregate: 2 tasks: because." in result.stdout
    assert "Query 4" not in result.stdout
    assert result.stderr.startswith("Left out: a line that is not an event")


def test_explain_shows_observed_decisions(tmp_path: Path) -> None:
    reason = "Observed: 2 tasks: because; Spark runs 4 tasks."
    events = [
        started(3, "the daily report"),
        {
            "Event": "io.apportion.report.DecisionEvent",
            "decision": {
                **DECIDED,
                **{"layout": "observed", "ranges": [], "tasks": 4, "reason": reason},
                "subpartition_bytes": [[1, 2, 3, 4]],
            },
        },
    ]
    log = tmp_path / "local-17"
    log.write_text("\n".join(json.dumps(event) for event in events))
    shown = explain(log).stdout
    assert f"HashAggregate: {reason}" in shown
    assert reason in explain(log, "--format", "html").stdout
    assert json.loads(explain(log, "--format", "json").stdout)[0]["stages"] is not None


def test_explain_names_averages_of_neighbours(tmp_path: Path) -> None:
    events = [
        started(3, "the daily report"),
        {
            "Event": "io.apportion.report.DecisionEvent",
            "decision": {**DECIDED, "subpartition_bytes": [[3, 7]], "subpartition_bytes_width": 2},
        },
    ]
    log = tmp_path / "local-17"
    log.write_text("\n".join(json.dumps(event) for event in events))
    assert "4 shuffle partitions, 10 B (averages of 2 neighbours)" in explain(log).stdout
    assert "(averages of 2 neighbours), in 2 ranges" in explain(log, "--format", "html").stdout


def test_explain_shows_a_query_by_number(log: Path) -> None:
    shown = explain(log, "--query", "4").stdout
    assert "Query 4: another" in shown
    assert "Query 3" not in shown


def test_a_query_that_is_named_twice_is_shown_once(log: Path) -> None:
    result = explain(log, "--query", "4", "--query", "3", "--query", "4", "--format", "json")
    assert [query["id"] for query in json.loads(result.stdout)] == [4, 3]


def test_the_command_for_advice_is_shown_only_for_a_path(log: Path) -> None:
    shown = "For advice, run: apportion advise"
    assert f"{shown} {log}\n" in explain(log).stdout
    assert shown not in explain("local-17", "--logs", log.parent).stdout


def test_explain_draws_queries_below_each_other(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "graph.svg"
    result = explain(log, "-o", file, "--query", "3", "--query", "4")
    assert (result.exit_code, result.stdout) == (0, "")
    picture = ElementTree.parse(file).getroot()
    titles = [text.text for text in picture.findall(f"{SVG}text")]
    assert titles == ["Query 3: the daily report", "Query 4: another"]
    tops = [int(graph.attrib["y"]) for graph in picture.findall(f"{SVG}svg")]
    assert len(tops) == 2
    assert tops[0] < tops[1]
    assert "var(" not in file.read_text("utf-8")


def test_explain_prints_json_mermaid_and_html(log: Path, tmp_path: Path) -> None:
    assert json.loads(explain(log, "--format", "json").stdout)[0]["id"] == 3
    assert explain(log, "--format", "mermaid").stdout.startswith("flowchart BT\n")
    page = tmp_path / "page.html"
    assert explain(log, "--format", "html", "-o", page).stdout == ""
    assert "<title>nightly (local-17)</title>" in page.read_text("utf-8")
    assert "Left out:" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "5"], "has no query 5. Known queries: 3 to 4"),
        (["--format", "pdf"], "'pdf' is not one of"),
        (["-o", "no/such/place"], "cannot write no/such/place: "),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(
    log: Path, arguments: list[str], message: str
) -> None:
    result = explain(log, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_log_without_decisions_gives_the_profile_of_its_queries(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(json.dumps(started(1, "the daily report")))
    shown = explain(tmp_path / "log")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("The log has no decisions of Apportion, so this is the profile")
    assert "Query 1: the daily report (not ended)" in shown.stdout
    assert "reads query stage 0" in shown.stdout
    page = explain(tmp_path / "log", "--format", "html").stdout
    assert "<p>The log has no decisions of Apportion" in page
    as_json = explain(tmp_path / "log", "--format", "json")
    assert [query["id"] for query in json.loads(as_json.stdout)] == [1]
    assert as_json.stderr.startswith("The log has no decisions of Apportion")


def test_a_log_without_sql_exits_with_2_and_one_line(tmp_path: Path) -> None:
    info = {"Stage ID": 0, "Stage Attempt ID": 0, "Stage Name": "count", "Number of Tasks": 1}
    event = {"Event": "SparkListenerStageSubmitted", "Stage Info": info}
    (tmp_path / "log").write_text(json.dumps(event))
    result = explain(tmp_path / "log")
    assert (result.exit_code, result.stdout) == (2, "")
    assert " ".join(result.stderr.split()).endswith(
        "log has no SQL queries; its jobs ran 1 stage without a query"
    )
    assert explain(tmp_path / "none").exit_code == 2


def ran(number: int) -> list[dict[str, Any]]:
    """The events of a stage of a query, whose task ended."""
    info = {
        "Stage ID": number, "Stage Attempt ID": 0, "Stage Name": "count", "Number of Tasks": 1,
    }  # fmt: skip
    ids = {"Stage IDs": [number], "Properties": {"spark.sql.execution.id": str(number)}}
    return [
        {"Event": "SparkListenerJobStart", "Job ID": number, **ids},
        {"Event": "SparkListenerStageSubmitted", "Stage Info": info},
    ]


def test_queries_without_tasks_are_left_out_unless_they_are_chosen(tmp_path: Path) -> None:
    events = [started(0, "a view"), started(1, "daily"), *ran(1)]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, events)))
    shown = explain(tmp_path / "log").stdout
    assert "Query 1: daily" in shown
    assert "Query 0: " not in shown
    assert "Left out: 1 query without tasks." in shown
    assert "Query 0: a view" in explain(tmp_path / "log", "--query", "0").stdout


def ended(number: int, seconds: int) -> dict[str, Any]:
    return {"Event": f"{SQL}ExecutionEnd", "executionId": number, "time": 1000 * seconds}


def test_the_slowest_query_comes_first(tmp_path: Path) -> None:
    queries = 3
    events = [
        event
        for number in range(queries)
        for event in (started(number, "daily"), *ran(number), ended(number, number + 1))
    ]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, events)))
    lines = explain(tmp_path / "log").stdout.splitlines()
    start = lines.index("Queries, the slowest first:")
    assert lines[start + 1].split() == ["query", f"{queries - 1}:", f"{queries}.0", "s", "daily"]
    details = [line for line in lines if line.startswith("Query ")]
    assert details[0].startswith("Query 2: ")
    assert len(details) == queries
    page = explain(tmp_path / "log", "--format", "html").stdout
    assert page.index(f'href="#q{queries - 1}"') < page.index('href="#q0"')


@pytest.mark.parametrize(
    ("queries", "rest"), [(21, "and 1 faster query"), (22, "and 2 faster queries")]
)
def test_the_list_of_queries_names_the_number_of_the_others(
    tmp_path: Path, queries: int, rest: str
) -> None:
    events = [event for number in range(queries) for event in (started(number, "a"), *ran(number))]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, events)))
    assert f"  {rest}\n" in explain(tmp_path / "log").stdout


@pytest.mark.parametrize("what", ["SELECT " + "a" * 300, "http://[::1"])
def test_an_argument_that_cannot_be_a_path_exits_with_2(what: str) -> None:
    result = explain(what)
    assert result.exit_code == 2
    assert what[:40] in result.stderr


def test_the_error_for_a_log_without_queries_names_omitted_parts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no event")
    result = explain(tmp_path / "log")
    assert "no other events of an application; a line that is not an event" in " ".join(
        result.stderr.split()
    )
