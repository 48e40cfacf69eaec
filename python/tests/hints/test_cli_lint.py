"""The output and the exit codes of `apportion lint`."""

from __future__ import annotations

import json
import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from apportion.cli import app
from apportion.cli.commands.lint import lint_command
from apportion.cli.support.sources import read_source
from apportion.errors import ApportionError
from apportion.hints import CODES
from apportion.sql.files import find_project_files

WRONG = "SELECT a,\n  (SELECT /*+ PARALELISM(8) */ b)\nFROM t\n"
MESSAGE = "unknown hint PARALELISM: Spark ignores it and only logs a warning"
CLEAN = "SELECT /*+ PARALLELISM(8) */ a FROM t\n"


def _lint(*arguments: str, stdin: str | bytes | None = None) -> Result:
    single = typer.Typer()
    single.command()(lint_command)
    return CliRunner().invoke(single, list(arguments), input=stdin)


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
        ("SELECT '日本' /*+ A */", "SELECT '日本' /*+ A */", "              ^^^^^^^^"),
        ("SELECT DISTINCT /*+ A\n*/ 1", "SELECT DISTINCT /*+ A", "                ^^^^^"),
        ("SELECT '[b]' /*+ A */", "SELECT '[b]' /*+ A */", "             ^^^^^^^^"),
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
            "statement": 1,
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


# YAML has more types than text, which names and types of columns are.
@pytest.mark.parametrize("schema", ["t: {a: int}", "t: {a: int, on: int}", "t: {a: !!int x}"])
def test_a_schema_finds_more(folder: Path, schema: str) -> None:
    Path("tables.yml").write_text(schema)
    result = _lint("sub/clean.sql", "--schema", "tables.yml")
    assert (result.exit_code, "warning APH315" in result.stdout) == (1, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- t", "the schema tables.yml must have the form {table: {column: type}}"),
        ("t: [", "cannot read the schema tables.yml: while parsing"),
        ("t: {a: int}\nu: {v: {w: int}}", "tables.yml: the schema must have the form"),
        ("t: {a: int}\nu:", "form {table: {column: type}}: u has no columns"),
        ("d: {t: {a: int}, u: {}}", "form {table: {column: type}}: d.u has no columns"),
    ],
)
def test_a_wrong_schema_is_wrong_usage(folder: Path, content: str, message: str) -> None:
    Path("tables.yml").write_text(content)
    result = _lint("sub/clean.sql", "--schema", "tables.yml")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_an_unreadable_file_does_not_end_the_run(folder: Path) -> None:
    Path("a.sql").write_bytes("SELECT 'é'".encode("latin-1"))
    result = _lint(".", "nowhere.sql")
    assert result.exit_code == 2
    assert result.stdout.startswith("wrong.sql:2:15: error APH201")
    assert result.stderr == (
        "1 finding in 1 of 2 files\n"
        "Error: cannot read a.sql: byte 8 is not UTF-8. SQL files must be UTF-8\n"
        "Error: cannot read nowhere.sql: No such file or directory\n"
    )


PROJECT = {
    "models/orders.sql": "{{ config(materialized='table') }}\n" + WRONG,
    "macros/sum.sql": "{% macro s(a) %}(SELECT /*+ RANGES(even) */ sum({{ a }})){% endmacro %}",
    "snapshots/s.sql": "{% snapshot s %}SELECT 1{% endsnapshot %}",
    "target/compiled/shop/models/orders.sql": WRONG,
    "target/run/shop/models/orders.sql": WRONG,
    "dbt_packages/other/models/orders.sql": WRONG,
}


@pytest.mark.parametrize(
    ("settings", "checked"),
    [
        ("name: shop\n", {"models", "macros", "snapshots", "target"}),
        ("model-paths: ['m1', \"m2\"]  # two\n", {"m1", "m2", "macros", "snapshots", "target"}),
        ("model-paths:\n  - m1  # one\nname: shop\n", {"m1", "macros", "snapshots", "target"}),
        ("target-path: out\n", {"models", "macros", "snapshots"}),
        ("model-paths:  # two\n- m1\n- m2\n", {"m1", "m2", "macros", "snapshots", "target"}),
        ("'model-paths': [m1]\n", {"m1", "macros", "snapshots", "target"}),
        ("target-path: \"{{ env_var('OUT') }}\"\n", {"models", "macros", "snapshots", "target"}),
        ("- a list\n", {"models", "macros", "snapshots", "target"}),
    ],
)  # fmt: skip
def test_a_dbt_project_is_checked(tmp_path: Path, settings: str, checked: set[str]) -> None:
    files = {**PROJECT, "m1/a.sql": CLEAN, "m2/b.sql": CLEAN, "dbt_project.yml": settings}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = find_project_files(tmp_path)
    assert found is not None
    assert {file.relative_to(tmp_path).parts[0] for file in found} == checked
    assert not any("run" in file.parts or "dbt_packages" in file.parts for file in found)
    findings = json.loads(_lint(str(tmp_path), "--format", "json").stdout)
    orders = [file for file in found if file.name == "orders.sql"]
    assert [finding["file"] for finding in findings] == [str(file) for file in orders]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("model-paths: [../other]", "model-paths has the folder ../other, which is outside of the"),
        ("target-path: {tmp}", "target-path has the folder {tmp}/compiled, which is outside of"),
        ("macro-paths: [link]", "macro-paths has the folder link, which is outside of the project"),
        ("model-paths: [", "dbt_project.yml is not YAML: while parsing a flow node"),
        ("a: " + "[" * 5000, "dbt_project.yml is not YAML: "),
    ],
    ids=["above", "absolute", "link", "broken", "deep"],
)
def test_a_wrong_dbt_project_is_wrong_usage(tmp_path: Path, settings: str, message: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/secret.sql").write_text(WRONG)
    project = tmp_path / "shop"
    project.mkdir()
    (project / "link").symlink_to(tmp_path / "other")
    (project / "dbt_project.yml").write_text(settings.replace("{tmp}", str(tmp_path)))
    result = CliRunner().invoke(app, ["lint", str(project)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message.replace("{tmp}", str(tmp_path)) in " ".join(result.stderr.split())


def test_control_characters_and_line_ends_of_names_are_not_printed(tmp_path: Path) -> None:
    hostile = tmp_path / "a\n::error::owned\x1b]0;owned\x07.sql"
    hostile.write_text("SELECT /*+ FOO('\x1b[2J') */ '\x1b]0;owned\x07', '\x9b' /*+ BAR */")
    latin = tmp_path / "b\n::error::owned.sql"
    latin.write_bytes(b"\xe9")
    result = _lint(str(tmp_path))
    assert result.exit_code == 2
    assert "\ufffd]0;owned\ufffd', '\ufffd'" in result.stdout
    assert not {"\x1b", "\x07", "\x9b"}.intersection(result.output)
    assert not any(line.startswith("::") for line in result.output.splitlines())
    github = _lint("--format", "github", str(hostile)).stdout
    assert not {"\x1b", "\x07", "\x9b"}.intersection(github)


def test_the_excerpt_of_a_long_line_is_short() -> None:
    sql = "SELECT " + "a, " * 20_000 + "/*+ FOO */ b" + ", c" * 20_000
    result = _lint("-", stdin=sql)
    assert result.exit_code == 1
    _, line, carets, *_ = result.stdout.splitlines()
    assert len(result.stdout) < 2000
    assert line[carets.index("^") :].startswith("/*+ FOO */ b, c")
    assert (line[6], line[-1]) == ("…", "…")


def test_an_empty_dbt_project_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    result = _lint(str(tmp_path))
    assert result.exit_code == 2
    assert "has no SQL files in the folders that dbt_project.yml names" in result.stderr


def test_sarif_has_the_bytes_of_a_name_that_is_not_utf_8(folder: Path) -> None:
    name = os.fsdecode(b"\xff.sql")
    Path(name).write_text(WRONG)
    (run,) = json.loads(_lint("--format", "sarif", name).stdout)["runs"]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "%FF.sql"


def test_a_file_that_is_named_twice_is_checked_once(folder: Path) -> None:
    assert "1 finding in 1 of 1 file" in _lint("wrong.sql", "wrong.sql").stderr


def test_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ApportionError, match="cannot read <stdin>: it is closed"):
        read_source("-")


def test_sarif_output(folder: Path) -> None:
    Path("a b.sql").write_text("SELECT '\U0001f600', /*+ FOO(\n1) */ 1")
    Path("latin.sql").write_bytes(b"\xe9")
    result = _lint("--format", "sarif", ".")
    assert result.exit_code == 2
    log = json.loads(result.stdout)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(CODES)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert [result["ruleId"] for result in run["results"]] == ["APH101", "APH202", "APH201"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "a%20b.sql", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1, "startColumn": 13, "endLine": 2, "endColumn": 6},
    }
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[each["ruleIndex"]]["id"] == each["ruleId"] for each in run["results"])


def test_the_pre_commit_hook_runs_an_installed_command() -> None:
    hook = (Path(__file__).parents[3] / ".pre-commit-hooks.yaml").read_text("utf-8")
    (script,) = entry_points(group="console_scripts", name="apportion")
    assert script.value == "apportion.cli:app"
    assert "entry: apportion lint\n" in hook
    assert "language: system\n" in hook
