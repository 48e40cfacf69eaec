"""Dynamic allocation: executors come before tasks wait, and go back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster_managers.kubernetes import KubernetesCluster
from tests.cluster_managers.yarn import YarnCluster

from .cluster import Cluster, Driver, driver_of, eventually

# Two tasks that take seconds, then three tasks. The second stage is known while the first one runs.
GROWING = """
  SELECT /*+ PARALLELISM(3) */ k, count(*) AS n FROM (
    SELECT id % 9 AS k FROM range(0, 8, 1, 2)
    WHERE aggregate(sequence(1, 2000000), 0L, (a, x) -> a + x + id) > 0
  ) GROUP BY k
"""
# Six tasks that take about a second.
WIDE = """
  SELECT {hint} k, count(*) AS n FROM (
    SELECT id % 9 AS k FROM range(0, 12, 1, 6)
    WHERE aggregate(sequence(1, 1000000), 0L, (a, x) -> a + x + id) > 0
  ) GROUP BY k
"""
DYNAMIC = {
    "dynamicAllocation__enabled": "true",
    "dynamicAllocation__minExecutors": "0",
    "dynamicAllocation__maxExecutors": "3",
    "dynamicAllocation__schedulerBacklogTimeout": "1s",
    "dynamicAllocation__executorIdleTimeout": "3s",
    "executor__cores": "1",
}
REQUEST = {"spark.apportion.resources.request": "true"}
MANAGERS: dict[str, Callable[[Path], Cluster | YarnCluster | KubernetesCluster]] = {
    "standalone": Cluster,
    "YARN": YarnCluster,
    "mock of Kubernetes": KubernetesCluster,
}


@pytest.fixture(scope="module", params=list(MANAGERS))
def driver(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Driver]:
    """A driver that tracks shuffles, on a cluster with room for three executors."""
    tracking = {
        "dynamicAllocation__shuffleTracking__enabled": "true",
        "dynamicAllocation__shuffleTracking__timeout": "3s",
    }
    directory = tmp_path_factory.mktemp("cluster")
    cluster = MANAGERS[request.param](directory)
    try:
        if isinstance(cluster, Cluster):
            cluster.resize(3)
        with driver_of(cluster, **DYNAMIC, **tracking) as started:
            yield started
    finally:
        cluster.stop()


def most_executors(driver: Driver, query: int, *, first_stage: bool = False) -> int:
    """Return the most executors while a query, or its first stage, runs."""
    most = 0
    first: set[int] = set()
    while not driver.is_answered(query):
        active = set(driver.call("active_stages"))
        first = first or active
        if not first_stage or (first and active == first):
            most = max(most, driver.call("executors"))
        time.sleep(0.1)
    driver.wait(query)
    return most


@pytest.mark.slow
def test_executors_come_before_the_tasks_of_the_next_stage_wait_and_go_back(
    driver: Driver,
) -> None:
    query = driver.begin("query", text=GROWING, settings={})
    assert most_executors(driver, query, first_stage=True) == 2, "Spark waits for the tasks"
    driver.has_executors(0)
    query = driver.begin("query", text=GROWING, settings=REQUEST)
    assert most_executors(driver, query, first_stage=True) == 3
    driver.has_executors(0)


@pytest.mark.slow
def test_a_query_with_a_late_deadline_takes_only_the_executors_that_it_needs(
    driver: Driver,
) -> None:
    plain = WIDE.format(hint="")
    query = driver.begin("query", text=plain, settings=REQUEST)
    assert most_executors(driver, query) == 3
    driver.has_executors(0)
    late = WIDE.format(hint="/*+ FINISH_WITHIN('10 min') */")
    query = driver.begin("query", text=late, settings=REQUEST)
    assert most_executors(driver, query) == 1
    change = [each for each in driver.call("changes") if each["phase"] == "ended"][-1]
    assert change["finish_within"] == 600
    assert change["elapsed"] < change["finish_within"]
    assert change["planned"] == pytest.approx(change["elapsed"], rel=0.7)
    driver.has_executors(0)


@pytest.mark.slow
def test_executors_come_and_go_with_the_external_shuffle_service(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    service = "-Dspark.shuffle.service.enabled=true -Dspark.shuffle.service.port=17337"
    # A service needs its port for itself, so there is one worker.
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), cores=3, daemon_options=service)
    try:
        cluster.resize(1)
        conf = {"shuffle__service__enabled": "true", "shuffle__service__port": "17337"}
        with driver_of(cluster, **DYNAMIC, **conf) as driver:
            query = driver.begin("query", text=GROWING, settings=REQUEST)
            assert most_executors(driver, query, first_stage=True) == 3
            eventually("no executors", lambda: driver.call("executors") == 0)
    finally:
        cluster.stop()
