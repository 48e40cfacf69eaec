from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import app

GOLDEN = Path(__file__).parents[1] / "eventlog/golden"
LOGS = sorted(GOLDEN.glob("*.zstd"))
OLD, NEW = GOLDEN / "spark-3.5.zstd", GOLDEN / "spark-4.2.zstd"


def report(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


@pytest.mark.parametrize(("before", "after"), [*itertools.pairwise(LOGS)])
def test_golden_logs_of_two_versions_match_completely(before: Path, after: Path) -> None:
    content = json.loads(report(before, after, "--format", "json").stdout)
    assert len(content["queries"]) == 3
    assert content["before"]["unmatched"] == content["after"]["unmatched"] == []


def test_a_report_shows_totals_and_queries() -> None:
    result = report(OLD, NEW)
    assert result.exit_code == 0, result.stderr
    assert "Before: 1 log of golden, Spark 3.5.9, with decisions of Apportion." in result.stdout
    assert "3 queries compared" in result.stdout
    assert "query 2: one key with most rows" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_log_has_no_difference_to_itself() -> None:
    content = json.loads(report(NEW, NEW, "--format", "json").stdout)
    assert {query["wall_ratio"]["value"] for query in content["queries"]} == {1.0}
    assert {query["saved_core_seconds"] for query in content["queries"]} == {0.0}


def test_directories_are_compared_and_unreadable_logs_are_listed(tmp_path: Path) -> None:
    for side in ("before", "after"):
        (tmp_path / side).mkdir()
        for log in (OLD, NEW):
            (tmp_path / side / log.name).write_bytes(log.read_bytes())
    (tmp_path / "after/notes").write_text("no events\n")
    file = tmp_path / "report.txt"
    result = report(tmp_path / "before", tmp_path / "after", "--processes", "2", "-o", file)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "it has no event of Spark" in " ".join(result.stderr.split())
    shown = file.read_text("utf-8")
    assert "(2 and 2 runs)" in shown
    assert "1 log could not be read:" in shown


def test_one_of_several_logs_can_be_standard_input(tmp_path: Path) -> None:
    for log in (OLD, NEW):
        (tmp_path / log.name).write_bytes(log.read_bytes())
    arguments = ["report", "-", str(tmp_path), "--processes", "2", "--format", "json"]
    result = CliRunner().invoke(app, arguments, input=NEW.read_bytes())
    content = json.loads(result.stdout)
    assert content["before"]["logs"] == ["-"]
    assert len(content["after"]["logs"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none", NEW], "there is no event log at none"),
        ([NEW, __file__], "it has no event of Spark"),
        ([NEW, NEW, "--top", "0"], "greater than or equal to 1"),
        ([NEW], "Missing argument 'AFTER'"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(arguments: list[str | Path], message: str) -> None:
    result = report(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
