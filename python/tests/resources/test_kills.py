"""Queries on a standalone cluster whose executors, workers and shuffle files are lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .cluster import Cluster, Driver, driver_of, eventually

pytestmark = pytest.mark.slow

SCHEDULES = 10
"""Schedules of one test."""
WORKERS = 3
# One half of the rows of a side has the same key. Each query sleeps for seconds.
SLOWLY = "coalesce(reflect('java.lang.Thread', 'sleep', 1L), '') != 'x'"
QUERIES = [
    f"""
    SELECT k % 5 AS g, count(*) AS n, sum(v) AS s FROM (
      SELECT /*+ SHUFFLE_MERGE(r) */ l.k, r.v FROM
        (SELECT if(id % 2 = 0, 7, id) AS k FROM range(0, 4000, 1, 6) WHERE {SLOWLY}) l
        JOIN (SELECT id AS k, id % 13 AS v FROM range(0, 4000, 1, 4) WHERE {SLOWLY}) r
        ON l.k = r.k
    ) GROUP BY g
    """,
    f"""
    SELECT k, max(n) AS most FROM (
      SELECT id % 97 AS k, id % 1009 AS m, count(*) AS n FROM range(0, 9000, 1, 8)
      WHERE {SLOWLY} GROUP BY 1, 2
    ) GROUP BY k
    """,
]
CHOICES: dict[str, list[str]] = {
    "ranges": ["even", "balanced"],
    "dataVolumePerTask": ["4k", "1m"],
    # With a number that is no power of two, several tasks read the same groups of partitions.
    "parallelism": ["-1", "6"],
    "minParallelism": ["1", "6"],
    "resources.minSlots": ["0", "1"],
    "resources.request": ["false", "true"],
    "memory.enabled": ["false", "true"],
}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "local"))
    cluster = Cluster(tmp_path)
    cluster.resize(WORKERS)
    yield cluster
    cluster.stop()


def rows(driver: Driver, queries: list[int]) -> list[list[Any]]:
    return [sorted(driver.wait(query)["rows"]) for query in queries]


def lose(what: str, cluster: Cluster, dice: random.Random) -> None:
    """Kill a worker or its executor, or damage the shuffle files of an executor."""
    if what == "worker":
        cluster.kill_worker()
    elif what == "executor":
        # A worker without an executor has none to lose, and an executor can end by itself.
        with suppress(subprocess.CalledProcessError, ProcessLookupError):
            os.kill(cluster.executor_of_youngest_worker(), signal.SIGKILL)
    else:
        files = sorted((cluster.directory / "local").rglob("shuffle_*.data"))
        lost = dice.choice(files).parents[1] if files else None
        for file in files:
            # An executor that ends deletes its files.
            with suppress(FileNotFoundError):
                if lost in file.parents:
                    DAMAGES[what](file)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def corrupt(file: Path) -> None:
    """Overwrite the file where it is. Spark writes a new one, and renames it."""
    with file.open("r+b") as stream:
        stream.write(b"\x5a" * file.stat().st_size)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "delete": Path.unlink,
    "truncate": truncate,
    "corrupt": corrupt,
}
"""Damages to the shuffle files of an executor."""


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("number", range(15))
def test_no_row_changes_and_nothing_hangs_in_random_schedules_of_losses(
    number: int, at_once: int, cluster: Cluster
) -> None:
    dice = random.Random(100 * at_once + number)
    speculates = {"speculation": "true", "speculation__multiplier": "1.1"} if number % 2 else {}
    with driver_of(cluster, executor__cores="1", **speculates) as driver:
        driver.has_executors(WORKERS)
        off = {"spark.apportion.enabled": "false"}
        begun = [driver.begin("query", text=text, settings=off) for text in QUERIES]
        expected = rows(driver, begun)
        for _ in range(SCHEDULES):
            settings = {
                f"spark.apportion.{name}": dice.choice(values) for name, values in CHOICES.items()
            }
            picked = [dice.randrange(len(QUERIES)) for _ in range(at_once)]
            begun = [
                driver.begin("query", text=QUERIES[query], settings=settings) for query in picked
            ]
            for _ in range(dice.randint(1, 2)):
                time.sleep(dice.uniform(0, 1.5))
                eventually("an executor", lambda: driver.call("executors") > 0)
                lose(dice.choice(["worker", "executor", *DAMAGES]), cluster, dice)
            cluster.resize(WORKERS)
            assert rows(driver, begun) == [expected[query] for query in picked], settings
