"""A small event log: query 3 scans, shuffles into four subpartitions, and aggregates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.records import RECORD

Event = dict[str, Any]

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
# Metrics that tasks update: those that scan, write the shuffle, and read it.
SCANNED, WRITTEN, AGGREGATED, FILES, FILE_BYTES = 1, 2, 3, 4, 5
SIZES = [4 << 20, 1 << 20, 2 << 20, 1 << 20]
CONF = {"spark.master": "local[2]", "spark.apportion.dataVolumePerTask": str(4 << 20)}


POLICY = {
    "data_volume_per_task": 4 << 20, "broadcast_ratio": 0.5, "min_parallelism": 1,
    "max_parallelism": 32768, "min_task_volume": 1 << 20, "ranges": "even",
    "rounding": "power-of-two",
}  # fmt: skip
INPUT = {
    "exchange_metric": WRITTEN, "range_partitioned": False, "splittable": False,
    "not_split": "operator", "partitions_set_by": "adaptive", "groups": [1, 4],
    "bytes_by_level": [0, 8 << 20],
}  # fmt: skip


def decision(query: int = 3, sizes: Sequence[Sequence[int]] = (SIZES,), **more: Any) -> Event:
    """Two tasks of two shuffle partitions each."""
    record = {
        **RECORD,
        "query": query,
        "input_bytes": sum(map(sum, sizes)),
        "sources": {
            "dataVolumePerTask": "default",
            "subpartitions": "spark.sql.shuffle.partitions, 4",
        },
        "source_kinds": {"dataVolumePerTask": "default"},
        "subpartition_bytes": sizes,
        "inputs": [INPUT] * len(sizes),
        "policy": POLICY,
    }
    return {"Event": "io.apportion.report.DecisionEvent", "decision": {**record, **more}}


def task(stage: int, start: int, end: int, read: int = 0, wrote: int = 0, scan: int = 0) -> Event:
    """Times in milliseconds from the start of the application."""
    return {
        "Event": "SparkListenerTaskEnd", "Stage ID": stage, "Stage Attempt ID": 0,
        "Task Info": {"Launch Time": start, "Finish Time": end, "Failed": False, "Killed": False},
        "Task Metrics": {
            "Executor Run Time": end - start,
            "Input Metrics": {"Bytes Read": scan},
            "Shuffle Read Metrics": {"Remote Bytes Read": 0, "Local Bytes Read": read},
            "Shuffle Write Metrics": {"Shuffle Bytes Written": wrote},
        },
    }  # fmt: skip


def stage(number: int, start: int, end: int, tasks: Iterable[Event], metric: int) -> list[Event]:
    tasks = list(tasks)
    info = {
        "Stage ID": number, "Stage Attempt ID": 0, "Stage Name": "collect", "Parent IDs": [],
        "Number of Tasks": len(tasks), "Submission Time": start,
    }  # fmt: skip
    completed = {**info, "Completion Time": end, "Accumulables": [{"ID": metric}]}
    return [
        {"Event": "SparkListenerStageSubmitted", "Stage Info": info},
        *tasks,
        {"Event": "SparkListenerStageCompleted", "Stage Info": completed},
    ]


def node(name: str, *children: Event, text: str = "", **metrics: int) -> Event:
    counted = [
        {"name": name.replace("_", " "), "accumulatorId": id} for name, id in metrics.items()
    ]
    return {
        "nodeName": name, "simpleString": f"{name} {text}", "metrics": counted,
        "children": children,
    }  # fmt: skip


def plan(partitioning: str = "hashpartitioning(key#1, 4)") -> Event:
    scan = node(
        "Scan parquet ", scan_time=SCANNED, number_of_files_read=FILES,
        size_of_files_read=FILE_BYTES,
    )  # fmt: skip
    exchange = node("Exchange", scan, text=partitioning, data_size=WRITTEN)
    read = node("AQEShuffleRead", node("ShuffleQueryStage", exchange, text="0"))
    return node("AdaptiveSparkPlan", node("HashAggregate", read, time=AGGREGATED))


def application(conf: Mapping[str, str] = CONF, cores: int = 2) -> list[Event]:
    return [
        {"Event": "SparkListenerApplicationStart", "App Name": "report", "Timestamp": 0},
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": dict(conf)},
        {
            "Event": "SparkListenerExecutorAdded", "Timestamp": 0, "Executor ID": "1",
            "Executor Info": {"Total Cores": cores},
        },
    ]  # fmt: skip


def query(number: int = 3, decided: Iterable[Event] | None = None, **start: Any) -> list[Event]:
    """100 ms of planning; two tasks that scan for a second; 50 ms; two that read for 0.5 and 0.3 s;
    20 ms until the query has ended.
    """
    writers = [task(10 * number, 100, 1100, wrote=4 << 20, scan=20 << 20) for _ in range(2)]
    readers = [
        task(10 * number + 1, 1150, 1650, read=5 << 20),
        task(10 * number + 1, 1150, 1450, read=3 << 20),
    ]
    started = {
        "Event": f"{SQL}ExecutionStart", "executionId": number, "description": "the daily report",
        "time": 0, "sparkPlanInfo": plan(), **start,
    }  # fmt: skip
    job = {
        "Event": "SparkListenerJobStart", "Stage IDs": [10 * number, 10 * number + 1],
        "Properties": {"spark.sql.execution.id": str(number)},
    }  # fmt: skip
    return [
        started,
        job,
        *stage(10 * number, 100, 1100, writers, WRITTEN),
        *([decision(number)] if decided is None else decided),
        *stage(10 * number + 1, 1150, 1650, readers, AGGREGATED),
        {"Event": f"{SQL}ExecutionEnd", "executionId": number, "time": 1670},
    ]


def write(path: Path, events: Iterable[Event]) -> Path:
    path.write_text("".join(f"{json.dumps(event, separators=(',', ':'))}\n" for event in events))
    return path
