"""An application that runs, and its UI."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from apportion.cli import app

from .conftest import Tabs

PROGRAM = """
import sys
import apportion
from pyspark.sql import SparkSession

conf = {"ui.enabled": True, "ui.port": 0, "eventLog.enabled": True, "eventLog.dir": sys.argv[1]}
builder = SparkSession.builder.master("local[1]").appName("lives")
for name, value in conf.items():
    builder.config(f"spark.{name}", value)
spark = apportion.configure(builder, parallelism=2).getOrCreate()
spark.sql("SELECT id % 10, count(*) FROM range(0, 100, 1, 2) GROUP BY id % 10").collect()
print(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId, flush=True)
sys.stdin.read()
"""
REASON = "2 tasks: parallelism is set to 2 (submit-time conf)"


class Live:
    """An application that has run a query, and goes on."""

    def __init__(self, url: str, number: str, logs: Path) -> None:
        self.url = url
        self.id = number
        self.logs = logs


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    logs = tmp_path_factory.mktemp("logs")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(logs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        assert running.stdout
        assert running.stdin
        said = running.stdout.readline().split()
        assert len(said) == 2, "Spark did not start"
        yield Live(said[0], said[1], logs)
        running.stdin.close()


def test_a_running_application_is_explained_by_url_and_by_id(live: Live) -> None:
    for arguments in ([live.url], [f"{live.url}/SQL/"], [live.id, "--logs", str(live.logs)]):
        result = CliRunner().invoke(app, ["explain", *arguments])
        assert result.exit_code == 0, result.stderr
        assert f"HashAggregate: {REASON}" in result.stdout
        assert "reads stage 0" in result.stdout


def test_the_tab_of_a_running_application_shows_decisions(
    live: Live, tabs: Tabs, picture: Path
) -> None:
    page = tabs.open(live.url)
    page.get_by_role("link", name="Apportion").click()
    page.locator("#apportion-queries").get_by_role("link").first.click()
    expect(page.get_by_text(REASON)).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    numbers = page.get_by_role("row", name="layout even")
    expect(numbers).not_to_be_visible()
    page.get_by_text("All fields").first.click()
    expect(numbers.first).to_be_visible()
    page.screenshot(path=picture)
    page.get_by_role("link", name="Plan of the query").click()
    expect(page.get_by_text("Details for Query").first).to_be_visible()
