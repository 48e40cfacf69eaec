"""Apache Celeborn: rows are the same as without Apportion, with splits and local reads too.

Set `CELEBORN_HOME` to a binary distribution of Celeborn for the Spark of this environment. Its
artifacts for masters and workers are not in Maven's repository.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.resources.cluster import Driver, driver_of

from .celeborn import Celeborn

pytestmark = pytest.mark.slow

# Two thirds of the rows have one key.
HEAVY = (
    "(SELECT CASE WHEN id % 3 > 0 THEN 1 ELSE id % 5000 END AS k, id, "
    "sha2(string(id), 256) AS word FROM range(0, 120000, 1, 24))"
)
LIGHT = "(SELECT id AS k, sha2(string(-id), 256) AS name FROM range(0, 6000, 1, 3))"
SKEWED = f"SELECT k, id, word, name FROM {HEAVY} JOIN {LIGHT} USING (k)"
QUERIES = {
    "aggregate": f"SELECT k, count(*), max(word) FROM {HEAVY} GROUP BY k",
    "skewed join": SKEWED,
    "rebalance": f"SELECT /*+ REBALANCE(k) */ * FROM {HEAVY}",
    "window": f"SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY id) FROM {HEAVY}",
    "local read": f"SELECT h.id, name FROM {HEAVY} h "
    f"JOIN (SELECT k, max(name) AS name FROM {LIGHT} WHERE k % 2 = 1 GROUP BY k) USING (k)",
}
SETTINGS = {
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "128KB",
}
LOCAL = {"spark.sql.adaptive.autoBroadcastJoinThreshold": "4MB"}
OFF = {"spark.apportion.enabled": "false"}
SPLITS = {"spark.apportion.splitsWithOtherShuffleManagers": "true"}


@pytest.fixture(scope="module")
def celeborn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Celeborn]:
    home = os.environ.get("CELEBORN_HOME")
    if not home:
        pytest.skip("CELEBORN_HOME does not name a distribution of Celeborn")
    # A partition has two copies, also after a worker is lost.
    started = Celeborn(Path(home), tmp_path_factory.mktemp("celeborn"), workers=3)
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def driver(celeborn: Celeborn) -> Iterator[Driver]:
    with driver_of(celeborn) as started:
        yield started


def run(driver: Driver, sql: str, *settings: dict[str, str]) -> dict[str, Any]:
    merged = {key: value for each in settings for key, value in each.items()}
    result: dict[str, Any] = driver.call("query", text=sql, settings={**SETTINGS, **merged})
    return {**result, "rows": sorted(result["rows"])}


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_the_same_with_splits_and_without(driver: Driver, name: str) -> None:
    local = LOCAL if name == "local read" else {}
    plain, decided, split = (run(driver, QUERIES[name], local, mode) for mode in (OFF, {}, SPLITS))
    assert plain["rows"]
    assert decided["rows"] == plain["rows"]
    assert split["rows"] == plain["rows"]
    layouts = {each["layout"] for each in decided["decisions"]}
    assert "skew" not in layouts
    assert layouts
    expected = {"skewed join": "skew", "rebalance": "skew", "local read": "local"}
    if name in expected:
        assert expected[name] in {each["layout"] for each in split["decisions"]}


def test_rows_are_the_same_after_a_worker_is_lost(celeborn: Celeborn, driver: Driver) -> None:
    plain = run(driver, SKEWED, OFF)
    query = driver.begin("query", text=SKEWED, settings={**SETTINGS, **SPLITS})
    celeborn.kill_worker()
    assert sorted(driver.wait(query)["rows"]) == plain["rows"]
