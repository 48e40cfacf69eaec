"""docs/simulating.md: its commands are understood, its example runs, its tables are complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from apportion import eventlog
from apportion.cli import app
from apportion.cli.simulate import EXAMPLES
from apportion.simulate import simulate
from apportion.simulate.report import scenarios_table

PAGE = (Path(__file__).parents[3] / "docs" / "simulating.md").read_text("utf-8")
COMMANDS = re.findall(r"^apportion simulate (.*)$", PAGE, re.MULTILINE)
COMMANDS += re.findall(r"`apportion simulate (.*?)`", EXAMPLES)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_exist(command: str) -> None:
    group: Any = typer.main.get_command(app)
    group.commands["simulate"].make_context("simulate", shlex.split(command))


def test_the_example_runs(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {"log": log})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "logged", "replay", "wide",
    ]  # fmt: skip


def test_every_row_and_column_is_explained(log: Path) -> None:
    explained = re.findall(r"^\| `?(.*?)`? \|", PAGE, re.MULTILINE)
    _, *columns = [
        str(each.header) for each in scenarios_table(simulate(eventlog.read(log), [])).columns
    ]
    for name in ["logged", "replay", "set", "spark", *columns]:
        assert name in explained
