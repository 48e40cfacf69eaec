"""Faults around a stream: only the query's own error ends it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from apportion.errors import InputError
from apportion.streaming.checkpoint import Checkpoint, PendingRescale
from apportion.streaming.controller import _SINK_ATTEMPTS, Stream
from apportion.streaming.policies import BatchTime, Load, Wanted

from . import fake_spark
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
    before = set(threading.enumerate())
    yield
    # Threads of tests before may end meanwhile.
    assert set(threading.enumerate()) <= before


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.levelno >= logging.WARNING]


def events(stream: Stream) -> list[str]:
    return [record.event for record in stream.records if record.event != "batch"]


@pytest.mark.parametrize(
    ("call", "task"),
    [
        (f"write {JOURNAL}", "write its journal"),
        (f"read {JOURNAL}", "write its journal"),
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


def test_a_stream_without_a_name_is_called_by_its_sink_or_checkpoint(spark: FakeSpark) -> None:
    stream = spark.start(Twice())
    spark.run(1)
    spark.sink_description = "ForeachBatchSink"
    spark.run(1)
    stream.stop()
    batches = [record.stream for record in stream.records if record.event == "batch"]
    assert batches == ["out (query)", "checkpoint (query)"]


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


def test_a_lost_jvm_ends_the_stream(spark: FakeSpark, caplog: pytest.LogCaptureFixture) -> None:
    lost = ConnectionError("the JVM has ended")
    stream = spark.start(Twice())
    spark.run(3)
    for call in ("await_batch", "isActive", "stop", "report_stream"):
        spark.fail(call, lost)
    with pytest.raises(ConnectionError, match="the JVM has ended"):
        stream.await_termination(5)
    assert "the stream in /checkpoint has ended with an error" in warnings(caplog)


def test_a_note_that_cannot_be_written_leaves_the_query_alone(spark: FakeSpark) -> None:
    spark.fail(f"write {PENDING}", SLOW_DOWN, times=1)
    stream = spark.start(Twice(), cooldown=50)
    spark.run(4)
    assert (spark.calls["stop"], stream.partitions, events(stream)) == (0, 2, ["failure"])
    spark.run(8)
    stream.stop()
    assert stream.partitions == 4


def test_a_sink_that_fails_keeps_the_note_and_the_new_number(
    spark: FakeSpark, caplog: pytest.LogCaptureFixture
) -> None:
    # An attempt follows each batch.
    spark.fail("complete_sink", SLOW_DOWN, times=_SINK_ATTEMPTS + 3)
    stream = spark.start(Twice())
    spark.run(2)
    assert (stream.partitions, spark.partitions()) == (4, 4)
    spark.run(2)
    assert PENDING in spark.files
    # No rescale begins before the sink has the batch of this one.
    spark.run(2)
    stream.stop()
    assert events(stream) == ["rescale", "ended"]
    assert PENDING not in spark.files
    assert spark.sink == set(range(spark.last("commits") + 1))
    assert len(warnings(caplog)) == 1


def test_the_batch_after_a_rescale_waits_for_a_sink_that_fails_for_seconds(
    spark: FakeSpark,
) -> None:
    spark.fail("complete_sink", SLOW_DOWN, times=10)
    stream = spark.start(Twice())
    spark.run(2)
    assert spark.sink == set(range(spark.last("commits") + 1))
    stream.stop()


def test_the_next_start_completes_the_sink_of_a_rescale(spark: FakeSpark) -> None:
    spark.fail("complete_sink", SLOW_DOWN)
    stream = spark.start(Twice())
    spark.run(5)
    stream.stop()
    assert spark.sink != set(range(spark.last("commits") + 1))
    del spark.failures["complete_sink"]
    stream = spark.start(Twice())
    assert PENDING not in spark.files
    assert spark.sink == set(range(spark.last("commits") + 1))
    stream.stop()


def test_a_batch_that_the_stop_has_interrupted_ends_before_the_rescale(spark: FakeSpark) -> None:
    spark.interrupts_batches = True
    stream = spark.start(Twice(), cooldown=1000)
    spark.run(4)
    spark.interrupts_batches = False
    stream.stop()
    assert stream.rescales[0].batch == 4
    assert spark.sink == set(range(spark.last("commits") + 1))


def test_the_error_of_an_interrupted_batch_ends_the_stream(spark: FakeSpark) -> None:
    spark.interrupts_batches = True
    spark.fail("await", StreamingQueryException("the disk is full"))
    stream = spark.start(Twice())
    spark.batches = 2
    with pytest.raises(StreamingQueryException, match="the disk is full"):
        stream.await_termination(5)
    # The next start continues the rescale.
    assert PENDING in spark.files
    assert events(stream) == ["ended"]


def test_a_refusal_is_tried_again_after_the_cooldown(spark: FakeSpark) -> None:
    spark.fail("repartition", SLOW_DOWN, times=1)
    stream = spark.start(Twice(), cooldown=50)
    spark.run(4)
    assert (events(stream), stream.partitions, spark.partitions()) == (["failure"], 2, 2)
    assert not any(name.startswith("state/") for name in spark.files)
    spark.run(8)
    stream.stop()
    assert events(stream) == ["failure", "rescale", "ended"]
    assert (stream.partitions, spark.partitions()) == (4, 4)


def test_a_state_that_spark_does_not_support_is_not_tried_again(spark: FakeSpark) -> None:
    spark.fail("repartition", UnsupportedError("limit"))
    stream = spark.start(Twice())
    spark.run(20)
    stream.stop()
    assert (events(stream), stream.partitions) == (["failure", "ended"], 2)
    assert spark.calls["repartition"] == 1


def test_a_repartition_that_took_effect_counts_although_it_failed(spark: FakeSpark) -> None:
    repartition = spark.repartition_state

    def disconnected(*arguments: object) -> None:
        repartition(*arguments)  # type: ignore[arg-type]
        raise OSError("connection reset")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("apportion._spark.jvm.repartition_state", disconnected)
        stream = spark.start(Twice(), cooldown=1000)
        spark.run(3)
    assert (stream.partitions, spark.partitions()) == (4, 4)
    stream.stop()
    assert spark.sink == set(range(spark.last("commits") + 1))


def interrupted(spark: FakeSpark) -> None:
    """Leave a repartition to 4 partitions that has written some state."""
    stream = spark.start(Same())
    spark.run(3)
    stream.stop()
    batch = spark.begin_batch(4)
    spark.files[f"state/0/0/{batch + 1}.zip"] = ""
    spark.files[PENDING] = json.dumps(vars(PendingRescale(2, 4, "", "/out")))


def test_the_repartition_of_another_writer_is_not_undone(spark: FakeSpark) -> None:
    interrupted(spark)
    before = dict(spark.files)
    spark.fail("repartition before it begins", SLOW_DOWN, times=1)
    with pytest.raises(OSError, match="503"):
        spark.start(Same())
    assert spark.files == before
    stream = spark.start(Same())
    assert (stream.partitions, spark.partitions(), PENDING in spark.files) == (4, 4, False)
    stream.stop()


def test_the_next_start_makes_a_rescale_that_was_only_noted(spark: FakeSpark) -> None:
    interrupted(spark)
    del spark.files[f"offsets/{spark.last('offsets')}"]
    stream = spark.start(Same())
    assert (stream.partitions, spark.partitions(), PENDING in spark.files) == (4, 4, False)
    stream.stop()


def test_a_sink_does_not_get_a_batch_that_may_be_undone(spark: FakeSpark) -> None:
    interrupted(spark)
    fake: Any = spark
    Checkpoint(fake, "/checkpoint").complete_sink("/out")
    assert spark.last("offsets") not in spark.sink


def test_an_interrupted_repartition_that_spark_does_not_support_is_undone(spark: FakeSpark) -> None:
    interrupted(spark)
    spark.fail("repartition", UnsupportedError("limit"))
    stream = spark.start(Same())
    stream.stop()
    assert (stream.partitions, spark.partitions(), PENDING in spark.files) == (2, 2, False)
    assert not any(name.startswith("state/") for name in spark.files)


@pytest.mark.parametrize("returned", [None, "a query"])
def test_a_build_that_returns_no_writer_is_named(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, returned: object
) -> None:
    monkeypatch.setattr(fake_spark, "FakeWriter", lambda _: returned)
    with pytest.raises(InputError, match=f"build returns {returned!r}: allowed is a DataStream"):
        spark.start(Same())


def test_the_journal_keeps_the_records_of_earlier_runs(
    spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        stream = spark.start(Same())
        spark.run(3)
        stream.stop()
    batches = [json.loads(line)["batch"] for line in spark.files[JOURNAL].splitlines()]
    assert batches == [0, 1, 2, 2, 3, 4, 5, 5]
    monkeypatch.setattr("apportion.streaming.bookkeeping._MOST_RECORDS", 6)
    stream = spark.start(Same())
    spark.run(3)
    stream.stop()
    batches = [json.loads(line)["batch"] for line in spark.files[JOURNAL].splitlines()]
    assert batches == [5, 5, 6, 7, 8, 8]


def test_a_stream_stops_to_grow_when_a_rescale_saved_nothing(spark: FakeSpark) -> None:
    spark.seconds = lambda partitions: 25.0
    stream = spark.start(BatchTime())
    spark.run(60)
    stream.stop()
    assert stream.partitions == 8
    assert events(stream) == ["rescale", "ended"]
    assert stream.records[-2].reason == (
        "batches took 25.0 s of a 10.0 s trigger, limited because the last rescale saved 0% of "
        "the time of a row"
    )
