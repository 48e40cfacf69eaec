"""Faults around a stream: only the query's own error ends it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from apportion.streaming.checkpoint import PendingRescale
from apportion.streaming.controller import Stream
from apportion.streaming.policies import BatchTime, Load, Wanted

from .fake_spark import JOURNAL, PENDING, FakeSpark

SLOW_DOWN = OSError("503 slow down")


class Twice:
    """Policy that wants twice as many partitions, up to eight."""

    name = "twice"

    def wanted(self, load: Load) -> Wanted:
        return Wanted(max(load.partitions, min(8, 2 * load.partitions)), "it is a test")


class Same:
    """Policy that keeps the number."""

    name = "same"

    def wanted(self, load: Load) -> Wanted:
        return Wanted(load.partitions, "it is a test")


class UnsupportedError(PySparkException):
    def getCondition(self) -> str:  # noqa: N802
        return "STATE_REPARTITION_INVALID_CHECKPOINT.UNSUPPORTED_STATEFUL_OPERATOR"


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    return FakeSpark(monkeypatch)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Each stream ends its thread."""
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.levelno >= logging.WARNING]


def events(stream: Stream) -> list[str]:
    return [record.event for record in stream.records if record.event != "batch"]


@pytest.mark.parametrize(
    ("call", "task"),
    [
        (f"write {JOURNAL}", "write its journal"),
        ("report_stream", "report its records to Spark"),
        ("most_slots", "read the task slots"),
        ("decide", "ask the policy twice"),
        ("await_batch", "read the batches of its query"),
    ],
)
def test_a_failure_of_bookkeeping_is_logged_once_and_the_query_goes_on(
    spark: FakeSpark, call: str, task: str, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("apportion.streaming.bookkeeping._JOURNAL_SECONDS", 0)
    monkeypatch.setattr("apportion.streaming.bookkeeping._JOURNAL_SHARE", 1)
    monkeypatch.setattr("apportion.streaming.controller._SLOTS_SECONDS", 0)
    spark.fail(call, SLOW_DOWN, times=5)
    stream = spark.start(Twice())
    spark.run(20)
    stream.stop()
    assert warnings(caplog) == [f"the stream in /checkpoint cannot {task}, and tries again"]
    assert spark.calls[call] > 5
    assert spark.calls["stop"] >= 2
    assert stream.partitions == 8
    assert events(stream) == ["rescale", "rescale", "ended"]
    assert len(spark.files[JOURNAL].splitlines()) == len(stream.records)


def test_the_number_of_slots_stays_when_spark_does_not_tell_it(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apportion.streaming.controller._SLOTS_SECONDS", 0)
    stream = spark.start(BatchTime())
    spark.run(3)
    spark.fail("most_slots", SLOW_DOWN)
    spark.run(3)
    stream.stop()
    assert {record.slots for record in stream.records} == {64}


class Broken:
    name = "broken"

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def wanted(self, load: Load) -> Wanted:
        if isinstance(self._answer, Exception):
            raise self._answer
        return Wanted(self._answer, "it is a test")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [ValueError("no such table"), None, "8", 8.5, float("nan")])
def test_a_policy_that_fails_keeps_the_number(
    spark: FakeSpark, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    stream = spark.start(Broken(answer))
    spark.run(10)
    stream.stop()
    assert (stream.partitions, events(stream)) == (2, ["ended"])
    assert len(warnings(caplog)) == 1
    assert stream.records[-2].reason == "the number stays, because the policy failed"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_exit_in_a_policy_ends_the_stream(
    spark: FakeSpark, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda hook: raised.append(hook.exc_value))
    monkeypatch.setattr(Twice, "wanted", lambda *_: (_ for _ in ()).throw(error))
    stream = spark.start(Twice())
    spark.batches = 5
    with pytest.raises(type(error)):
        stream.await_termination(5)
    assert raised == [error]
    assert spark.calls["stop"] == 1


def test_the_error_of_the_query_is_logged_and_raised(
    spark: FakeSpark, caplog: pytest.LogCaptureFixture
) -> None:
    stream = spark.start(Twice())
    spark.run(3)
    spark.query_error = StreamingQueryException("the disk is full")
    for call in (stream.await_termination, stream.stop):
        with pytest.raises(StreamingQueryException, match="the disk is full"):
            call()
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.message == "the stream in /checkpoint has ended with an error"
    assert record.exc_info
    assert stream.records[-1].reason == "the stream ended with an error: the disk is full"


def interrupted(spark: FakeSpark) -> None:
    """Leave a repartition to 4 partitions that has written some state."""
    stream = spark.start(Same())
    spark.run(3)
    stream.stop()
    batch = spark.begin_batch(4)
    spark.files[f"state/0/0/{batch + 1}.zip"] = ""
    spark.files[PENDING] = json.dumps(vars(PendingRescale(2, 4, "", "/out")))
