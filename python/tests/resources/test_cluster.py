"""Queries on a standalone cluster of this machine, whose workers come and go."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cluster import Cluster, Driver, driver_of, eventually

QUERY = "SELECT id % 100 AS k, count(*) AS n, sum(id) AS s FROM range(0, 100000, 1, 6) GROUP BY 1"
ANSWER = sorted([k, 1000, sum(range(k, 100000, 100))] for k in range(100))
# Six tasks that take seconds, between two shuffles.
SLOW = f"""
  SELECT k % 10 AS digit, count(*) AS n, sum(s) AS s
  FROM (SELECT /*+ PARALLELISM(6) */ * FROM ({QUERY}))
  WHERE aggregate(sequence(1, 500000), 0L, (a, x) -> a + x + n) > 0
  GROUP BY 1
"""
SLOW_ANSWER = [[d, 10, sum(s for k, _, s in ANSWER if k % 10 == d)] for d in range(10)]

# Half of the rows have one key, so tasks read parts of its partition, and of the groups around it.
SKEWED = """
  SELECT count(*) FROM (
    SELECT if(id % 2 = 0, 1, id % 997) AS k, sha2(string(id), 256) AS text
    FROM range(0, 60000, 1, 8)
  ) LEFT JOIN (SELECT id AS k, id * 3 AS v FROM range(0, 900, 1, 4)) USING (k)
  WHERE coalesce(v, 0) < length(text) * 100
"""


def begin(driver: Driver, sql: str, **settings: str) -> int:
    """Begin a query with these settings of resources; its value has `rows` and `decisions`."""
    keyed = {f"spark.apportion.resources.{name}": value for name, value in settings.items()}
    return driver.begin("query", text=sql, settings=keyed)


def phases(driver: Driver) -> list[str]:
    return [each["phase"] for each in driver.call("changes") if each["phase"]]


def declared(driver: Driver) -> list[int]:
    found = [each["declared"] for each in driver.call("changes")]
    return [slots for slots in found if slots is not None]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def driver(cluster: Cluster) -> Iterator[Driver]:
    with driver_of(cluster) as started:
        yield started


def sized(cluster: Cluster, driver: Driver, workers: int) -> None:
    """Wait until so many workers are there, and the driver has an executor on each."""
    cluster.resize(workers)
    driver.has_executors(workers)


def test_executors_on_one_host_read_each_others_blocks_of_several_levels(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, cores=2)
    cluster.add_worker()
    small = {"dataVolumePerTask": "64kb", "minTaskVolume": "1kb"}
    settings = {f"spark.apportion.{name}": size for name, size in small.items()}
    settings["spark.sql.autoBroadcastJoinThreshold"] = "-1"
    try:
        with driver_of(cluster, executor__cores="1") as driver:
            driver.has_executors(2)
            result = driver.wait(driver.begin("query", text=SKEWED, settings=settings))
    finally:
        cluster.stop()
    assert result["rows"] == [[60000]]
    assert any(decision["bytes_read_twice"] for decision in result["decisions"])


@pytest.mark.slow
def test_a_query_waits_for_its_minimum_and_requests_its_target_slots(
    cluster: Cluster, driver: Driver
) -> None:
    wanted = {
        "minSlots": "2",
        "targetSlots": "3",
        "request": "true",
        "stabilization": "1s",
        "cooldown": "1s",
    }
    sized(cluster, driver, 1)
    query = begin(driver, QUERY, **wanted)
    eventually("waiting", lambda: "waiting" in phases(driver))
    assert not driver.is_answered(query)
    cluster.add_worker()
    result = driver.wait(query)
    assert sorted(result["rows"]) == ANSWER
    assert {each["slots"] for each in result["decisions"]} == {2}
    assert phases(driver)[:3] == ["waiting", "stabilizing", "running"]
    assert set(declared(driver)) == {3}
    # No query asks any more, so the limit on executors ends after the cooldown.
    eventually("the initial request", lambda: driver.call("changes")[-1]["declared"] is None)

    sized(cluster, driver, 3)
    result = driver.wait(begin(driver, QUERY, **wanted))
    assert {each["slots"] for each in result["decisions"]} == {3}


def test_a_query_fails_at_the_timeout_without_its_minimum_slots_and_the_session_continues(
    cluster: Cluster, driver: Driver
) -> None:
    sized(cluster, driver, 3)
    error = driver.answer(begin(driver, QUERY, minSlots="4", timeout="3s"))["error"]
    assert "needs 4 slots (spark.apportion.resources.minSlots)" in error
    assert "executors have 3" in error
    assert "after a wait of 3.0 seconds (spark.apportion.resources.timeout)" in error
    assert phases(driver)[-3:] == ["waiting", "failed", "ended"]
    assert sorted(driver.wait(begin(driver, QUERY))["rows"]) == ANSWER


def test_a_query_survives_a_killed_worker(cluster: Cluster, driver: Driver) -> None:
    sized(cluster, driver, 3)
    query = begin(driver, SLOW, minSlots="1", stabilization="0s")
    first = min(eventually("its first stage", lambda: driver.call("active_stages")))
    eventually("its second stage", lambda: max(driver.call("active_stages"), default=0) > first)
    cluster.kill_worker()
    result = driver.wait(query)
    assert sorted(result["rows"]) == SLOW_ANSWER
    before, after = result["decisions"]
    assert (before["slots"], before["slots_lost"]) == (3, 0)
    assert (after["slots"], after["slots_lost"]) == (2, 1)
    assert "degraded: 2 of 3 slots are left" in after["reason"]

    sized(cluster, driver, 3)
    result = driver.wait(begin(driver, QUERY))
    assert sorted(result["rows"]) == ANSWER
    assert {(each["slots"], each["slots_lost"]) for each in result["decisions"]} == {(3, 0)}


def test_a_query_fails_if_all_executors_are_lost(cluster: Cluster, driver: Driver) -> None:
    sized(cluster, driver, 1)
    query = begin(driver, SLOW, minSlots="1", timeout="5s", stabilization="0s")
    eventually("its tasks", lambda: driver.call("active_stages"))
    cluster.kill_worker()
    assert "needs 1 slot " in driver.answer(query)["error"]
    cluster.add_worker()
    assert sorted(driver.wait(begin(driver, QUERY, minSlots="1"))["rows"]) == ANSWER


@pytest.mark.slow
def test_fifty_queries_are_correct_while_executors_are_killed(
    cluster: Cluster, driver: Driver
) -> None:
    dice = random.Random(7)
    done = threading.Event()

    def trouble() -> None:
        while not done.wait(dice.uniform(2, 8)):
            if cluster.workers > 1 and dice.random() < 0.6:
                cluster.kill_worker()
            elif cluster.workers < 3:
                cluster.add_worker()

    sized(cluster, driver, 3)
    killing = threading.Thread(target=trouble)
    killing.start()
    ran, end = 0, time.monotonic() + 300
    try:
        while ran < 50 or time.monotonic() < end:
            query = begin(driver, QUERY, minSlots="1", timeout="100s", stabilization="1s")
            assert sorted(driver.wait(query)["rows"]) == ANSWER
            ran += 1
    finally:
        done.set()
        killing.join()


@pytest.mark.slow
def test_dynamic_allocation_keeps_its_bounds_and_the_application_ends(
    cluster: Cluster, driver: Driver
) -> None:
    bounds = {
        "dynamicAllocation__enabled": "true",
        "dynamicAllocation__shuffleTracking__enabled": "true",
        "dynamicAllocation__minExecutors": "1",
        "dynamicAllocation__maxExecutors": "2",
        "dynamicAllocation__schedulerBacklogTimeout": "1s",
    }
    wanted = {
        "request": "true",
        "minSlots": "3",
        "targetSlots": "3",
        "rescaling": "backlog",
        "timeout": "20s",
        "stabilization": "1s",
    }
    # It holds all executors.
    driver.stop()
    cluster.resize(3)
    with driver_of(cluster, **bounds) as dynamic:
        query = begin(dynamic, SLOW, **wanted)
        most = 0
        while not dynamic.is_answered(query):
            most = max(most, dynamic.call("executors"))
            time.sleep(0.2)
        assert sorted(dynamic.wait(query)["rows"]) == SLOW_ANSWER
        assert most == 2
        assert set(declared(dynamic)) == {2}, "the maximum of dynamic allocation"
        assert not [name for name in dynamic.call("threads") if "apportion" in name]
        assert dynamic.ends()
