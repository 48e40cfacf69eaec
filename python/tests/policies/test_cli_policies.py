"""The output and the exit codes of `apportion policies`."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from apportion.cli.commands.policies import policies_command

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


def test_all_problems_of_a_rule_are_shown(folder: Path) -> None:
    (folder / "wrong.yaml").write_text(
        "rules: [{match: {usr: a}, settings: {paralelism: 8}, hints: RANGES(odd)}]"
    )
    result = _policies("check", "wrong.yaml")
    assert [line.split(": ", 2)[1] for line in result.stdout.splitlines()] == ["rule 1"] * 3
    assert result.stderr == "3 problems in 1 of 1 file\n"


def test_an_expression_that_only_spark_can_check_is_shown(folder: Path) -> None:
    (folder / "rare.yaml").write_text(GOOD.replace("table: sales.*", "sql: '(?<=a)b'"))
    result = _policies("check", "rare.yaml")
    assert result.exit_code == 0
    assert result.stdout == (
        "rare.yaml: rule 1: sql is '(?<=a)b'. Only Spark can check this regular expression\n"
    )
    assert result.stderr == "1 file, no other problems, 1 rule for Spark to check\n"
    assert "sql is (?<=a)b" in _policies("show", "rare.yaml").stdout


def test_a_file_that_cannot_be_read_exits_with_2(folder: Path) -> None:
    result = _policies("check", "broken.yaml", "wrong.yaml")
    assert result.exit_code == 2
    assert "wrong.yaml: rule 1" in result.stdout
    error, summary = result.stderr.splitlines()
    assert error.startswith("Error: broken.yaml: ")
    assert summary == "1 problem in 1 of 1 file"


def test_no_success_is_shown_if_no_file_can_be_read(folder: Path) -> None:
    result = _policies("check", "nofile.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Error: nofile.yaml: No such file or directory\n"


def test_show_lists_forced_rules_first(folder: Path) -> None:
    assert _policies("show", "good.yaml").stdout.splitlines() == [
        "rule 2 (nightly), forced",
        "  if user is *",
        "  set RANGES(even) on c",
        "rule 1",
        "  if user is ann or bob, and table is sales.*",
        "  set parallelism=8",
    ]


def test_show_writes_false_as_in_the_file(folder: Path) -> None:
    Path("off.yaml").write_text("rules: [{match: {user: ann}, settings: {enabled: false}}]")
    assert _policies("show", "off.yaml").stdout.splitlines()[-1] == "  set enabled=false"


@pytest.mark.parametrize("action", ["show", "check"])
def test_control_characters_and_line_ends_of_rules_are_not_printed(
    folder: Path, action: str
) -> None:
    hostile = '"a\\n::error::owned\\x1b]0;owned\\x07\\x9b"'
    rule = f"rules: [{{name: {hostile}, match: {{user: {hostile}}}, settings: {{parallelism: 8}}}}]"
    (folder / "hostile.yaml").write_text(rule)
    (folder / "wrong.yaml").write_text(rule.replace("8", hostile))
    for name in ("hostile.yaml", "wrong.yaml", "none\n::error::owned.yaml"):
        output = _policies(action, name).output
        assert not {"\x1b", "\x07", "\x9b"}.intersection(output)
        assert not any(line.startswith("::") for line in output.splitlines())
    assert "\ufffd]0;owned" in _policies("show", "hostile.yaml").stdout
