"""The README's Python, run as it stands, and its commands and links checked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from apportion.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_python_examples_run_in_order_in_a_program_of_their_own(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 4
    program = tmp_path / "example.py"
    program.write_text("\n".join(examples), "utf-8")
    run = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.search(r"\d+ tasks of 256 subpartitions\n\d+ tasks: .*\.\n", run.stdout)


def test_sql_example_runs(spark: SparkSession) -> None:
    (example,) = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    spark.sql(example).collect()


@pytest.mark.parametrize("target", re.findall(r"\]\((docs/.*?)\)", README))
def test_links_lead_somewhere(target: str) -> None:
    assert (ROOT / target).is_file()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"[`(]apportion ([a-z]+)[ )]", README))))
def test_commands_exist(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
