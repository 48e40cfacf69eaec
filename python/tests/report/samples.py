"""Plans, runs and logs for tests."""

from __future__ import annotations

import dataclasses

from apportion.logs.eventlog import PlanNode
from apportion.logs.report.runs import LogRuns, QueryRun

KEYS = "HashAggregate(keys=[k#1], functions=[{}sum(v#2)])"
SCAN = "FileScan parquet db.sales[k#1,v#2] Batched: true, DataFilters: [], Format: Parquet"


def node(text: str, *children: PlanNode, name: str = "") -> PlanNode:
    return PlanNode(name or text.partition("(")[0].split(" ")[0], text, {}, list(children))


def scan(columns: str = "k#1,v#2", table: str = "db.sales") -> PlanNode:
    text = SCAN.replace("k#1,v#2", columns).replace("db.sales", table)
    return node(text, name=f"Scan parquet {table}")


def exchange(child: PlanNode, partitions: int = 200) -> PlanNode:
    return node(f"Exchange hashpartitioning(k#1, {partitions}), ENSURE_REQUIREMENTS", child)


def aggregate(child: PlanNode, text: str = KEYS) -> PlanNode:
    partial = node(text.format("partial_"), child)
    return node(text.format(""), exchange(partial))


def run(seconds: float = 10.0, core_seconds: float = 40.0, **values: object) -> QueryRun:
    made = QueryRun(
        id=0,
        description="the daily report",
        fingerprint="a",
        reads_tables=True,
        has_succeeded=True,
        seconds=seconds,
        core_seconds=core_seconds,
        tasks=8,
        file_bytes=0,
        scanned_bytes=0,
        shuffled_bytes=0,
        spilled_bytes=0,
        failed_tasks=0,
        memory_failures=0,
    )
    return dataclasses.replace(made, **values)  # type: ignore[arg-type]


def log(*runs: QueryRun, name: str = "nightly", path: str = "log") -> LogRuns:
    return LogRuns(path, name, "4.1.1", False, list(runs), [])
