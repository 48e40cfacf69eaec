"""Faults that a cluster recovers from: slow, retiring and lost executors."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .cluster import Cluster, Driver, driver_of, eventually
from .event_log import EventLog

# Two thirds of the rows have one key.
SKEWED = """
  SELECT count(*), max(name),
    max(if(aggregate(sequence(1, 200), 0L, (a, x) -> a + x + length(word)) > 0, word, ''))
  FROM (SELECT CASE WHEN id % 3 > 0 THEN 1 ELSE id % 1000 END AS k, sha2(string(id), 256) AS word
        FROM range(0, 60000, 1, 12))
  JOIN (SELECT id AS k, sha2(string(-id), 256) AS name FROM range(0, 1000, 1, 2)) USING (k)
"""
SPLIT = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "16",
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "256KB",
}
JOIN = """
  SELECT a.k, a.n, b.s
  FROM (SELECT id % 50 AS k, count(*) AS n FROM range(0, 100000, 1, 6) GROUP BY 1) a
  JOIN (SELECT id % 50 AS k, sum(id) AS s FROM range(0, 100000, 1, 6) GROUP BY 1) b USING (k)
  ORDER BY 1
"""


@contextmanager
def logging_driver(cluster: Cluster, directory: Path, **settings: str) -> Iterator[Driver]:
    """A driver on the cluster's executors that writes an event log to this directory."""
    directory.mkdir()
    log = {
        "eventLog__enabled": "true",
        "eventLog__dir": directory.as_uri(),
        "eventLog__rolling__enabled": "false",
        "eventLog__compress": "false",
    }
    with driver_of(cluster, **log, **settings) as driver:
        yield driver


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    started.resize(2)
    yield started
    started.stop()


def begin(driver: Driver, sql: str, **settings: str) -> int:
    return driver.begin("query", text=sql, settings=settings)


@pytest.mark.slow
def test_speculative_copies_of_tasks_that_read_split_partitions_change_no_row(
    cluster: Cluster, tmp_path: Path
) -> None:
    # Each task gets a copy as soon as the other executor is idle.
    speculation = {
        "speculation": "true",
        "speculation__interval": "10ms",
        "speculation__minTaskRuntime": "10ms",
        "speculation__multiplier": "0.01",
        "speculation__quantile": "0.01",
    }
    with logging_driver(cluster, tmp_path / "log", **speculation) as driver:
        driver.has_executors(2)
        off = {**SPLIT, "spark.apportion.enabled": "false"}
        expected = driver.wait(begin(driver, SKEWED, **off))["rows"]
        result = driver.wait(begin(driver, SKEWED, **SPLIT))
        driver.call("stop")
    assert result["rows"] == expected
    join = next(each for each in result["decisions"] if each["layout"] == "skew")
    log = EventLog(tmp_path / "log")
    (stage,) = (
        event["outcome"]["stage"]
        for event in log.events("io.apportion.outcomes.OutcomeEvent")
        if (event["outcome"]["query"], event["outcome"]["group"]) == (join["query"], join["group"])
    )
    copies = [
        event
        for event in log.events("SparkListenerTaskStart")
        if event["Stage ID"] == stage and event["Task Info"]["Speculative"]
    ]
    assert copies


@pytest.mark.slow
def test_shuffles_of_a_decommissioned_executor_are_read_where_they_moved(
    cluster: Cluster, tmp_path: Path
) -> None:
    decommissioning = {
        "decommission__enabled": "true",
        "storage__decommission__enabled": "true",
        "storage__decommission__shuffleBlocks__enabled": "true",
        "storage__decommission__replicationReattemptInterval": "1s",
    }
    with logging_driver(cluster, tmp_path / "log", **decommissioning) as driver:
        driver.has_executors(2)
        expected = driver.call("query_to_repeat", text=JOIN, settings=SPLIT)
        log = EventLog(tmp_path / "log")
        wrote = {
            event["Task Info"]["Executor ID"]
            for event in log.events("SparkListenerTaskEnd")
            if event["Task Type"] == "ShuffleMapTask"
        }
        os.kill(cluster.executor_of_youngest_worker(), signal.SIGPWR)
        removed = eventually("its end", lambda: log.events("SparkListenerExecutorRemoved"))
        before = log.attempts()
        assert driver.call("repeat") == expected
        driver.call("stop")
    assert removed[0]["Executor ID"] in wrote
    assert "decommission" in removed[0]["Removed Reason"].lower()
    # Only the last stage ran again.
    again = log.attempts() - before
    assert list(again.values()) == [1]


@pytest.mark.slow
def test_four_queries_at_once_are_correct_while_executors_are_killed(cluster: Cluster) -> None:
    dice = random.Random(11)
    done = threading.Event()

    def kill_and_replace() -> None:
        while not done.wait(dice.uniform(1, 4)):
            if cluster.workers > 1 and dice.random() < 0.6:
                cluster.kill_worker()
            elif cluster.workers < 3:
                cluster.add_worker()

    with driver_of(cluster) as driver:
        driver.has_executors(2)
        off = {**SPLIT, "spark.apportion.enabled": "false"}
        both = SKEWED, JOIN
        expected = [driver.wait(begin(driver, sql, **off))["rows"] for sql in both]
        killing = threading.Thread(target=kill_and_replace)
        killing.start()
        try:
            for _ in range(10):
                queries = [begin(driver, sql, **SPLIT) for sql in both * 2]
                assert [driver.wait(query)["rows"] for query in queries] == expected * 2
        finally:
            done.set()
            killing.join()
