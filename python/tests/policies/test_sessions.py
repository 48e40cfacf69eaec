"""A policy file changes decisions without a change of the SQL, on each kind of session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from apportion.policies import Policies, Rule
from tests.programs import without_spark

QUERY = "SELECT id % 10 AS k, count(*) FROM range(0, 1000, 1, 4) GROUP BY 1"
TAGGED = "SELECT id % 9 AS k, count(*) FROM range(0, 1000, 1, 4) GROUP BY 1"
PROGRAM = """
import json, sys
import apportion
from pyspark.sql import SparkSession
path, query, tagged = sys.argv[1:]
builder = {builder}.config("spark.ui.enabled", "false")
spark = apportion.configure(builder, policies=path).getOrCreate()
spark.sql(query).collect()
spark.{tag}("urgent")
spark.sql(tagged).collect()
print(json.dumps([
    [decision.tasks, decision.sources["parallelism"]] for decision in apportion.decisions(spark)
]))
"""


def decisions(folder: Path, builder: str, tag: str) -> list[list[object]]:
    """Run two queries, the second with a job tag, and return tasks and sources of decisions."""
    path = folder / "policies.yaml"
    rules = [
        Rule({"jobTag": "urgent"}, settings={"parallelism": 5}, name="urgent"),
        Rule({"sql": r"id % 10\b", "user": "*"}, hints="PARALLELISM(3)", name="by text"),
    ]
    Policies(rules).save(path)
    code = PROGRAM.format(builder=builder, tag=tag)
    finished = subprocess.run(
        [sys.executable, "-c", code, str(path), QUERY, TAGGED],
        # PySpark then starts the Connect server on a free port, so that tests can run side by side.
        env=without_spark(SPARK_TESTING="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    found: list[list[object]] = json.loads(finished.stdout.splitlines()[-1])
    return found


RULED = [[3, "policy file, rule 2 (by text)"], [5, "policy file, rule 1 (urgent)"]]


@pytest.mark.slow
def test_rules_apply_on_a_classic_session(tmp_path: Path) -> None:
    builder = 'SparkSession.builder.master("local[2]")'
    assert decisions(tmp_path, builder, "sparkContext.addJobTag") == RULED


@pytest.mark.usefixtures("connect")
def test_rules_apply_on_spark_connect(tmp_path: Path) -> None:
    assert decisions(tmp_path, 'SparkSession.builder.remote("local[2]")', "addTag") == RULED
