"""Queries that are run to be explained: on the command line, in Python, in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output
from markupsafe import escape
from playwright.sync_api import expect
from pyspark.sql import DataFrame, Row, SparkSession
from typer.testing import CliRunner, Result

import apportion
from apportion import ApportionError
from apportion.cli import app
from apportion.logs.explanation import run_queries
from apportion.logs.explanation.explained import Explained

from .conftest import Tabs

GROUPED = "SELECT city, count(*) AS n FROM people GROUP BY city"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "people.csv").write_text("name,city\nAda,London\nAlan,<b>\nKay,London\n")
    return folder


def explain(*arguments: str | Path, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)], input=stdin)


# On the command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.sql"], "there is no file none.sql"),
        (["-", "--tables", "none"], "there is no directory none (--tables)"),
        (["-", "--set", "min_paralelism=4"], "Did you mean min_parallelism?"),
        (["-", "--logs", "."], "--logs: only for a log, not for SQL"),
        (["app-1", "--set", "mode=active"], "--set: only for SQL, not for app-1"),
        (
            ["app-1", "--logs", "none"],
            "no directory none to search for an application with that id",
        ),
        (["http://"], "http:// has no host: write http://HOST:PORT"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(arguments: list[str], message: str) -> None:
    result = explain(*arguments, stdin="SELECT 1")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


@pytest.mark.usefixtures("spark")
class TestSql:
    def test_explain_runs_a_file_of_sql(self, tables: Path, tmp_path: Path) -> None:
        file = tmp_path / "query.sql"
        hinted = GROUPED.replace("SELECT", "SELECT /*+ PARALLELISM(1) */")
        file.write_text(f"SET spark.apportion.mode; {hinted};")
        result = explain(file, "--tables", tables)
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        # Of the first statement there is nothing to decide, and it is left out.
        assert result.stdout.startswith("Query ")
        assert result.stdout.count("Query ") == 1
        assert f": {hinted} (" in result.stdout
        assert "HashAggregate: 1 task: parallelism is set to 1 (hint" in result.stdout
        assert "  reads stage " in result.stdout
        assert "written to a shuffle" in result.stdout

    def test_explain_runs_standard_input_and_writes_a_page(self, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        sql = "SELECT DISTINCT id % 3 FROM range(9)"
        assert explain("-", "--format", "html", "-o", page, stdin=sql).exit_code == 0
        assert f"{sql}</h2>" in page.read_text("utf-8")
        assert "<title>SQL golden tests (local-" in page.read_text("utf-8")

    def test_explain_shows_a_query_without_decisions(self) -> None:
        result = explain("-", "--format", "json", stdin="SELECT 1")
        [query] = json.loads(result.stdout)
        assert (query["description"], query["stages"][-1]["slots"]) == ("SELECT 1", 1)

    @pytest.mark.parametrize(
        ("statement", "code", "message"),
        [
            ("SELECT * FROM poeple", 2, "cannot be found. Did you mean people? Tables: people"),
            ("SELECT raise_error('no luck')", 1, "no luck"),
        ],
    )
    def test_a_failed_query_is_a_short_message(
        self, tables: Path, statement: str, code: int, message: str
    ) -> None:
        result = explain("-", "--tables", tables, stdin=statement)
        assert result.exit_code == code
        assert message in " ".join(result.stderr.split())

    def test_an_unknown_number_of_a_query_exits_with_2(self) -> None:
        result = explain("-", "--query", "999999", stdin="SELECT 1")
        assert result.exit_code == 2
        assert "this run has no query 999999. Known queries: " in result.stderr


# In Python


def test_a_dataframe_is_planned_and_run_again(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.apportion.parallelism", "2")
    frame = session.range(0, 100, 1, 2).selectExpr("id % 10 AS k").groupBy("k").count()
    frame.collect()
    explained = apportion.explain(frame)
    [query] = explained.queries
    assert [each.decision.tasks for each in query.stages[-1].decisions] == [2]
    assert "HashAggregate: 2 tasks: parallelism is set to 2" in repr(explained)
    assert explained.mermaid().startswith("flowchart BT\n")
    assert json.loads(explained.json())[0]["id"] == query.id
    assert explained._repr_html_().startswith('<iframe title="SQL golden tests (local-')


def test_the_rows_of_a_large_result_do_not_reach_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    collect = type(spark.range(1)).collect

    def count_rows(frame: DataFrame) -> list[Row]:
        rows = collect(frame)
        collected.append(len(rows))
        return rows

    monkeypatch.setattr(type(spark.range(1)), "collect", count_rows)
    frame = spark.range(0, 5000, 1, 2).groupBy("id").count()
    explained = apportion.explain(frame)
    application, columns, rows = run_queries.run(spark, [frame], head=3)
    assert (collected, columns, len(rows)) == ([3], ["id", "count"], 3)
    [query] = explained.queries
    assert query.description == "DataFrame[id, count]"
    # Spark 4.3 aggregates the rows of a range by their order, and earlier versions by hash.
    assert "Aggregate <- " in explained.text()
    # The write that discards the rows is not a part of the query.
    assert "noop" not in explained.html()
    assert "Overwrite" not in explained.text()
    assert [each.plan and each.plan.name for each in application.queries.values()] == [
        "AdaptiveSparkPlan"
    ]


def test_intervals_and_equal_names_are_explained(spark: SparkSession) -> None:
    columns = "make_interval(0, 0, 0, CAST(id AS INT)) AS a, array(make_interval(1)) AS a, id AS a"
    frame = spark.sql(f"SELECT {columns} FROM range(0, 2000, 1, 2)").repartition(3)
    assert "2,000" in apportion.explain(frame).text()


@pytest.mark.parametrize("value", [3, None, ["SELECT 1"]])
def test_a_value_that_cannot_be_explained_is_named(value: Any) -> None:
    with pytest.raises(ApportionError, match=r"cannot explain .*: give a DataFrame"):
        apportion.explain(value)


def test_explain_takes_a_path_or_an_application_id(tmp_path: Path) -> None:
    start = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 3, "description": "daily", "time": 0,
        "sparkPlanInfo": {"nodeName": "Range", "simpleString": "Range (0, 9)"},
    }  # fmt: skip
    (tmp_path / "app-1").write_text(json.dumps(start))
    for what in (tmp_path / "app-1", str(tmp_path / "app-1"), "app-1"):
        assert "Query 3: daily" in apportion.explain(what, queries=[3], logs=tmp_path).text()
    assert "The log has no decisions" in apportion.explain(tmp_path / "app-1").text()
    (tmp_path / "app-2").write_text("")
    with pytest.raises(ApportionError, match="has no queries"):
        apportion.explain(tmp_path / "app-2")


def test_decisions_are_tables_in_notebooks(spark: SparkSession) -> None:
    session = spark.newSession()
    session.sql("SELECT DISTINCT id % 3 FROM range(0, 9, 1, 2)").collect()
    decisions = apportion.decisions(session)
    assert isinstance(decisions, list)
    table = decisions._repr_html_()
    assert table.count("<tr>") == 1 + len(decisions)
    assert "<td>HashAggregate</td>" in table
    [decision] = decisions
    assert f"HashAggregate:</strong> {escape(decision.reason)}</p>" in decision._repr_html_()
    assert "parallelism set by" in decision._repr_html_()


# In a notebook


@pytest.fixture
def shell(spark: SparkSession) -> Iterator[InteractiveShell]:
    """IPython with the magic, where `people` is a view."""
    rows = "VALUES ('Ada', 'London'), ('Alan', '<b>'), ('Kay', 'London') AS people(name, city)"
    spark.sql(f"CREATE OR REPLACE TEMP VIEW people AS SELECT * FROM {rows}")
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "apportion.notebook")
    yield shell
    InteractiveShell.clear_instance()
    spark.catalog.dropTempView("people")


def run_cell(shell: InteractiveShell, cell: str) -> tuple[list[RichOutput], apportion.Explained]:
    """What a cell displays, and its result."""
    with capture_output() as captured:
        result = shell.run_cell(cell)
    result.raise_error()
    return captured.outputs, result.result


def test_a_notebook_cell_shows_rows_and_explains(shell: InteractiveShell) -> None:
    (rows, *_), explained = run_cell(shell, f"%%apportion parallelism=2\n{GROUPED} ORDER BY city")
    assert "<td>London</td><td>2</td>" in rows.data["text/html"]
    assert "<td>&lt;b&gt;</td><td>1</td>" in rows.data["text/html"]
    assert rows.data["text/plain"] == "city\tn\n<b>\t1\nLondon\t2\n2 rows"
    assert "parallelism is set to 2 (session setting)" in explained.text()


def test_a_notebook_cell_is_one_query_with_decisions(
    shell: InteractiveShell, spark: SparkSession
) -> None:
    known = {decision.query for decision in apportion.decisions(spark)}
    run_cell(shell, f"%%apportion parallelism=2\n{GROUPED}")
    assert len({decision.query for decision in apportion.decisions(spark)} - known) == 1
    assert spark.conf.get("spark.apportion.enabled") == "true"


def notebook_page(shell: InteractiveShell, cell: str) -> str:
    """Execute a cell, and return a page that shows its outputs as notebooks do."""
    outputs, explained = run_cell(shell, cell)
    shown = [output.data["text/html"] for output in outputs if "text/html" in output.data]
    return f"<!doctype html><title>notebook</title>{''.join(shown)}{explained._repr_html_()}"


def test_an_executed_notebook_is_drawn(shell: InteractiveShell, tabs: Tabs, tmp_path: Path) -> None:
    file = tmp_path / "notebook.html"
    file.write_text(notebook_page(shell, f"%%apportion parallelism=2\n{GROUPED}"), "utf-8")
    page = tabs.open(file.as_uri())
    expect(page.get_by_role("cell", name="London", exact=True)).to_be_visible()
    reason = "parallelism is set to 2 (session setting)"
    expect(page.get_by_text(reason).first).to_be_visible()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("stage 0").first).to_be_visible()
    content = "document.documentElement.scrollHeight - document.documentElement.clientHeight"
    inner = page.frames[1]
    inner.wait_for_function(f"{content} === 0")
    expect(frame.locator("details.stage")).to_have_count(2)
    frame.locator("details.stage:not([open]) > summary").first.click()
    inner.wait_for_function(f"{content} === 0")


def test_settings_of_a_notebook_cell_end_with_the_cell(
    shell: InteractiveShell, spark: SparkSession
) -> None:
    run_cell(shell, "%%apportion parallelism=2\nSELECT 1")
    assert spark.conf.get("spark.apportion.parallelism") == "-1"


def test_a_notebook_cell_shows_at_most_20_rows(shell: InteractiveShell) -> None:
    (rows, *_), _ = run_cell(shell, "%%apportion\nSELECT id FROM range(21)")
    assert rows.data["text/html"].count("<tr>") == 21
    assert "first 20 rows shown" in rows.data["text/html"]


def test_a_notebook_cell_shows_reasons_and_assigns_the_frame(
    shell: InteractiveShell, spark: SparkSession
) -> None:
    cell = f"%%apportion -o frame parallelism=2\n{GROUPED}"
    (_, reasons, *_), _ = run_cell(shell, cell)
    assert "parallelism is set to 2 (session setting)" in reasons.data["text/html"]
    assert GROUPED in reasons.data["text/html"]
    assert shell.user_ns["frame"].count() == 2


def test_an_error_in_a_notebook_is_one_message(shell: InteractiveShell) -> None:
    with capture_output() as captured:
        shell.run_cell("import apportion; apportion.Settings(parallelism=0)")
    assert "Traceback" not in captured.stdout
    assert "SettingError: parallelism is 0: allowed is 1 or more" in captured.stdout


def test_an_explanation_is_saved_by_its_extension(tmp_path: Path) -> None:
    explained = Explained("title", [], [])
    explained.save(tmp_path / "a.html")
    assert "<html" in (tmp_path / "a.html").read_text()
    with pytest.raises(
        apportion.ApportionError, match=r"must end in .html, .svg, .json, .mmd, .txt"
    ):
        explained.save("a.docx")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%apportion paralelism=2\nSELECT 1", "Did you mean parallelism?"),
        ("%%apportion\n-- nothing", "there is no SQL statement to run"),
        ("%%apportion -o frame\nSET a = 1", "the last statement is not a query"),
        ("%%apportion -o\nSELECT 1", "write the name of a variable"),
        ("%%apportion\nSELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_a_notebook_cell_with_an_error_raises(
    shell: InteractiveShell, cell: str, message: str
) -> None:
    with capture_output():
        result = shell.run_cell(cell)
    with pytest.raises(ApportionError, match=message.replace("?", r"\?")):
        result.raise_error()
