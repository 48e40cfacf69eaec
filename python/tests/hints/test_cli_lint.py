"""The output and the exit codes of `apportion lint`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from apportion.cli.lint import lint_command

WRONG = "SELECT a,\n  (SELECT /*+ PARALELISM(8) */ b)\nFROM t\n"
MESSAGE = "unknown hint PARALELISM: Spark ignores it and only logs a warning"
CLEAN = "SELECT /*+ PARALLELISM(8) */ a FROM t\n"


def _lint(*arguments: str, stdin: str | bytes | None = None) -> Result:
    app = typer.Typer()
    app.command()(lint_command)
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with two SQL files to check and two files to skip."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "wrong.sql": WRONG,
        "sub/clean.sql": CLEAN,
        "sub/notes.txt": WRONG,
        ".hidden/wrong.sql": WRONG,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_clean_file_exits_with_0(folder: Path) -> None:
    result = _lint("sub/clean.sql")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 file, no findings\n"


def test_a_folder_with_findings_exits_with_1(folder: Path) -> None:
    result = _lint(".")
    assert result.exit_code == 1
    assert result.stdout == (
        f"wrong.sql:2:15: error APH201 {MESSAGE}\n"
        "  2 |   (SELECT /*+ PARALELISM(8) */ b)\n"
        "    |               ^^^^^^^^^^\n"
        "  = did you mean PARALLELISM?\n\n"
    )
    assert result.stderr == "1 finding in 1 of 2 files\n"


@pytest.mark.parametrize(
    ("sql", "line", "carets"),
    [
        ("SELECT\t/*+ FOO */ 1", "SELECT    /*+ FOO */ 1", "              ^^^"),
        ("SELECT '日本', (1", "SELECT '日本', (1", "               ^"),
        ("SELECT DISTINCT /*+ A\n*/ 1", "SELECT DISTINCT /*+ A", "                ^^^^^"),
        ("SELECT '[b]', (1", "SELECT '[b]', (1", "              ^"),
    ],
)
def test_carets_are_below_the_finding(sql: str, line: str, carets: str) -> None:
    result = _lint("-", stdin=sql)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:3] == [f"  1 | {line}", f"    | {carets}"]


def test_json_output(folder: Path) -> None:
    result = _lint("--format", "json", ".")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {
            "file": "wrong.sql",
            "line": 2,
            "column": 15,
            "code": "APH201",
            "message": MESSAGE,
            "suggestion": "did you mean PARALLELISM?",
            "severity": "error",
            "offset": 24,
            "length": 10,
        }
    ]
    assert _lint("--format", "json", "sub").stdout == "[]\n"


def test_github_annotations(folder: Path) -> None:
    Path("100%,a.sql").write_text("SELECT /*+ FOO(1) */ 1")
    result = _lint("--format", "github", "wrong.sql", "100%,a.sql")
    assert result.exit_code == 1
    assert result.stdout == (
        "::error file=wrong.sql,line=2,col=15,endColumn=25,title=APH201::"
        f"{MESSAGE} (did you mean PARALLELISM?)\n"
        "::warning file=100%25%2Ca.sql,line=1,col=12,endColumn=15,title=APH202::unknown hint FOO: "
        "Spark ignores it and only logs a warning, unless an extension defines it\n"
    )


def test_a_dash_reads_standard_input() -> None:
    assert _lint("-", stdin=CLEAN).exit_code == 0
    assert "<stdin>:2:15:" in _lint("-", stdin=WRONG).stdout


def test_a_byte_order_mark_is_skipped() -> None:
    assert "<stdin>:1:12:" in _lint("-", stdin=b"\xef\xbb\xbfSELECT /*+ FOO */ 1").stdout


def test_a_code_can_be_ignored(folder: Path) -> None:
    assert _lint("--ignore", "aph201", "--ignore", "APH202", ".").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.sql"], "cannot read nowhere.sql: No such file or directory"),
        (["sub", "nowhere.sql"], "cannot read nowhere.sql: No such file or directory"),
        (
            ["empty"],
            "empty contains no .sql files: name the files themselves, or another directory",
        ),
        (["latin.sql"], "cannot read latin.sql: byte 8 is not UTF-8. SQL files must be UTF-8"),
        (["--ignore", "APH20", "."], "unknown code APH20. Did you mean APH20"),
        (["--format", "xml", "."], "'xml' is not one of"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_and_unreadable_files_exit_with_2(
    folder: Path, arguments: list[str], message: str
) -> None:
    Path("empty").mkdir()
    Path("latin.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    result = _lint(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
