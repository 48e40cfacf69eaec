"""All commands and the tab have the numbers of Spark's UI, for one run."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from apportion.cli import app

from .compare import printed

PROGRAM = """
import sys
import apportion
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").appName("run")
conf = {"ui.enabled": True, "ui.port": 0, "eventLog.enabled": True, "eventLog.dir": sys.argv[1],
        "eventLog.rolling.enabled": False, "eventLog.compress": False}
for name, value in conf.items():
    builder.config(f"spark.{name}", value)
spark = apportion.configure(builder, mode="active", data_volume_per_task="16KB").getOrCreate()
keys = "SELECT id % 1000 AS k, count(*) AS n FROM range(0, 50000, 1, 2) GROUP BY 1"
# A job samples the rows for the sort.
join = f"({keys}) a JOIN ({keys}) b ON a.k = b.n + b.k"
spark.sql(f"SELECT a.k, b.n FROM {join} ORDER BY 1").collect()
spark.sparkContext.parallelize(range(1000), 2).map(lambda row: (row % 10, 1)).count()
print(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId, flush=True)
sys.stdin.read()
"""


class Run:
    """The answers of Spark's REST API and of the tab, and the log of the same run."""

    def __init__(self, url: str, id: str, folder: Path) -> None:
        self.log = folder / f"{id}.inprogress"
        api = f"{url}/api/v1/applications/{id}"
        # Stages that were skipped have no attempt that ran.
        self.stages = [each for each in _get(f"{api}/stages") if each["numCompleteTasks"]]
        self.task_millis = {
            each["stageId"]: sum(
                task["duration"]
                for task in _get(f"{api}/stages/{each['stageId']}/0/taskList?length=10000")
            )
            for each in self.stages
        }
        # The page of a stage shows the same median.
        self.median_millis = {
            each["stageId"]: _get(f"{api}/stages/{each['stageId']}/0/taskSummary?quantiles=0.5")[
                "executorRunTime"
            ][0]
            for each in self.stages
        }
        (self.query,) = _get(f"{api}/sql")
        jobs = {each["jobId"]: each["stageIds"] for each in _get(f"{api}/jobs")}
        self.of_query = {stage for job in self.query["successJobIds"] for stage in jobs[job]}
        with urllib.request.urlopen(f"{url}/apportion/query/?id={self.query['id']}") as page:
            self.tab = page.read().decode()

    def total(self, name: str, *, of_query: bool = True) -> int:
        return sum(
            each[name] for each in self.stages if (each["stageId"] in self.of_query) == of_query
        )

    def task_seconds(self, *, of_query: bool = True) -> float:
        own = [each for each in self.task_millis if (each in self.of_query) == of_query]
        millis: int = sum(self.task_millis[stage] for stage in own)
        return millis / 1000


def _get(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    logs = tmp_path_factory.mktemp("logs")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(logs)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as running:  # fmt: skip
        assert running.stdout
        assert running.stdin
        said = running.stdout.readline().split()
        assert len(said) == 2, "Spark did not start"
        yield Run(said[0], said[1], logs)
        running.stdin.close()


def test_advise_has_the_task_time_of_spark(run: Run) -> None:
    (application,) = printed("advise", run.log)["applications"]
    assert application["task_seconds"] == pytest.approx(run.task_seconds())
    assert application["other_task_seconds"] == pytest.approx(run.task_seconds(of_query=False))


def test_explain_has_the_stages_of_spark(run: Run) -> None:
    (query,) = printed("explain", run.log)
    assert query["seconds"] * 1000 == pytest.approx(run.query["duration"], abs=1)
    works = [stage["ran"] for stage in query["stages"] if stage["ran"]]
    assert sorted(id for work in works for id in work["stages"]) == sorted(
        each["stageId"] for each in run.stages if each["stageId"] in run.of_query
    )
    # A stage that samples rows belongs to the stage that sorts them.
    assert max(len(work["stages"]) for work in works) == 2
    rest = {each["stageId"]: each for each in run.stages}
    for work in works:
        own = [rest[id] for id in work["stages"]]
        assert work["tasks_of_stages"] == [each["numCompleteTasks"] for each in own]
        for name, spark in {
            "shuffle_read_bytes": "shuffleReadBytes", "shuffle_written_bytes": "shuffleWriteBytes",
            "input_bytes": "inputBytes", "output_bytes": "outputBytes",
            "spilled_bytes": "diskBytesSpilled",
        }.items():  # fmt: skip
            assert work[name] == sum(each[spark] for each in own)
        assert work["task_millis"] == sum(run.task_millis[id] for id in work["stages"])
        if len(own) == 1:
            assert work["median_task_millis"] == run.median_millis[own[0]["stageId"]]


def test_simulate_and_report_have_the_tasks_of_spark(run: Run) -> None:
    tasks = run.total("numCompleteTasks")
    logged = printed("simulate", run.log)["scenarios"][0]
    assert logged["tasks"] == tasks
    assert logged["slot_seconds"] == pytest.approx(run.task_seconds())
    shown = CliRunner().invoke(app, ["report", str(run.log), str(run.log), "--format", "json"])
    (query,) = json.loads(shown.stdout)["queries"]
    assert query["before"]["tasks"] == tasks
    assert query["before"]["core_seconds"] == pytest.approx(run.task_seconds())
    assert query["before"]["shuffled_bytes"] == run.total("shuffleWriteBytes")


def test_the_tab_links_to_the_stages_of_the_decisions(run: Run) -> None:
    (query,) = printed("explain", run.log)
    decided = [stage for stage in query["stages"] if stage["decisions"] and stage["ran"]]
    assert len(decided) >= 3
    for stage in decided:
        (decision,) = stage["decisions"]
        # The sampling stage is the first one with the decided tasks.
        assert decision["outcome"]["stage"] in stage["ran"]["stages"]
        assert f"/stages/stage/?id={decision['outcome']['stage']}&amp;" in run.tab
