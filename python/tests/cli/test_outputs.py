"""Files that commands write: no input of them, and no file that another program wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import _COMMANDS, _command, app
from apportion.cli.support.outputs import POLICIES_MARK
from tests.streaming.histories import record

GOLDEN = Path(__file__).parents[1] / "eventlog/golden/spark-4.2.zstd"
OUTPUTS = ("--output", "--plot", "--policies")
# Commands with an option that names a file to write. Each runs without Spark up to its check.
COMMANDS = [
    ("advise log", "-o", "x.html"),
    ("advise log", "-o", "x.json"),
    ("advise log", "--policies", "x.yaml"),
    ("report log log", "-o", "x.json"),
    ("simulate log", "-o", "x.json"),
    ("simulate log", "--plot", "x.png"),
    ("simulate log", "--plot", "x.svg"),
    ("explain log", "-o", "x.html"),
    ("explain log", "-o", "x.svg"),
    ("streams stream.log", "-o", "x.json"),
]
# Formats without a place for a mark.
WITHOUT_MARK = [
    ("explain log", "-o", "x.txt"),
    ("explain log", "-o", "x.json"),
    ("explain log", "-o", "x.mmd"),
    ("advise log", "-o", "x.txt"),
    ("advise log", "--policies", "x.json"),
    ("streams stream.log", "-o", "x.txt"),
]
# These start Spark or run queries after the check.
STARTING = [
    ("explain query.sql", "-o", "x.html"),
    ("bench query.sql", "-o", "x.json"),
    ("bench query.sql", "--plot", "x.png"),
    ("bench query.sql --fresh", "-o", "x.json"),
    ("keys t --columns a --tasks 2 --tables tables", "--plot", "x.png"),
]
EVERY = [*COMMANDS, *WITHOUT_MARK, *STARTING]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with an event log, a log with a stream, SQL, and a table."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(GOLDEN, "log")
    journal = Path("stream.log/_apportion/journal.jsonl")
    journal.parent.mkdir(parents=True)
    journal.write_text("".join(json.dumps(record(n).to_json()) + "\n" for n in range(3)))
    Path("query.sql").write_text("SELECT 1")
    Path("tables").mkdir()
    Path("tables/t.csv").write_text("a\n1\n")
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(app, [part for word in words for part in word.split()])


def assert_refused(result: Result, *texts: str) -> None:
    assert (result.exit_code, result.stdout) == (2, "")
    for text in texts:
        assert text in result.stderr


@pytest.mark.parametrize(("command", "option", "file"), EVERY)
def test_a_file_of_another_program_is_kept(command: str, option: str, file: str) -> None:
    Path(file).write_text("rules: [{match: {user: ann}, settings: {parallelism: 8}}]\n")
    before = Path(file).read_bytes()
    name = {"-o": "--output"}.get(option, option)
    assert_refused(
        call(command, option, file),
        f"{name} {file} exists, and does not show that apportion {command.split()[0]} wrote it",
        "replace it with --force",
    )
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize(("command", "option", "file"), COMMANDS)
def test_a_file_that_the_command_wrote_is_replaced(command: str, option: str, file: str) -> None:
    for _ in range(2):
        result = call(command, option, file)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("command", "option", "file"), WITHOUT_MARK)
def test_force_replaces_a_file(command: str, option: str, file: str) -> None:
    assert call(command, option, file).exit_code == 0
    assert_refused(call(command, option, file), "replace it with --force")
    assert call(command, option, file, "--force").exit_code == 0


def test_an_empty_file_and_a_device_can_be_written() -> None:
    Path("x.txt").touch()
    assert call("explain log -o x.txt").exit_code == 0
    assert call("explain log -o /dev/null").exit_code == 0


def test_a_policy_file_with_own_changes_is_kept() -> None:
    assert call("advise log --policies x.yaml").exit_code == 0
    written = Path("x.yaml").read_text("utf-8")
    assert written.startswith(POLICIES_MARK)
    Path("x.yaml").write_text(written.removeprefix(POLICIES_MARK))
    assert_refused(call("advise log --policies x.yaml"), "--policies x.yaml exists")


def test_a_policy_file_with_own_lines_above_the_mark_is_kept() -> None:
    assert call("advise log --policies x.yaml").exit_code == 0
    changed = f"# Reviewed by Ann.\n{Path('x.yaml').read_text('utf-8')}"
    Path("x.yaml").write_text(changed)
    assert_refused(call("advise log --policies x.yaml"), "--policies x.yaml exists")
    assert Path("x.yaml").read_text() == changed


def test_results_of_a_benchmark_are_kept_by_other_commands() -> None:
    Path("x.json").write_text('{\n "format": "apportion bench 1"}')
    assert_refused(call("report log log -o x.json"), "does not show that apportion report wrote it")


@pytest.mark.parametrize(
    ("command", "option", "file", "other"),
    [
        ("explain log", "-o", "log", "log"),
        ("explain log", "-o", "./tables/../log", "log"),
        ("explain log", "-o", "link", "log"),
        ("explain link", "-o", "log", "link"),
        ("explain hard", "-o", "log", "hard"),
        ("explain app --logs logs", "-o", "logs/app", "logs/app"),
        ("explain query.sql --tables tables", "-o", "tables/t.csv", "tables/t.csv"),
        ("explain query.sql", "-o", "query.sql", "query.sql"),
        ("advise logs", "-o", "logs/app", "logs/app"),
        ("advise log", "--policies", "log", "log"),
        ("report log logs", "-o", "logs/app", "logs/app"),
        ("simulate log", "-o", "log", "log"),
        ("streams stream.log", "-o", "stream.log/x.txt", "stream.log"),
        ("bench query.json", "-o", "query.json", "query.json"),
        ("bench .", "-o", "link.json", "query.sql"),
        ("bench --from bench.svg", "--plot", "bench.svg", "bench.svg"),
        ("keys t --columns a --tasks 2 --tables tables", "--plot", "a.svg", "tables/t.csv"),
        ("advise log -o x.html", "--policies", "x.html", "x.html"),
        ("simulate log -o x.png", "--plot", "x.png", "x.png"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("force", ["", "--force"])
def test_no_input_and_no_other_output_is_replaced(
    command: str, option: str, file: str, other: str, force: str, folder: Path
) -> None:
    Path("link").symlink_to("log")
    Path("link.json").symlink_to("query.sql")
    Path("a.svg").symlink_to("tables/t.csv")
    os.link("log", "hard")
    shutil.copy("query.sql", "query.json")
    Path("bench.svg").write_text("{}")
    Path("logs").mkdir()
    shutil.copy("log", "logs/app")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = call(command, option, file, force)
    name = {"-o": "--output"}.get(option, option)
    shown = str(Path(file))
    relation = "is in" if shown.startswith(f"{other}/") else "is"
    assert_refused(result, f"{name} {shown} {relation} {other}, which apportion", "another file")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("command", ["explain", "advise", "simulate"])
def test_no_file_of_a_rolling_log_is_replaced(command: str, folder: Path) -> None:
    rolling = folder / "eventlog_v2_app"
    rolling.mkdir()
    shutil.copy("log", rolling / "events_1_app.zstd")
    for file in ("events_1_app.zstd", "new.txt"):
        result = call(command, str(rolling), "-o", str(rolling / file), "--force")
        assert_refused(result, f"is in {rolling}, which apportion {command} reads")
    assert [each.name for each in rolling.iterdir()] == ["events_1_app.zstd"]


def test_the_file_of_standard_input_is_not_replaced() -> None:
    before = Path("log").read_bytes()
    program = [sys.executable, "-m", "apportion", "explain", "/dev/stdin", "-o", "log"]
    with Path("log").open("rb") as stream:
        ran = subprocess.run(program, stdin=stream, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "--output log is /dev/stdin, which apportion explain reads" in ran.stderr
    assert Path("log").read_bytes() == before


@pytest.mark.parametrize("name", _COMMANDS)
def test_each_command_that_writes_a_file_has_the_option_force(name: str) -> None:
    options = {option for each in _command(name).params for option in each.opts}
    assert ("--force" in options) == bool(options.intersection(OUTPUTS))
    tested = {(command.split()[0], option) for command, option, _ in EVERY}
    tested = {(command, {"-o": "--output"}.get(option, option)) for command, option in tested}
    assert {(name, option) for option in options.intersection(OUTPUTS)} <= tested
