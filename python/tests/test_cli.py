from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import SparkStageInfo
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner, Result

from apportion._spark import jars
from apportion._util.units import size_text
from apportion.cli import app
from apportion.cli.commands import demo
from apportion.cli.support import console
from apportion.cli.support.progress import _state
from apportion.cli.support.sources import errors_in_file, in_file
from apportion.errors import QueryError
from apportion.session import confs
from apportion.settings import registry
from apportion.sql.statements import split

GROUPED = "SELECT city, count(*) AS n FROM people GROUP BY city ORDER BY city"


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A directory of tables, with the one table `people`."""
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "people.csv").write_text("name,city\nAda,London\nAlan,\nGrace,New York\nKay,London\n")
    return folder


@pytest.fixture
def sql(tmp_path: Path) -> Path:
    path = tmp_path / "query.sql"
    path.write_text(f"-- people by city\n{GROUPED};\n")
    return path


def call(*arguments: str | Path, stdin: str = "") -> Result:
    """Call the command line in this process, as if on a wide terminal without colours."""
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], input=stdin, env={"COLUMNS": "160"}
    )


def flat(text: str) -> str:
    """Return the text without box drawing and line breaks."""
    return " ".join(re.sub(r"[\u2500-\u257f]", " ", text).split())


# Without Spark


def test_help_has_examples() -> None:
    result = call("--help")
    assert result.exit_code == 0
    for example in ("apportion demo", "apportion run query.sql --tables data/ --compare", "--set"):
        assert example in flat(result.stdout)


def test_help_fits_fifty_lines_and_begins_with_five_commands() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}, terminal_width=80).stdout
    assert len(shown.splitlines()) <= 50
    first = shown.split("Start here")[1].split("╰")[0]
    assert re.findall(r"^│ (\w+)", first, re.MULTILINE) == [
        "run",
        "explain",
        "advise",
        "lint",
        "doctor",
    ]


def test_the_settings_command_lists_all_settings() -> None:
    result = call("settings")
    assert result.exit_code == 0
    for keyword, setting in registry().items():
        assert keyword in result.stdout
        assert setting.key in result.stdout
        assert setting.category in result.stdout
    assert "1 MiB" in result.stdout
    assert "5 min" in result.stdout


def test_the_settings_command_takes_a_part_of_a_name() -> None:
    shown = call("settings", "Volume").stdout
    assert "data_volume_per_task" in shown
    assert "broadcast_ratio" not in shown
    listed = json.loads(call("settings", "volume", "--format", "json").stdout)
    assert listed[0]["keyword"] == "data_volume_per_task"
    unknown = call("settings", "paralelism")
    assert (unknown.exit_code, "Did you mean parallelism?" in unknown.stderr) == (2, True)


def test_the_settings_command_fits_a_terminal_of_80_columns() -> None:
    shown = CliRunner().invoke(app, ["settings"], env={"COLUMNS": "80"}, terminal_width=80).stdout
    assert "…" not in shown


@pytest.mark.parametrize("width", [80, 160])
def test_long_text_is_in_its_row_or_below_it(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=text, width=width))
    columns = ["Read by", "Input", "Shuffle partitions", "Tasks", "Largest task", "Why"]
    cells = ("HashAggregate", "10.5 MiB", "200", "16", "1.5 MiB")
    console.print_rows(columns, [(*cells, "16 tasks: because " * 5)], right=range(1, 5))
    shown = text.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert flat(shown).count("16 tasks: because") >= 3
    assert ("\n  16 tasks: because" in shown) is (width == 80)


def test_a_failed_command_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("old")

    def fail_late() -> None:
        with console.writing(file) as opened:
            opened.print("new")
            raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        fail_late()
    assert file.read_text() == "old"
    with console.writing(file) as opened:
        opened.print("new")
    assert file.read_text() == "new\n"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("sql", "number", "message", "moved"),
    [
        ("SELECT 1;\nSELECT x", 1, "no x; line 1 pos 7", "no x; line 2 pos 7"),
        ("SELECT 1; SELECT x", 1, "no x (line 1, pos 7)", "no x (line 1, pos 17)"),
        ("SELECT 1", 0, "no place", "no place"),
    ],
)
def test_errors_have_the_place_in_the_file(sql: str, number: int, message: str, moved: str) -> None:
    statement = split(sql)[number]
    assert str(in_file(QueryError(message), statement, "")) == moved
    named = str(in_file(QueryError(message), statement, "Statement 2 of 2"))
    assert named == f"{moved}\nStatement 2 of 2 (line {statement.line}) failed"


def test_a_stopped_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jars, "find", stop)
    result = call("jar")
    assert (result.exit_code, result.stderr) == (
        130,
        "Error: stopped `apportion jar`. Run the same command again to start over\n",
    )


def test_the_jar_command_prints_the_path_of_the_jar() -> None:
    result = call("jar")
    assert (result.exit_code, result.stdout) == (0, f"{jars.find()}\n")


def test_the_version_option_prints_the_version() -> None:
    assert re.fullmatch(r"apportion \d+\.\d+\.\d+\n", call("--version").stdout)


def test_an_error_before_the_first_statement_names_none() -> None:
    with (
        pytest.raises(QueryError, match=r"^no session$"),
        errors_in_file(split("SELECT 1; SELECT 2")),
    ):
        raise QueryError("no session")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rum"], "No such command 'rum'"),
        (["run"], "Missing argument"),
        (["run", "{folder}/quary.sql"], "there is no file {folder}/quary.sql. Did you mean query"),
        (["run", "{folder}/none/x.sql"], "there is no file {folder}/none/x.sql."),
        (["run", "{folder}"], "{folder} is a directory"),
        (["run", "{sql}", "--tables", "{folder}/none"], "there is no directory {folder}/none"),
        (["run", "{sql}", "--tables", "{folder}"], "no parquet, csv or json files or folders in"),
        (["run", "{sql}", "--set", "min_paralelism=4"], "Did you mean min_parallelism?"),
        (["run", "{sql}", "--set", "parallelism=0"], "parallelism is 0: allowed is 1 or more"),
        (["run", "{sql}", "--set", "parallelism"], "'parallelism' has no value: write NAME=VALUE"),
        (["run", "{sql}", "--format", "xml"], "'xml' is not one of 'text', 'json'"),
        (["run", "-"], "there is no SQL statement to run"),
        (["demo", "--scale", "0"], "scale is 0: allowed is above 0, up to 100,000"),
        (["demo", "--scale", "1e9"], "scale is 1e+09: allowed is above 0, up to 100,000"),
        (["demo", "--scale", "nan"], "scale is nan: allowed is above 0, up to 100,000"),
        (
            ["demo", "--scale", "99999", "--data", "{folder}"],
            "generated tables need about 54.6 TiB, and {folder} has",
        ),
        (["demo", "--data", "{sql}/x"], "cannot create {sql}/x for generated tables: Not a dir"),
        (["demo", "--queries", "3,23"], "--queries 3,23: write numbers from 1 to 22"),
        (["demo", "--queries", "all"], "--queries all: write numbers from 1 to 22"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_a_message(
    sql: Path, arguments: list[str], message: str
) -> None:
    names = {"sql": sql, "folder": sql.parent}
    result = call(*(argument.format(**names) for argument in arguments))
    assert result.exit_code == 2
    assert message.format(**names) in flat(result.stderr)
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit), result.exception


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1 << 26, "64 MiB"), (2**63, "8 EiB"),
        (1024**2 - 1, "1 MiB"), (1024**2 - 100, "1023.9 KiB"), (1024**3 - 1, "1 GiB"),
    ],
)  # fmt: skip
def test_sizes_are_shown_with_binary_units(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--master", "local[x]"], "Spark did not start: "),
        (["--set", "spark.driver.cores=many"], "Driver cores must be a positive number"),
    ],
)
def test_an_invalid_spark_conf_is_one_message(
    sql: Path, arguments: list[str], message: str
) -> None:
    command = [sys.executable, "-m", "apportion", "run", str(sql), *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert message in finished.stderr
    assert "Traceback" not in finished.stderr


def stage(number: int, tasks: int, completed: int) -> SparkStageInfo:
    return SparkStageInfo(number, 0, "", tasks, tasks - completed, completed, 0)


@pytest.mark.parametrize(
    ("running", "description", "completed", "total"),
    [
        ([], "Query 1", 0, None),
        ([stage(3, 8, 2)], "Query 1: stage 3", 2, 8),
        ([stage(3, 8, 2), stage(4, 1, 0)], "Query 1: stage 3, 4", 2, 9),
    ],
)
def test_progress_counts_the_tasks_of_running_stages(
    running: list[SparkStageInfo], description: str, completed: int, total: int | None
) -> None:
    expected = {"description": description, "completed": completed, "total": total}
    assert _state("Query 1", running) == expected


LOG = Path(__file__).parent / "eventlog/golden/spark-4.2.zstd"


@pytest.mark.parametrize(
    ("command", "name", "start"),
    [
        ("explain", "a.html", "<!doctype html>"),
        ("explain", "a.HTML", "<!doctype html>"),
        ("explain", "a.json", "["),
        ("explain", "a.mmd", "flowchart"),
        ("explain", "a.log", "Queries, the slowest"),
        ("explain --format json", "a.html", "["),
        ("advise", "a.html", "<!doctype html>"),
        ("simulate", "a.json", "{"),
        ("simulate", "a.txt", "Makespan"),
        ("report {log}", "a.json", "{"),
    ],
)
def test_the_ending_of_a_file_chooses_the_format(
    command: str, name: str, start: str, tmp_path: Path
) -> None:
    name_of_command, *options = command.format(log=LOG).split()
    result = call(name_of_command, *options, LOG, "-o", tmp_path / name)
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / name).read_text().lstrip().startswith(start)


@pytest.mark.parametrize("command", ["simulate", "report {log}"])
def test_the_ending_of_another_format_is_refused(command: str, tmp_path: Path) -> None:
    result = call(*command.format(log=LOG).split(), LOG, "-o", tmp_path / "a.html")
    assert result.exit_code == 2
    assert f"--output {tmp_path}/a.html: the name must end in .json or .txt" in flat(result.stderr)
    assert list(tmp_path.iterdir()) == []


# On the session of the tests


@pytest.mark.usefixtures("spark")
class TestRun:
    def test_run_prints_rows_and_decisions(self, sql: Path, tables: Path) -> None:
        result = call("run", sql, "--tables", tables, "--rows", "2")
        assert result.exit_code == 0, result.stderr
        text = flat(result.stdout)
        assert "-- people by city" in text
        assert "city n NULL 1 London 2 3 rows in" in text
        assert "first 2 shown" in text
        assert "New York" not in text
        assert re.search("HashAggregate .* 1 task: ", text)

    def test_run_reads_several_statements_from_standard_input(self) -> None:
        result = call("run", "-", stdin="SELECT ';' AS semicolon; SELECT 2 AS two")
        assert result.exit_code == 0, result.stderr
        assert "semicolon ; 1 row in" in flat(result.stdout)
        assert "two 2 1 row in" in flat(result.stdout)
        assert "No decisions" in flat(result.stdout)

    def test_run_prints_json(self, sql: Path, tables: Path) -> None:
        result = call("run", sql, "--tables", tables, "--rows", "1", "--format", "json")
        assert result.exit_code == 0, result.stderr
        [report] = json.loads(result.stdout)
        assert report["statement"] == f"-- people by city\n{GROUPED}"
        assert report["columns"] == ["city", "n"]
        assert (report["rows"], report["row_count"]) == ([[None, 1]], 3)
        scan, aggregate, *_ = report["decisions"]
        assert (scan["operator"], scan["layout"]) == ("Scan csv", "files")
        assert aggregate["operator"] == "HashAggregate"
        assert aggregate["ranges"] == [[0, aggregate["subpartitions"]]]
        assert report["seconds"] > 0
        assert "equal" not in report

    def test_json_of_rows_is_valid_for_nan_and_infinity(self) -> None:
        values = "map(1.5, 'x', 2.5, ':key:'), double('NaN'), -double('Infinity')"
        result = call("run", "-", "--format", "json", stdin=f"SELECT {values}; SELECT nothing")
        assert result.exit_code == 1
        assert "nothing" in result.stderr
        [report] = json.loads(result.stdout)
        assert report["rows"] == [[{"1.5": "x", "2.5": ":key:"}, "nan", "-inf"]]

    def test_text_is_shown_without_interpreting_markup(self) -> None:
        result = call("run", "-", stdin="SELECT 'urn:id:5 [/x]' AS `:key: [b]`")
        assert ":key: [b] urn:id:5 [/x] 1 row" in flat(result.stdout)

    def test_a_file_with_byte_order_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        (tmp_path / "windows.sql").write_bytes(b"\xef\xbb\xbfSELECT 1 AS one;\r\n")
        result = call("run", tmp_path / "windows.sql", "--compare")
        assert "Results are equal." in result.stdout, result.stderr

    def test_json_of_rows_has_every_sql_type(self) -> None:
        values = (
            "DATE'2026-01-02', 1.50, X'00ff', NULL, map('a', array(1)), named_struct('b', 2.5D)"
        )
        result = call("run", "-", "--format", "json", stdin=f"SELECT {values}")
        [report] = json.loads(result.stdout)
        assert report["rows"] == [["2026-01-02", "1.50", "AP8=", None, {"a": [1]}, [2.5]]]

    def test_compare_shows_spark_and_apportion_side_by_side(self, sql: Path, tables: Path) -> None:
        result = call("run", sql, "--tables", tables, "--compare")
        assert result.exit_code == 0, result.stderr
        assert re.search("Spark Apportion Tasks .* Largest task .* Time", flat(result.stdout))
        assert "Results are equal." in result.stdout

    def test_compare_in_json(self, sql: Path, tables: Path) -> None:
        result = call("run", sql, "--tables", tables, "--compare", "--format", "json")
        [report] = json.loads(result.stdout)
        assert report["equal"] is True
        assert report["spark"].keys() == {"seconds", "tasks", "largest_task_bytes"}

    def test_compare_exits_with_1_if_results_differ(self) -> None:
        result = call("run", "-", "--compare", stdin="SELECT uuid()")
        assert result.exit_code == 1
        assert "Results differ." in result.stdout
        assert "the results with and without Apportion differ" in result.stderr

    def test_compare_runs_a_statement_that_writes_once(self, tmp_path: Path) -> None:
        folder = tmp_path / "written"
        stdin = f"INSERT OVERWRITE DIRECTORY '{folder}' USING json SELECT 1 AS a"
        result = call("run", "-", "--compare", stdin=stdin)
        assert result.exit_code == 0, result.stderr
        assert "Results are" not in result.stdout
        assert len(list(folder.glob("*.json"))) == 1

    def test_progress_is_shown_on_a_terminal_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        screen = io.StringIO()
        monkeypatch.setattr(
            "apportion.cli.support.progress.err", Console(file=screen, force_terminal=True)
        )
        result = call("run", "-", stdin="SELECT 1; SELECT '[x]'")
        assert result.exit_code == 0
        assert "[x]" in result.stdout
        for shown in ("Starting Spark", "Statement 1 of 2", "Statement 2 of 2"):
            assert shown in screen.getvalue()
            assert shown not in result.stdout

    @pytest.mark.parametrize(
        ("statement", "code", "message"),
        [
            ("SELECT * FROM poeple", 2, "cannot be found. Did you mean people? Tables: people"),
            ("SELECT * FROM x.y", 2, "`y` cannot be found. Tables: people"),
            ("SELECT nam FROM people", 1, "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
            ("SELEC 1", 1, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'"),
            ("SELECT 1 / (id - id) FROM range(3)", 1, "[DIVIDE_BY_ZERO] Division by zero"),
            ("SELECT raise_error('no luck')", 1, "no luck"),
            ("SET spark.apportion.mode = passive", 1, "passive"),
        ],
    )  # fmt: skip
    def test_a_failed_query_is_a_short_message(
        self, tables: Path, statement: str, code: int, message: str
    ) -> None:
        result = call("run", "-", "--tables", tables, stdin=f"{statement};")
        assert result.exit_code == code
        assert message in flat(result.stderr)
        # The message has no plan and no stack.
        assert not re.search(r"'Project|\bat org\.apache|Traceback", result.stderr)
        assert result.stdout == ""

    def test_wrong_hints_are_noted_and_correct_ones_are_not(self, tmp_path: Path) -> None:
        file = tmp_path / "hinted.sql"
        file.write_text("SELECT /*+ PARALLELISM(2) */ 1;\nSELECT /*+ PARALELISM(8) */ 2")
        result = call("run", file)
        assert result.exit_code == 0
        unknown = "unknown hint PARALELISM: Spark ignores it and only logs a warning"
        assert result.stderr == f"{file}:2:12: error APH201 {unknown} (did you mean PARALLELISM?)\n"

    def test_demo_compares_queries_with_and_without_apportion(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        few_rows = demo._MANY_MAP_TASKS.replace("1000000", "20000")
        monkeypatch.setattr(demo, "_MANY_MAP_TASKS", few_rows)
        with confs(spark, {"spark.sql.shuffle.partitions": "16"}):
            result = call("demo", "--scale", "0.001", "--queries", "1", "--data", tmp_path)
        assert result.exit_code == 0, result.stderr
        text = flat(result.stdout)
        for query in ("100 map tasks", "skewed join", "TPC-H 1"):
            times = r"[\d.]+ → [\d.]+ s [\d.]+ \d+ → \d+ .* [\d,]+ → [\d,]+ equal"
            assert re.search(f" {query} {times}", text)
        assert re.search(r"(Faster with Apportion|Slower|No clear difference): .*\.", text)
        assert f"apportion run - --tables {tmp_path}/tpch-sf0.001 --compare" in text


# In a process that starts Spark


def test_run_in_a_process_passes_settings_and_keeps_standard_error_empty(
    sql: Path, tables: Path
) -> None:
    finished = script(
        "run", sql, "--tables", tables, "--format", "json", "--master", "local[1]",
        "--set", "parallelism=3", "--set", "spark.sql.adaptive.enabled=true",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    decision = json.loads(finished.stdout)[0]["decisions"][-1]
    assert (decision["subpartitions"], decision["parallelism"]) == (3, 3)
    assert finished.stderr == ""


def test_a_spark_that_does_not_start_is_one_message(sql: Path, tmp_path: Path) -> None:
    finished = script("run", sql, JAVA_HOME=str(tmp_path))
    assert finished.returncode == 2
    assert finished.stderr.startswith("Error: Spark did not start. It needs Java 17 or later")
    assert f"{tmp_path}/bin/java: No such file" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_the_version_needs_no_command() -> None:
    code = """
import atexit, sys
from apportion.cli import app
from apportion.cli.support import console
atexit.register(lambda: print(*(name for name in sys.modules if name in ("jinja2", "sqlglot"))))
app(["--version"])
"""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert finished.stdout.splitlines()[1:] == [""]


def test_a_wrong_name_of_a_command_has_a_suggestion() -> None:
    result = CliRunner().invoke(app, ["advize"])
    assert result.exit_code == 2
    assert "Did you mean 'advise'?" in result.stderr


def script(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from apportion.cli import app; app()", *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
