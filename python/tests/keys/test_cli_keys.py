"""`apportion keys`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import app


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A directory of tables, with `events`: bucket k of ten has ten rows."""
    folder = tmp_path / "tables"
    folder.mkdir()
    rows = [f"{i % 10},{i % 2}" for i in range(100)]
    (folder / "events.csv").write_text("\n".join(["bucket,kind", *rows]))
    return folder


def keys(*arguments: str | Path) -> Result:
    """Call the command, as if on a wide terminal without colours."""
    return CliRunner().invoke(app, ["keys", *map(str, arguments)], env={"COLUMNS": "160"})


@pytest.mark.usefixtures("spark")
class TestKeys:
    def test_keys_accepts_a_table_with_any_name(self, tables: Path) -> None:
        (tables / "events.csv").rename(tables / "my-events.2026.csv")
        for name in ("my-events.2026", "MY-events.2026"):
            result = keys(name, "--columns", "kind", "--tasks", "2", "--tables", tables)
            assert f"kind of {name}: 2 values, " in result.stdout, result.stderr

    def test_keys_prints_a_table_with_bars(self, tables: Path) -> None:
        result = keys("events", "--columns", "bucket", "--tasks", "5", "--tables", tables)
        assert result.exit_code == 0, result.stderr
        assert "bucket of events: 10 values, 5 tasks, 5 shuffle partitions" in result.stdout
        rows = re.findall(
            r"^│ (\d) +│ +(\d) │ +(\d+) │ (.*?) +│ +(\d) │ +(\d+) │", result.stdout, re.M
        )
        assert rows == [
            ("0", "0", "0", "", "2", "20"),
            ("1", "3", "30", "█" * 20, "2", "20"),
            ("2", "2", "20", "█" * 13, "2", "20"),
            ("3", "2", "20", "█" * 13, "2", "20"),
            ("4", "3", "30", "█" * 20, "2", "20"),
        ]  # fmt: skip
        assert "By hash: 1 of 5 tasks empty; at most 3 values and 30 rows per task" in result.stdout
        assert "Even keys: 0 of 5 tasks empty; at most 2 values and 20 rows" in result.stdout

    def test_keys_prints_json(self, tables: Path) -> None:
        result = keys(
            "events", "--columns", "bucket, kind", "--tasks", "5", "--subpartitions", "10",
            "--tables", tables, "--format", "json",
        )  # fmt: skip
        report = json.loads(result.stdout)
        assert (report["table"], report["columns"]) == ("events", ["bucket", "kind"])
        assert report["subpartitions"] == 10
        assert sum(report["hashed"]["values"]) == 10
        assert report["even"] == {"values": [2] * 5, "rows": [20] * 5}

    def test_keys_writes_a_plot(self, tables: Path, tmp_path: Path) -> None:
        file = tmp_path / "a.svg"
        result = keys(
            "events", "--columns", "kind", "--tasks", "2", "--tables", tables, "--plot", file
        )
        assert f"Plot: {file}" in result.stderr
        assert file.read_bytes().startswith(b"<?xml")

    def test_keys_names_the_number_of_hidden_tasks(self, tables: Path) -> None:
        result = keys("events", "--columns", "kind", "--tasks", "100", "--tables", tables)
        assert "36 more tasks: --format json shows all." in result.stdout

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["evens", "--columns", "a", "--tasks", "5"], "Did you mean events? Tables: events"),
            (
                ["events", "--columns", "buket", "--tasks", "5"],
                "there is no column buket. Did you mean bucket? Columns: bucket, kind",
            ),
        ],
    )
    def test_wrong_usage_exits_with_2_and_a_message(
        self, tables: Path, arguments: list[str], message: str
    ) -> None:
        result = keys(*arguments, "--tables", tables)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "5", "--plot", "a.gif"], "a.gif: the file name must end in .png or .svg"),
        (["--tasks", "0"], "Invalid value for '--tasks'"),
        (["--tasks", "5", "--subpartitions", "4"], "--subpartitions is 4: allowed is 5 or more"),
    ],
)
def test_wrong_options_are_refused_before_spark_starts(arguments: list[str], message: str) -> None:
    result = keys("events", "--columns", "a", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
