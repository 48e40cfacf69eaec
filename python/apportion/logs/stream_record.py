"""Records of what a stream did: batches, rescales and failures.

The controller writes them, and `apportion_streams()`, journals and event logs have them. Journals
and event logs are untrusted input, so one parser checks all records that are read.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated, Any, Literal

import msgspec

from apportion.errors import InputError
from apportion.redaction import one_line

Event = Literal["batch", "rescale", "failure", "ended"]
# Floats represent all whole numbers up to this one, and sums of many of them are finite.
LARGEST_COUNT = 2**53
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
Partitions = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Rate = Annotated[float, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class StreamRecord:
    """State of a stream when a batch or a rescale ended. Times are milliseconds.

    The fields are the columns of `SELECT * FROM apportion_streams()`.
    """

    stream: str
    """Name of the query. Without one, it is as `name_by_place` returns it."""
    query_id: str
    """Spark's id of the streaming query, which stays over restarts."""
    run_id: str
    """Spark's id of this run."""
    at: Annotated[datetime.datetime, msgspec.Meta(tz=True)]
    """Time in UTC."""
    event: Event
    """batch (a batch ended), rescale (the first batch after a rescale ended), failure (a rescale
    failed, and the query continues as before), or ended."""
    # Before the first batch, Spark has the id -1.
    batch: Annotated[int, msgspec.Meta(ge=-1, le=LARGEST_COUNT)]
    """Id of the batch."""
    policy: str
    """Name of the policy: fixed, load, lag, or the class of your own policy."""
    partitions: Partitions
    """State partitions now."""
    target: Partitions
    """State partitions that the policy wants now."""
    slots: Partitions
    """Task slots of the application; 0 if they are not known yet."""
    batch_millis: Count
    trigger_millis: Count | None = None
    """Interval of the trigger; None if a batch starts as soon as the one before has ended."""
    input_rows: Count
    input_rows_per_second: Rate
    processed_rows_per_second: Rate
    backlog_rows: Count | None = None
    """Rows that no batch has read yet; None if the sources do not report them."""
    state_rows: Count
    state_bytes: Count
    reason: str
    """The decision in one sentence."""
    batch_bytes: Count | None = None
    """Bytes that the batch shuffled to the state partitions; None if they are not known."""
    largest_share: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """Share of these bytes in the largest partition, from 0 to 1."""
    from_partitions: Partitions | None = None
    to_partitions: Partitions | None = None
    stop_millis: Count | None = None
    """Time to stop the query and to finish its interrupted batch."""
    repartition_millis: Count | None = None
    start_millis: Count | None = None
    """Time from the start to the end of the first batch."""
    pause_millis: Count | None = None
    """Time from the stop to the end of the first batch after it."""

    @property
    def at_millis(self) -> int:
        """Time in milliseconds since 1970."""
        return int(self.at.timestamp() * 1000)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as data for JSON."""
        # Not `asdict`, which copies each value.
        return {**vars(self), "at": self.at.isoformat()}

    @classmethod
    def from_json(cls, content: object) -> StreamRecord:
        """Return the record in parsed JSON. Unknown fields are ignored.

        Raises `InputError` for a missing field, and for a value of another type or size.
        """
        try:
            record = msgspec.convert(content, cls)
        except msgspec.ValidationError as error:
            raise InputError(f"not a record of a stream: {error}") from None
        texts: dict[str, Any] = {
            name: one_line(value) for name, value in vars(record).items() if isinstance(value, str)
        }
        return dataclasses.replace(record, at=time_in_utc(record.at), **texts)


def name_by_place(path: str, query_id: str) -> str:
    """Return a name for a query without one: the last part of a path, and the start of its id."""
    last = path.rstrip("/").rpartition("/")[2]
    return f"{last} ({query_id[:8]})" if last else query_id


def read_line(line: str) -> StreamRecord:
    """Return the record in a line of a journal. Raises `InputError` for an invalid line."""
    try:
        content = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InputError(f"not a record of a stream: {error}") from None
    return StreamRecord.from_json(content)


def time_in_utc(time: datetime.datetime) -> datetime.datetime:
    """Return a time with the offset of UTC. Raises `InputError` for a time before 1970."""
    try:
        converted = time.astimezone(datetime.timezone.utc)
    except OverflowError:
        converted = time
    if converted.year < 1970 or converted.utcoffset():
        raise InputError("the time of a stream is not in the years 1970 to 9999")
    return converted
