"""A user's program is checked by mypy and pyright, each as strict as it can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import apportion

PACKAGES = Path(apportion.__file__).parents[1]

RIGHT = '''\
"""Uses what the documentation shows."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import apportion
from apportion import doctor, eventlog, hints
from apportion.logs.simulate import Scenario, simulate


def session() -> SparkSession:
    settings = apportion.Settings(data_volume_per_task="64MB", ranges="balanced")
    builder = SparkSession.builder.appName("report").config("spark.sql.shuffle.partitions", 400)
    return apportion.configure(builder, settings, min_parallelism=2).getOrCreate()


def reasons(spark: SparkSession) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for decision in apportion.decisions(spark):
        first_task = decision.ranges[0][1] - decision.ranges[0][0] if decision.ranges else 0
        found.setdefault(decision.operator, []).append(f"{first_task}: {decision.reason}")
    return found


def tasks(spark: SparkSession) -> int:
    shuffle = apportion.Input(bytes=[300_000] * 128)
    small = apportion.Input([1_000], broadcast=True)
    try:
        return apportion.decide(spark, [shuffle, small], mode="active").parallelism
    except apportion.SettingError as error:
        raise SystemExit(str(error)) from error


def page(frame: DataFrame) -> str:
    return apportion.explain(frame).html()


def hinted(sql: str) -> str:
    for finding in hints.lint(sql):
        print(finding.code, finding.message)
    return hints.add(sql, "PARALLELISM(8)", "main")


def predicted(log: Path) -> list[float]:
    application = eventlog.read(log)
    wide = Scenario("wide", {"spark.apportion.dataVolumePerTask": "16MB"}, slots=160)
    return [row.total.makespan for row in simulate(application, [wide]).rows]


def problems(spark: SparkSession) -> list[str]:
    found = [*doctor.examine(), *doctor.examine_session(spark)]
    return [finding.advice for finding in found if finding.verdict == "problem"]
'''

WRONG = """\
from pyspark.sql import SparkSession

import apportion


def wrong(spark: SparkSession) -> None:
    apportion.decide(spark, [1, 2])
    apportion.Settings(ranges="evn")
    apportion.decisions(spark)[0].parallelsm
"""


Errors = set[tuple[str, int]]
"""File and line of each."""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with both programs."""
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def mypy(folder: Path) -> Errors:
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "right.py", "wrong.py"],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        check=False,
    )
    print(run.stdout, run.stderr)
    errors = [line.split(":") for line in run.stdout.splitlines() if ": error: " in line]
    return {(file, int(line)) for file, line, *_ in errors}


def pyright(folder: Path) -> Errors:
    pytest.importorskip("basedpyright", reason="basedpyright, which is pyright, is not installed")
    # "strict" is the strictest of pyright's own modes.
    config = {"typeCheckingMode": "strict", "extraPaths": [str(PACKAGES)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    run = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    print(run.stdout, run.stderr)
    found = json.loads(run.stdout)["generalDiagnostics"]
    errors = [each for each in found if each["severity"] == "error"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in errors}


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_report_mistakes_and_accept_correct_code(
    checker: Callable[[Path], Errors], programs: Path
) -> None:
    assert checker(programs) == {("wrong.py", 7), ("wrong.py", 8), ("wrong.py", 9)}
