"""Records of a stream with a peak of its load, and a rescale in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BATCH: dict[str, Any] = {
    "stream": "clicks", "query_id": "q-1", "run_id": "r-1", "at": "2026-03-01T10:00:00+00:00",
    "event": "batch", "batch": 0, "policy": "load", "partitions": 8, "target": 8, "slots": 4,
    "batch_millis": 12000, "trigger_millis": 30000, "input_rows": 90000,
    "input_rows_per_second": 3000.0, "processed_rows_per_second": 7500.0, "backlog_rows": 0,
    "state_rows": 50000, "state_bytes": 5 << 20, "reason": "8 partitions: the load is in bounds",
}  # fmt: skip
RESCALE: dict[str, Any] = {
    **BATCH, "event": "rescale", "partitions": 16, "target": 16, "from_partitions": 8,
    "to_partitions": 16, "stop_millis": 700, "repartition_millis": 5600, "start_millis": 1900,
    "pause_millis": 8200,
    "reason": "8 -> 16 partitions: batches took 41 s of a 30 s trigger for 5 minutes",
}  # fmt: skip


def peak() -> list[dict[str, Any]]:
    """30 batches, one each half minute. From batch 10 on they take 41 s, after a rescale 25 s."""
    records: list[dict[str, Any]] = []
    for number in range(30):
        at = f"2026-03-01T10:{number // 2:02}:{number % 2 * 30:02}.500000+00:00"
        if number == 20:
            records.append({**RESCALE, "batch": number, "at": at})
        duration = 12000 if number < 10 else 41000 if number < 20 else 25000
        partitions = 8 if number < 20 else 16
        fields = {"batch": number, "at": at, "batch_millis": duration, "partitions": partitions}
        records.append({**BATCH, **fields, "backlog_rows": 1000 * max(0, number - 10)})
    return records


def written(directory: Path, records: list[dict[str, Any]]) -> Path:
    """Return an event log with records of streams."""
    log = directory / "log"
    events = [{"Event": "io.apportion.streams.StreamEvent", "stream": record} for record in records]
    log.write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")
    return log
