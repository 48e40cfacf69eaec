"""Histories of a stream whose batches follow a known model of their time."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from typing import Any

from apportion.logs.stream_record import StreamRecord
from apportion.streaming.journal import History

BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
TRIGGER = 10
OVERHEAD, TASK, ROW = 0.5, 0.2, 0.0003


def batch_seconds(rows: int, partitions: int, slots: int) -> float:
    return OVERHEAD + math.ceil(partitions / slots) * (TASK + ROW * rows / partitions)


def record(number: int, rows: int = 10_000, partitions: int = 4, **changed: Any) -> StreamRecord:
    slots = changed.get("slots", 4)
    seconds = batch_seconds(rows, partitions, slots)
    values: dict[str, Any] = {
        "stream": "clicks",
        "query_id": "query-1",
        "run_id": "run-1",
        "at": BEGIN + datetime.timedelta(seconds=number * TRIGGER + seconds),
        "event": "batch",
        "batch": number,
        "policy": "load",
        "partitions": partitions,
        "target": partitions,
        "slots": slots,
        "batch_millis": round(seconds * 1000),
        "trigger_millis": TRIGGER * 1000,
        "input_rows": rows,
        "input_rows_per_second": rows / TRIGGER,
        "processed_rows_per_second": rows / seconds,
        "backlog_rows": 0,
        "state_rows": 3_000,
        "state_bytes": 5 << 20,
        "reason": f"batches took {seconds:.1f} s of a 10.0 s trigger",
    }
    return StreamRecord(**{**values, **changed})


def rescale(number: int, rows: int, before: int, after: int) -> StreamRecord:
    return record(
        number,
        rows,
        after,
        event="rescale",
        from_partitions=before,
        to_partitions=after,
        stop_millis=200,
        repartition_millis=3_000,
        start_millis=2_800,
        pause_millis=6_000,
        run_id=f"run-{number}",
        reason=f"{before} -> {after} partitions: batches took 9.9 s of a 10.0 s trigger",
    )


def history(records: Iterable[StreamRecord]) -> History:
    return History("clicks", "query-1", records=list(records))


def progress(number: int, partitions: int = 4, **changed: Any) -> dict[str, Any]:
    """What Spark's `StreamingQueryProgress.json` has, without what no code reads."""
    began = BEGIN + datetime.timedelta(seconds=number * TRIGGER)
    return {
        "id": "query-1",
        "runId": "run-1",
        "name": "clicks",
        "timestamp": f"{began:%Y-%m-%dT%H:%M:%S}.000Z",
        "batchId": number,
        "batchDuration": 3_000,
        "numInputRows": 10_000,
        "inputRowsPerSecond": 1000.0,
        "processedRowsPerSecond": 3333.3,
        "stateOperators": [
            {
                "operatorName": "stateStoreSave",
                "numRowsTotal": 3_000,
                "memoryUsedBytes": 1 << 20,
                "numShufflePartitions": partitions,
                "commitTimeMs": 40,
            }
        ],
        "sources": [],
        **changed,
    }
