"""A decision as the extension writes it to an event log."""

from __future__ import annotations

from typing import Any

RECORD: dict[str, Any] = {
    "query": 3, "group": 0, "decided_at": "2026-11-21 10:00:00.123",
    "operator": "HashAggregate", "stages": [0], "shuffles": [0],
    "input_bytes": 8 << 20, "broadcast_bytes": 0,
    "data_volume_per_task": 4 << 20, "broadcast_cap": 2 << 20, "raw": 2, "rounded": 2,
    "clamps": [], "subpartitions": 4, "levels": [4], "blocks": 8,
    "sparks_blocks": 400, "bytes_read_twice": 0, "parallelism": 2, "tasks": 2,
    "ranges": [{"start": 0, "end": 2}, {"start": 2, "end": 4}], "layout": "even",
    "largest_task_bytes": 5 << 20, "mean_task_bytes": 4 << 20, "kind": "formula",
    "reason": "2 tasks: because.", "sources": {"dataVolumePerTask": "default"},
}  # fmt: skip
