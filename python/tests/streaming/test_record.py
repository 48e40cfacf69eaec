"""Records of streams, as JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apportion.errors import InputError
from apportion.streaming.policies import Load, Wanted
from apportion.streaming.record import StreamRecord, read_line
from apportion.streaming.sizes import Bounds

from .test_policies import LOAD
from .test_report import RECORD


def test_a_record_stays_the_same_through_json() -> None:
    record = StreamRecord.from_json(RECORD)
    assert read_line(json.dumps(record.to_json())) == record


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": None}, "has no batch"),
        ({"batch": "7"}, "batch of a stream is '7': allowed is a whole number"),
        ({"batch": True}, "batch of a stream is True"),
        ({"slots": 1.5}, "slots of a stream is 1.5"),
        ({"input_rows_per_second": "fast"}, "allowed is a number"),
        ({"at": "yesterday"}, "'yesterday', which is not a time"),
        ({"event": "party"}, "allowed is one of batch, rescale, failure, ended"),
        ({"reason": 5}, "reason of a stream is 5: allowed is text"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        StreamRecord.from_json({**RECORD, **changed})


@pytest.mark.parametrize("line", ["", "{", "[]", "7"])
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
