"""Batches of a stream, as Spark reports them."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from apportion.errors import InputError
from apportion.logs.stream_record import (
    LARGEST_COUNT,
    Count,
    Partitions,
    name_by_place,
    time_in_utc,
)
from apportion.redaction import one_line


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
    """Name of the query, or else of the folder that it writes to, or else its id."""
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
    def from_progress(cls, content: object) -> Batch:
        """Return the batch of a progress report, which is parsed JSON.

        Raises `InputError` for a missing field, and for a value of another type.
        """
        try:
            progress = msgspec.convert(content, _Progress)
            millis = progress.batch_duration
            if millis is None:
                millis = progress.duration_ms.get("triggerExecution", 0)
            # It is below 0 if the clock was set back.
            millis = _count(millis)
            ended = progress.timestamp + datetime.timedelta(milliseconds=millis)
        except (msgspec.ValidationError, OverflowError) as error:
            raise InputError(f"not a batch of a stream: {error}") from None
        return cls(
            id=progress.batch_id,
            name=one_line(progress.name or name_by_place(progress.file_sink or "", progress.id)),
            query_id=one_line(progress.id),
            run_id=one_line(progress.run_id),
            ended=time_in_utc(ended),
            seconds=millis / 1000,
            input_rows=progress.num_input_rows,
            input_rows_per_second=_rate(progress.input_rows_per_second),
            processed_rows_per_second=_rate(progress.processed_rows_per_second),
            backlog_rows=_backlog(progress.sources),
            operators=[each.operator() for each in progress.state_operators],
        )

    def with_bytes(self, sizes: Mapping[str, Any] | None) -> Batch:
        """Return the batch with its bytes, as `jvm.await_batch` returns them."""
        if sizes is None:
            return self
        return dataclasses.replace(
            self, shuffled=sizes["shuffled"], broadcast_bytes=sizes["broadcast"]
        )


class _StateOperator(msgspec.Struct, rename="camel"):
    """Spark's `StateOperatorProgress`."""

    operator_name: str = ""
    num_shuffle_partitions: Partitions = 0
    num_rows_total: int = 0
    memory_used_bytes: int = 0
    commit_time_ms: int = 0
    custom_metrics: dict[str, int] | None = None

    def operator(self) -> Operator:
        files = (self.custom_metrics or {}).get("rocksdbSstFileSize", 0)
        return Operator(
            name=self.operator_name,
            partitions=self.num_shuffle_partitions,
            rows=_count(self.num_rows_total),
            bytes=_count(max(self.memory_used_bytes, files)),
            commit_millis=_count(self.commit_time_ms),
        )


class _Progress(msgspec.Struct, rename="camel"):
    """Spark's `StreamingQueryProgress`."""

    id: str
    run_id: str
    timestamp: Annotated[datetime.datetime, msgspec.Meta(tz=True)]
    batch_id: Count
    name: str | None = None
    batch_duration: int | None = None
    duration_ms: dict[str, int] = {}
    num_input_rows: Count = 0
    # The first batch has the rate NaN, which JSON writes as text or leaves out.
    input_rows_per_second: Any = None
    processed_rows_per_second: Any = None
    state_operators: list[_StateOperator] = []
    sources: list[dict[str, Any]] = []
    sink: Any = None

    @property
    def file_sink(self) -> str | None:
        return file_sink(self.sink.get("description")) if isinstance(self.sink, dict) else None


def file_sink(description: object) -> str | None:
    """Return the path of a file sink by Spark's description of it; None for other sinks."""
    # Spark shows a file sink as FileSink[path] (FileStreamSink.toString), and has no field for it.
    path = re.fullmatch(r"FileSink\[(.+)\]", str(description))
    return path[1] if path else None


def _rate(value: object) -> float:
    is_number = isinstance(value, int | float) and 0 <= value <= LARGEST_COUNT
    return float(value) if is_number else 0.0  # type: ignore[arg-type]


def _count(number: int) -> int:
    """Return a number of rows, bytes or milliseconds. Spark writes -1 for an unknown one."""
    return min(max(number, 0), LARGEST_COUNT)


def _backlog(sources: Sequence[Mapping[str, Any]]) -> int | None:
    known = [rows for rows in map(_source_backlog, sources) if rows is not None]
    return _count(sum(known)) if known else None


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
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return {}
    if not isinstance(value, dict):
        return {}
    # The log offset of files counts batches, not rows.
    if isinstance(value.get("offset"), int):
        return {("offset",): value["offset"]}
    return {
        (topic, partition): offset
        for topic, partitions in value.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }
