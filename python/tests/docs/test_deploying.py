"""docs/deploying.md: its commands, run as they stand, give Spark an Apportion that decides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from apportion import jars

from .pages import commands

QUERY = "SELECT id % 7 AS key, count(*) FROM range(0, 100, 1, 2) GROUP BY id % 7"
REASONS = "SELECT reason FROM apportion_decisions()"
PYTHON = f"""
spark.sql("{QUERY}").collect()
print(spark.sql("{REASONS}").collect())
"""
SCALA = f"""
spark.sql("{QUERY}").collect()
spark.sql("{REASONS}").collect().foreach(println)
"""
PROGRAM = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
{PYTHON}
"""
# Python takes a pipe for no shell, and makes no session, unless told.
ENVIRONMENT = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON_OPTS": "-i"}
HERE = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]


def command(program: str) -> list[str]:
    """Return the page's first command of a program."""
    first = next(
        words
        for name, words in commands()
        if name.startswith("deploying.md") and words[0] == program
    )
    return [word.replace("$(apportion jar)", str(jars.find())) for word in first]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "more", "stdin"),
    [
        ("spark-submit", [], ""),
        ("spark-sql", ["-e", f"{QUERY}; {REASONS};"], ""),
        ("spark-shell", [], SCALA),
        ("pyspark", [], PYTHON),
    ],
)
def test_the_program_decides(program: str, more: list[str], stdin: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    home = jars.spark_home()
    _, *options = command(program)
    run = subprocess.run(
        [home / "bin" / program, *HERE, *options, *more],
        cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT, "SPARK_HOME": str(home)},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "1 task: " in run.stdout
