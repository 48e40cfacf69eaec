"""Records of what a stream did: batches, rescales and failures."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any, Literal

from apportion.errors import InputError

Event = Literal["batch", "rescale", "failure", "ended"]
EVENTS: tuple[Event, ...] = ("batch", "rescale", "failure", "ended")


@dataclasses.dataclass(frozen=True)
class StreamRecord:
    """State of a stream when a batch or a rescale ended. Times are milliseconds.

    The fields are the columns of `SELECT * FROM apportion_streams()`.
    """

    stream: str
    """Name of the query, or its id if it has no name."""
    query_id: str
    """Spark's id of the streaming query, which stays over restarts."""
    run_id: str
    """Spark's id of this run."""
    at: datetime.datetime
    """Time in UTC."""
    event: Event
    """batch (a batch ended), rescale (the first batch after a rescale ended), failure (a rescale
    failed, and the query continues as before), or ended."""
    batch: int
    """Id of the batch."""
    policy: str
    """Name of the policy: fixed, load, lag, or the class of your own policy."""
    partitions: int
    """State partitions now."""
    target: int
    """State partitions that the policy wants now."""
    slots: int
    """Task slots of the application."""
    batch_millis: int
    trigger_millis: int | None
    """Interval of the trigger; None if a batch starts as soon as the one before has ended."""
    input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    backlog_rows: int | None
    """Rows that no batch has read yet; None if the sources do not report them."""
    state_rows: int
    state_bytes: int
    reason: str
    """The decision in one sentence."""
    batch_bytes: int | None = None
    """Bytes that the batch shuffled to the state partitions; None if they are not known."""
    largest_share: float | None = None
    """Share of these bytes in the largest partition, from 0 to 1."""
    from_partitions: int | None = None
    to_partitions: int | None = None
    stop_millis: int | None = None
    """Time to stop the query and to finish its interrupted batch."""
    repartition_millis: int | None = None
    start_millis: int | None = None
    """Time from the start to the end of the first batch."""
    pause_millis: int | None = None
    """Time from the stop to the end of the first batch after it."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as data for JSON."""
        # Not `asdict`, which copies each value.
        return {**vars(self), "at": self.at.isoformat()}

    @classmethod
    def from_json(cls, record: object) -> StreamRecord:
        """Return the record in parsed JSON. Unknown fields are ignored.

        Raises `InputError` for a missing field and for a value of another type.
        """
        if not isinstance(record, dict):
            raise InputError(f"a record of a stream is an object, not {type(record).__name__}")
        values: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = record.get(field.name)
            if value is None and "None" not in str(field.type):
                raise InputError(f"a record of a stream has no {field.name}")
            values[field.name] = value if value is None else _typed(field.name, field.type, value)
        return cls(**values)


def read_line(line: str) -> StreamRecord:
    """Return the record in a line of a journal. Raises `InputError` for an invalid line."""
    try:
        return StreamRecord.from_json(json.loads(line))
    except ValueError as error:
        raise InputError(f"not a record of a stream: {error}") from None


def _typed(name: str, kind: object, value: object) -> object:
    expected = str(kind).removesuffix(" | None")
    if expected == "datetime.datetime" and isinstance(value, str):
        try:
            at = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise InputError(f"{name} of a stream is {value!r}, which is not a time") from None
        return at if at.tzinfo else at.replace(tzinfo=datetime.timezone.utc)
    if expected == "Event" and value in EVENTS:
        return value
    if expected == "str" and isinstance(value, str):
        return value
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if expected == "int" and is_number:
        return value
    if expected == "float" and (is_number or isinstance(value, float)):
        return float(value)  # type: ignore[arg-type]
    raise InputError(f"{name} of a stream is {value!r}: allowed is {_allowed(expected)}")


def _allowed(expected: str) -> str:
    if expected == "Event":
        return f"one of {', '.join(EVENTS)}"
    return {"int": "a whole number", "float": "a number", "str": "text"}.get(expected, "a time")
