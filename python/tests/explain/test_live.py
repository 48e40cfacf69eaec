"""An application that runs, and its UI."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from apportion._spark import jars
from apportion.cli import app
from tests.programs import quick_start

from .conftest import Tabs

PROGRAM = """
import sys
import apportion
from pyspark.sql import SparkSession

folder = sys.argv[1]
logs = f"{folder}/logs"
conf = {"ui.enabled": True, "ui.port": 0, "eventLog.enabled": True, "eventLog.dir": logs}
builder = SparkSession.builder.master("local[1]").appName("lives")
for name, value in conf.items():
    builder.config(f"spark.{name}", value)
spark = apportion.configure(builder, parallelism=2).getOrCreate()
spark.sql("SELECT id % 10, count(*) FROM range(0, 100, 1, 2) GROUP BY id % 10").collect()
for name, rows in {"orders": 20000, "customers_of_a_long_name": 50}.items():
    frame = spark.range(rows).selectExpr("id % 50 AS k", "sha2(string(id), 256) AS s")
    frame.write.parquet(f"{folder}/{name}")
    spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
for n in range(2, 5):
    spark.sql(f"SELECT id % {10**n}, count(*) FROM range(0, 99999, 1, 2) GROUP BY 1").collect()
spark.sparkContext.setJobDescription("the daily report")
values = ", ".join(f"'{number:032}'" for number in range(100))
spark.sql(
    "SELECT /*+ MERGE(c) */ k, count(DISTINCT o.s) AS d FROM orders o "
    "JOIN customers_of_a_long_name c USING (k) "
    f"WHERE o.s NOT IN ({values}) GROUP BY k ORDER BY d"
).collect()
print(spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId, flush=True)
sys.stdin.read()
"""
# Texts that another text covers, and texts and figures that cross an edge of the page.
CLASHING = """() => {
  const kinds = "h4, p, td, th, pre, summary, figcaption, svg text";
  const boxes = [...document.querySelectorAll(kinds)]
    .map((each) => [each, each.getBoundingClientRect()])
    .filter(([each]) => each.checkVisibility() && each.textContent.trim());
  const cut = boxes.filter(([, box]) => box.right > innerWidth + 1 || box.left < 0);
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
    a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const covered = boxes.filter(([one, a], place) =>
    boxes.slice(place + 1).some(([other, b]) => !one.contains(other) && meet(a, b)));
  return [...cut, ...covered].map(([each]) => each.textContent.trim());
}"""
REASON = "2 tasks: parallelism is set to 2 (submit-time conf)"


class Live:
    """An application that has run a query, and goes on."""

    def __init__(self, url: str, number: str, logs: Path) -> None:
        self.url = url
        self.id = number
        self.logs = logs


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("live")
    logs = folder / "logs"
    logs.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
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


@pytest.fixture(scope="module")
def history_server(live: Live) -> Iterator[str]:
    """The address of the application in a history server with Apportion's jar."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    store = live.logs.parent / "store"
    options = {"fs.logDirectory": live.logs.as_uri(), "store.path": store, "ui.port": port}
    command = [
        *("java", *quick_start().split(), "-cp", f"{jars.find()}:{jars.spark_home()}/jars/*"),
        *(f"-Dspark.history.{name}={value}" for name, value in options.items()),
        "org.apache.spark.deploy.history.HistoryServer",
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        address = f"http://localhost:{port}/history/{live.id}"
        until = time.monotonic() + 60
        while not _is_there(f"{address}/apportion/"):
            assert time.monotonic() < until, "the history server has no tab"
            time.sleep(0.2)
        yield address
        server.terminate()


def _is_there(address: str) -> bool:
    try:
        with urllib.request.urlopen(address):
            return True
    except OSError:
        return False


@pytest.fixture(params=["live", "history server"])
def root(live: Live, request: pytest.FixtureRequest) -> str:
    """The address of the UI of the running application, and of the same in a history server."""
    return live.url if request.param == "live" else request.getfixturevalue("history_server")


@pytest.mark.parametrize(("width", "colours"), [(1400, "light"), (420, "dark")])
def test_nothing_in_the_tab_is_cut_or_overlaps(
    root: str, width: int, colours: Literal["light", "dark"], tabs: Tabs
) -> None:
    page = tabs.open(f"{root}/apportion/", width, colours)
    assert page.evaluate(CLASHING) == []
    page.get_by_role("row").filter(has_text="the daily report").get_by_role("link").click()
    page.wait_for_load_state("networkidle")
    expect(page.locator(".apportion-stages a:visible")).to_have_count(5)
    assert page.evaluate(CLASHING) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    expect(page.get_by_text("more characters)")).to_be_visible()


@pytest.mark.parametrize("column", ["Query", "Duration", "Largest task"])
def test_the_columns_of_the_tab_sort_as_numbers(root: str, column: str, tabs: Tabs) -> None:
    page = tabs.open(f"{root}/apportion/")
    page.get_by_role("columnheader", name=column).click()
    cells = page.locator(f"#apportion-queries td[data-label='{column}']").all()
    keys = [cell.get_attribute("sorttable_customkey") or cell.inner_text() for cell in cells]
    assert len(keys) == 5
    assert keys == sorted(keys, key=int)
    assert column != "Largest task" or keys != sorted(keys)


def test_the_tab_of_a_running_application_shows_decisions(live: Live, tabs: Tabs) -> None:
    page = tabs.open(live.url)
    page.get_by_role("link", name="Apportion").click()
    page.locator("#apportion-queries").get_by_role("link").last.click()
    expect(page.get_by_text(REASON)).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    numbers = page.get_by_role("row", name="layout even")
    expect(numbers).not_to_be_visible()
    page.get_by_text("All fields").first.click()
    expect(numbers.first).to_be_visible()
    page.get_by_role("link", name="Plan of the query").click()
    expect(page.get_by_text("Details for Query").first).to_be_visible()
