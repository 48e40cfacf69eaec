"""docs/explaining.md: its commands are understood, its example runs, its reasons are complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pyspark.sql import SparkSession

import apportion
from apportion.cli import app
from apportion.explaining.chains import Break

PAGE = (Path(__file__).parents[3] / "docs" / "explaining.md").read_text("utf-8")


@pytest.mark.parametrize("command", re.findall(r"^apportion explain (.*)$", PAGE, re.MULTILINE))
def test_the_options_exist(command: str) -> None:
    group: Any = typer.main.get_command(app)
    group.commands["explain"].make_context("explain", shlex.split(command))


def test_the_examples_run(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_frame, of_log = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(of_frame, {"apportion": apportion, "spark": spark})
    assert "HashAggregate: " in capsys.readouterr().out
    (tmp_path / "log").write_text('{"Event":"SparkListenerLogStart","Spark Version":"4.2.0"}')
    exec(of_log, {"log": tmp_path / "log"})
    assert capsys.readouterr().out == ""


def test_the_reasons_are_all_there_are() -> None:
    table = PAGE.split("| reason | what it means |\n| --- | --- |\n")[1]
    rows = [tuple(row.strip("| ").split(" | ")) for row in table.splitlines() if row]
    assert rows == [(why.value, why.explanation) for why in Break]
