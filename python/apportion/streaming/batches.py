"""Batches of a stream, as Spark reports them."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Operator:
    """A stateful operator after a batch."""

    name: str
    """Spark's name, such as stateStoreSave, dedupe or symmetricHashJoin."""
    partitions: int
    rows: int
    bytes: int
    """Bytes of state: the larger of the memory and of RocksDB's files."""
    commit_millis: int
    """Time of all tasks to commit the state."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """One batch of Spark's `StreamingQueryProgress`."""

    id: int
    name: str
    query_id: str
    run_id: str
    ended: datetime.datetime
    """Time in UTC."""
    seconds: float
    input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    backlog_rows: int | None
    """Rows that no batch has read yet; None if no source reports them."""
    operators: Sequence[Operator]
    shuffled: Sequence[int] = ()
    """Bytes that the batch shuffled to each state partition; empty if they are not known."""
    broadcast_bytes: int = 0
    """Bytes of the batch's broadcast tables."""

    @property
    def largest_share(self) -> float | None:
        """Share of the shuffled bytes in the largest partition; None if it is not known."""
        return max(self.shuffled) / sum(self.shuffled) if any(self.shuffled) else None

    @property
    def partitions(self) -> int | None:
        """State partitions; None for a stateless query and for a batch that ran no tasks."""
        return max((each.partitions for each in self.operators), default=0) or None

    @property
    def state_rows(self) -> int:
        """Rows in the state of all operators."""
        return sum(each.rows for each in self.operators)

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of all operators."""
        return sum(each.bytes for each in self.operators)

    @classmethod
    def from_progress(cls, progress: Mapping[str, Any]) -> Batch:
        """Return the batch of a progress report, which is parsed JSON."""
        durations = progress.get("durationMs") or {}
        millis = progress.get("batchDuration", durations.get("triggerExecution", 0))
        began = datetime.datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00"))
        return cls(
            id=progress["batchId"],
            name=progress.get("name") or progress["id"],
            query_id=progress["id"],
            run_id=progress["runId"],
            ended=began + datetime.timedelta(milliseconds=millis),
            seconds=millis / 1000,
            input_rows=progress.get("numInputRows", 0),
            input_rows_per_second=_rate(progress, "inputRowsPerSecond"),
            processed_rows_per_second=_rate(progress, "processedRowsPerSecond"),
            backlog_rows=_backlog(progress),
            operators=[_operator(each) for each in progress.get("stateOperators", [])],
        )

    def with_bytes(self, sizes: Mapping[str, Any] | None) -> Batch:
        """Return the batch with its bytes, as `jvm.await_batch` returns them."""
        if sizes is None:
            return self
        return dataclasses.replace(
            self, shuffled=sizes["shuffled"], broadcast_bytes=sizes["broadcast"]
        )


def _rate(progress: Mapping[str, Any], name: str) -> float:
    # The first batch has the rate NaN, which JSON writes as text or leaves out.
    rate = progress.get(name)
    return float(rate) if isinstance(rate, int | float) and 0 <= rate < float("inf") else 0.0


def _operator(operator: Mapping[str, Any]) -> Operator:
    metrics = operator.get("customMetrics") or {}
    return Operator(
        name=operator.get("operatorName", ""),
        partitions=operator.get("numShufflePartitions", 0),
        rows=operator.get("numRowsTotal", 0),
        bytes=max(operator.get("memoryUsedBytes", 0), metrics.get("rocksdbSstFileSize", 0)),
        commit_millis=operator.get("commitTimeMs", 0),
    )


def _backlog(progress: Mapping[str, Any]) -> int | None:
    sources = [_source_backlog(source) for source in progress.get("sources", [])]
    known = [rows for rows in sources if rows is not None]
    return sum(known) if known else None


def _source_backlog(source: Mapping[str, Any]) -> int | None:
    """Return the rows between the end of the batch and the newest offsets.

    Kafka reports offsets as {topic: {partition: offset}}, and rate-micro-batch as {"offset": n}.
    """
    latest, end = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
    if not latest or not end:
        return None
    return sum(max(0, offset - end.get(place, offset)) for place, offset in latest.items())


def _offsets(value: object) -> dict[tuple[str, ...], int]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, dict):
        return {}
    # The log offset of files counts batches, not rows.
    if "offset" in value:
        return {("offset",): value["offset"]}
    return {
        (topic, partition): offset
        for topic, partitions in value.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }
