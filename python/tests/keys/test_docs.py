"""docs/even-keys.md: its examples run, its commands are understood, its table is complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pyspark.sql import SparkSession

from apportion.cli import app
from apportion.cli.keys import EXAMPLES
from apportion.cli.statements import split
from apportion.keys.dealing import deal

PAGE = (Path(__file__).parents[3] / "docs" / "even-keys.md").read_text("utf-8")
COMMANDS = re.findall(r"^apportion keys (.*)$", PAGE, re.MULTILINE)
COMMANDS += re.findall(r"`apportion keys (.*?)`", EXAMPLES)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_exist(command: str) -> None:
    group: Any = typer.main.get_command(app)
    group.commands["keys"].make_context("keys", shlex.split(command))


def test_the_examples_run_in_order(spark: SparkSession) -> None:
    session = spark.newSession()
    results = {}
    for language, code in re.findall(r"```(sql|python)\n(.*?)```", PAGE, re.DOTALL):
        if language == "python":
            exec(code, {"spark": session})
        else:
            for statement in split(code):
                results[statement.text] = session.sql(statement.text).collect()
    [flink] = [rows for text, rows in results.items() if "flink_rebalance_keys" in text]
    assert [row.operator for row in flink] == [3, 3, 4, 4, 0, 4, 0, 4, 0, 1]
    assert [row.rebalanced for row in flink] == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    [grouped] = [rows for text, rows in results.items() if "GROUP BY surrogate, bucket" in text]
    assert {(row.bucket, row["items"]) for row in grouped} == {(k, 100) for k in range(10)}
    [tasks] = [rows for text, rows in results.items() if "even_task" in text]
    assert all(row.even_task == row.bucket % 16 for row in tasks)


def test_the_picture_is_right(spark: SparkSession) -> None:
    buckets = spark.range(10).selectExpr("CAST(id AS INT) AS bucket")
    rows = re.findall(r"^\| buckets by .*?` \|(.*)\|$", PAGE, re.MULTILINE)
    drawn = [
        [len(cell.split(",")) if cell.strip() else 0 for cell in row.split("|")] for row in rows
    ]
    dealt = deal(buckets, "bucket", 5)
    assert drawn == [dealt.hashed.values, dealt.even.values]


def test_every_function_is_on_the_page_as_it_says_itself(spark: SparkSession) -> None:
    calls = dict(re.findall(r"^\| `((\w+)\(.*?\))` \|", PAGE, re.MULTILINE))
    assert len(calls) == 8
    for call, name in calls.items():
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION {name}").collect()]
        assert f"Usage: {call} - " in "\n".join(lines)
