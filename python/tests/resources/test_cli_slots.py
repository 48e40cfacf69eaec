"""`apportion slots`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from apportion.cli import app

QUERY = "SELECT id % 10 AS k, count(*) FROM range(0, 1000, 1, 4) GROUP BY 1"


@pytest.fixture
def query(tmp_path: Path) -> Path:
    file = tmp_path / "query.sql"
    file.write_text(f"{QUERY};\nSELECT 1", "utf-8")
    return file


@pytest.mark.usefixtures("spark")
def test_slots_prints_a_table_for_each_query(query: Path) -> None:
    shown = CliRunner().invoke(app, ["slots", str(query), "--slots", "3"])
    assert shown.exit_code == 0, shown.output
    assert "0 (shuffle)" in shown.stdout
    assert "1 (result)" in shown.stdout
    assert shown.stdout.count("Slots (min / target / max):") == 2
    assert re.search(r"Peak concurrency: \d+ tasks\. 3 slots available\.", shown.stdout)


@pytest.mark.usefixtures("spark")
def test_slots_prints_json(query: Path) -> None:
    shown = CliRunner().invoke(app, ["slots", str(query), "--format", "json"])
    first, second = json.loads(shown.stdout)
    assert first["statement"] == QUERY
    assert first["stages"][0]["requirement"] == {"min": 1, "target": 4, "max": 4}
    assert len(second["stages"]) == 1


@pytest.mark.usefixtures("spark")
def test_a_failed_query_is_a_message_without_a_traceback(query: Path) -> None:
    query.write_text("SELECT nothing FROM nowhere", "utf-8")
    shown = CliRunner().invoke(app, ["slots", str(query)])
    assert shown.exit_code == 2
    assert "nowhere" in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("command", ["slots", "explain"])
@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT 1;\n\nSELECT\n  nothing FROM range(1)", "; line 4 pos 2"),
        ("SELECT 1;\n\nSELECT (\n)", "(line 4, pos 0)"),
    ],
)
def test_an_error_has_its_statement_and_its_place_in_the_file(
    query: Path, command: str, sql: str, place: str
) -> None:
    query.write_text(sql, "utf-8")
    shown = CliRunner().invoke(app, [command, str(query)])
    assert shown.exit_code == 1
    assert place in shown.stderr
    assert "Statement 2 of 2 (line 3) failed" in shown.stderr


@pytest.mark.usefixtures("spark")
def test_a_deadline_shows_the_plan_over_time(query: Path, spark: SparkSession) -> None:
    query.write_text(QUERY, "utf-8")
    spark.sql(QUERY.replace("SELECT", "SELECT /*+ FINISH_WITHIN('1 h') */", 1)).collect()
    jvm: Any = spark._jsc
    jvm.sc().listenerBus().waitUntilEmpty()
    shown = CliRunner().invoke(app, ["slots", str(query), "--finish-within", "10 min"])
    assert shown.exit_code == 0, shown.output
    assert "Deadline 10.0 min: with 1 slot, the query ends after" in shown.stdout
    assert "(by earlier runs)" in shown.stdout


@pytest.mark.usefixtures("spark")
def test_a_wrong_deadline_is_a_message(query: Path) -> None:
    shown = CliRunner().invoke(app, ["slots", str(query), "--finish-within", "soon"])
    assert shown.exit_code == 2
    assert "finish_within is 'soon': allowed is a time" in shown.stderr
