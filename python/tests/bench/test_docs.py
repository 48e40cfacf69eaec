"""docs/benchmarking.md: its example runs, and its tables are complete."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from apportion.bench.report import variants_table
from apportion.bench.results import Results, load
from apportion.bench.summary import summarise
from apportion.bench.variants import BUILT_IN
from apportion.cli import app

PAGE = (Path(__file__).parents[3] / "docs/benchmarking.md").read_text("utf-8")
COMMANDS = re.findall(r"^apportion bench (.*)$", PAGE, re.MULTILINE)


def test_the_example_of_the_benchmarking_page_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (sql,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    (command,) = [each for each in COMMANDS if each.startswith("example.sql")]
    Path("example.sql").write_text(sql)
    result = CliRunner().invoke(app, ["bench", *shlex.split(command)])
    assert result.exit_code == 0, result.stderr
    assert list(load(Path("example.json")).queries) == ["example:1", "example:2"]


def test_the_benchmarking_page_explains_every_variant_column_and_key(results: Results) -> None:
    explained = re.findall(r"^\| `?(.*?)`? \|", PAGE, re.MULTILINE)
    _, *columns = variants_table(summarise(results)).columns
    fields = [field.name for field in dataclasses.fields(Results)]
    for name in [*(variant.name for variant in BUILT_IN), *columns, *fields, "summary"]:
        assert name in explained
