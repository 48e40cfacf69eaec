"""The output and the exit codes of `apportion policies`."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from apportion.policies.command import policies_command

GOOD = """rules:
  - {match: {user: [ann, bob], table: sales.*}, settings: {parallelism: 8}}
  - {name: nightly, match: {user: "*"}, blocks: {c: RANGES(even)}, force: true}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with policy files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "wrong.yaml").write_text(GOOD.replace("parallelism", "paralelism"))
    (tmp_path / "broken.yaml").write_text("rules: [")
    return tmp_path


def _policies(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(policies_command)
    return CliRunner().invoke(app, list(arguments))


def test_a_file_without_problems_exits_with_0(folder: Path) -> None:
    result = _policies("check", "good.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 file, no problems\n"


def test_a_wrong_rule_exits_with_1(folder: Path) -> None:
    result = _policies("check", "good.yaml", "wrong.yaml")
    assert result.exit_code == 1
    assert result.stdout == (
        "wrong.yaml: rule 1: unknown setting paralelism. Did you mean parallelism?\n"
    )
    assert result.stderr == "1 problem in 1 of 2 files\n"


def test_a_file_that_cannot_be_read_exits_with_2(folder: Path) -> None:
    result = _policies("check", "broken.yaml", "wrong.yaml")
    assert result.exit_code == 2
    assert "wrong.yaml: rule 1" in result.stdout
    assert "Error: broken.yaml: " in result.stderr


def test_show_lists_forced_rules_first(folder: Path) -> None:
    assert _policies("show", "good.yaml").stdout.splitlines() == [
        "rule 2 (nightly), forced",
        "  if user is *",
        "  set RANGES(even) on c",
        "rule 1",
        "  if user is ann or bob, and table is sales.*",
        "  set parallelism=8",
    ]
