"""Records of streams, as JSON and back."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from apportion.errors import InputError
from apportion.logs.stream_record import StreamRecord, read_line
from apportion.streaming.policies import Load, Wanted
from apportion.streaming.sizes import Bounds

from .test_policies import LOAD
from .test_report import RECORD


def test_a_record_stays_the_same_through_json() -> None:
    record = StreamRecord.from_json(RECORD)
    assert read_line(json.dumps(record.to_json())) == record


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": None}, "Expected `int`, got `null` - at `$.batch`"),
        ({"batch": "7"}, "Expected `int`, got `str` - at `$.batch`"),
        ({"batch": True}, "Expected `int`, got `bool` - at `$.batch`"),
        ({"batch": 10**400}, "at `$.batch`"),
        ({"slots": 1.5}, "Expected `int`, got `float` - at `$.slots`"),
        ({"partitions": -1}, "Expected `int` >= 0 - at `$.partitions`"),
        ({"input_rows_per_second": "fast"}, "at `$.input_rows_per_second`"),
        ({"input_rows_per_second": 10**400}, "at `$.input_rows_per_second`"),
        ({"input_rows_per_second": math.nan}, "at `$.input_rows_per_second`"),
        ({"largest_share": 1.1}, "Expected `float` <= 1.0 - at `$.largest_share`"),
        ({"at": "yesterday"}, "at `$.at`"),
        ({"at": "2026-03-01T10:00:00"}, "Expected `datetime` with a timezone"),
        ({"at": "0001-01-01T00:00:00+14:00"}, "not in the years 1970 to 9999"),
        ({"at": "9999-12-31T23:59:59-14:00"}, "not in the years 1970 to 9999"),
        ({"event": "party"}, "at `$.event`"),
        ({"reason": 5}, "Expected `str`, got `int` - at `$.reason`"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        StreamRecord.from_json({**RECORD, **changed})


def test_a_time_of_another_zone_becomes_utc() -> None:
    record = StreamRecord.from_json({**RECORD, "at": "2026-03-01T12:30:00+02:30"})
    assert record.at.isoformat() == "2026-03-01T10:00:00+00:00"


def test_texts_have_no_control_characters() -> None:
    record = StreamRecord.from_json({**RECORD, "stream": "\x1b]0;owned\x07\nEnded"})
    assert record.stream == "\ufffd]0;owned\ufffd\ufffdEnded"


@pytest.mark.parametrize("line", ["", "{", "[]", "7", "[" * 100_000, '{"at": "\ud800"}'])
def test_a_line_that_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="record of a stream"):
        read_line(line)


def bounded(partitions: int, needed: int, least: int = 1, most: int = 64) -> Wanted:
    load: Load = LOAD
    return Bounds(least, most, 1 << 20).apply(Wanted(partitions, "late"), needed, load)


def test_the_bytes_of_the_state_are_a_minimum() -> None:
    assert bounded(4, needed=16) == Wanted(
        16, "the state of 1 MiB needs 16 partitions with 1 MiB each"
    )
    assert bounded(32, needed=16) == Wanted(32, "late")


def test_bounds_limit_the_number_and_are_in_the_reason() -> None:
    assert bounded(4, 1, least=8) == Wanted(8, "late, limited by min_partitions")
    assert bounded(128, 1) == Wanted(64, "late, limited by max_partitions")
