"""State partitions that follow the executors of a standalone cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.resources.cluster import Cluster, Driver, driver_of, eventually
from tests.spark_version import since

pytestmark = [pytest.mark.slow, since("4.2")]

STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "sql__streaming__stateStore__providerClass": STATE,
    "sql__shuffle__partitions": "1",
    "executor__cores": "1",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    cluster.add_worker()
    yield cluster
    cluster.stop()


def has_state_partitions(driver: Driver, partitions: set[int]) -> None:
    eventually(
        f"{partitions} state partitions", lambda: driver.call("state_partitions") in partitions
    )


def test_a_stream_gets_partitions_for_executors_that_come_and_go(
    cluster: Cluster, tmp_path: Path
) -> None:
    with driver_of(cluster, **SETTINGS) as driver:
        driver.has_executors(1)
        driver.call("start_stream", folder=str(tmp_path / "checkpoint"), seconds=3)
        has_state_partitions(driver, {1})
        cluster.resize(3)
        has_state_partitions(driver, {2, 4})
        cluster.resize(1)
        has_state_partitions(driver, {1})


def test_a_stream_with_too_few_slots_requests_executors(cluster: Cluster, tmp_path: Path) -> None:
    cluster.resize(3)
    dynamic = {
        "dynamicAllocation__enabled": "true",
        "dynamicAllocation__minExecutors": "1",
        "dynamicAllocation__maxExecutors": "3",
        "dynamicAllocation__shuffleTracking__enabled": "true",
        "apportion__resources__request": "true",
    }
    with driver_of(cluster, **SETTINGS, **dynamic) as driver:
        driver.has_executors(1)
        driver.call("start_stream", folder=str(tmp_path / "checkpoint"), seconds=3)
        has_state_partitions(driver, {2, 4})
        eventually("another executor", lambda: driver.call("executors") > 1)
