"""Values of events, checked: a log can have any value in any field."""

from __future__ import annotations

from typing import Any

from apportion.decision import InvalidRecordError
from apportion.redaction import printable

# Numbers above it do not fit into 64 bits.
LARGEST = 2**63
# The end of the year 9999, which is the last one of `datetime`, in milliseconds since 1970.
_LAST_TIME = 253_402_300_799_999


def text(value: object) -> str:
    return printable(str(value))


def optional_text(value: object) -> str | None:
    return None if value is None else text(value)


def optional_int(value: object) -> int | None:
    if value is None:
        return None
    number = int(str(value))
    if not 0 <= number < LARGEST:
        raise InvalidRecordError("a number is out of range")
    return number


def ratio(value: object) -> float:
    ratio = float(str(value))
    if not 0 <= ratio < LARGEST:
        raise InvalidRecordError("a ratio is out of range")
    return ratio


def metric(value: object) -> int:
    """Return the value of a metric; 0 for values that are not numbers, or too large."""
    try:
        number = int(str(value))
    except ValueError:
        return 0
    return number if -LARGEST <= number < LARGEST else 0


def millis(value: Any) -> int:
    """Return a time in milliseconds since 1970. Later code converts it to floats and dates."""
    time = int(value)
    if not 0 <= time <= _LAST_TIME:
        raise InvalidRecordError("a time is out of range")
    return time


def time(value: object) -> int | None:
    return None if value is None else millis(value)


def texts(pairs: Any) -> dict[str, str]:
    items = pairs.items() if isinstance(pairs, dict) else pairs
    return {text(key): text(value) for key, value in items}
