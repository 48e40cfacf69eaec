"""Streams that rescale, in a running session."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamWriter

from apportion import ApportionError, InputError, streaming
from apportion.streaming.checkpoint import Checkpoint, PendingRescale
from tests.spark_version import since

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PACKAGE = "org.apache.spark.sql.execution.streaming.state"
ROWS = 100

pytestmark = since("4.2")


class Twice:
    """Policy that wants twice as many partitions, up to eight."""

    name = "twice"

    def wanted(self, load: streaming.Load) -> streaming.Wanted:
        return streaming.Wanted(min(8, 2 * load.partitions), "it is a test")


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Session whose streams have their state in RocksDB, with two partitions."""
    session = spark.newSession()
    session.conf.set(PROVIDER, f"{PACKAGE}.RocksDBStateStoreProvider")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    for query in session.streams.active:
        query.stop()


def write_files(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        rows = [{"k": i % 7, "v": number * ROWS + i} for i in range(ROWS)]
        (folder / f"{number:03}.json").write_text("\n".join(map(json.dumps, rows)), "utf-8")


def distinct(session: SparkSession, base: Path) -> Callable[[], DataStreamWriter]:
    """Return a query that writes distinct rows to Parquet files, one file of input per batch."""

    def build() -> DataStreamWriter:
        source = session.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        rows = source.json(str(base / "in")).dropDuplicates(["v"])
        return rows.writeStream.format("parquet").option("path", str(base / "out"))

    return build


def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition was never true"
        time.sleep(0.05)


def test_a_stream_rescales_without_losing_or_repeating_rows(
    session: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "in", 14)
    threads = set(threading.enumerate())
    stream = streaming.start(
        session,
        distinct(session, tmp_path),
        str(tmp_path / "checkpoint"),
        policy=Twice(),
        stabilization=0,
        cooldown=0,
        max_partitions=4,
    )
    wait(lambda: len(stream.rescales) == 1)
    stream.query.processAllAvailable()
    stream.stop()

    assert stream.await_termination()
    assert stream.partitions == 4
    rescale = stream.rescales[0]
    assert rescale.reason == "2 -> 4 partitions: it is a test"
    assert (rescale.from_partitions, rescale.to_partitions) == (2, 4)
    assert rescale.stop_millis is not None
    assert rescale.pause_millis is not None
    assert rescale.pause_millis >= rescale.stop_millis
    # More than ten batches: Spark merges the log of the sink after ten.
    written = session.read.parquet(str(tmp_path / "out"))
    assert sorted(row["v"] for row in written.collect()) == list(range(14 * ROWS))
    # py4j can have started threads of its own.
    started = set(threading.enumerate()) - threads
    assert "apportion-stream" not in {thread.name for thread in started}
    journal = Checkpoint(session, str(tmp_path / "checkpoint")).read_journal()
    assert [streaming.read_line(line) for line in journal] == stream.records
    rows = session.sql("SELECT event, to_partitions FROM apportion_streams()").collect()
    assert ("rescale", 4) in [tuple(row) for row in rows]


def test_a_state_that_spark_cannot_repartition_stays_as_it_was(
    session: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "in", 4)
    location = str(tmp_path / "checkpoint")
    build = distinct(session, tmp_path)
    query = build().option("checkpointLocation", location).trigger(availableNow=True).start()
    query.awaitTermination()
    checkpoint = Checkpoint(session, location)
    before = {path for path in (tmp_path / "checkpoint").rglob("*") if ".sst" not in path.name}

    # The state is written, and then the last step of the repartition fails.
    (tmp_path / "checkpoint/commits/4").mkdir()
    with pytest.raises(Exception, match="CONCURRENT_STREAM_LOG_UPDATE"):
        checkpoint.repartition(8)
    (tmp_path / "checkpoint/commits/4").rmdir()

    after = {path for path in (tmp_path / "checkpoint").rglob("*") if ".sst" not in path.name}
    assert {path for path in after - before if path.is_file()} == set()
    assert before <= after
    assert (checkpoint.partitions(), checkpoint.uncommitted_batch()) == (2, None)
    write_files(tmp_path / "in", 6)
    query = build().option("checkpointLocation", location).trigger(availableNow=True).start()
    query.awaitTermination()
    assert session.read.parquet(str(tmp_path / "out")).count() == 6 * ROWS


def test_a_rescale_that_was_noted_is_finished_at_the_next_start(
    session: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "in", 2)
    location = str(tmp_path / "checkpoint")
    build = distinct(session, tmp_path)
    query = build().option("checkpointLocation", location).trigger(availableNow=True).start()
    query.awaitTermination()
    checkpoint = Checkpoint(session, location)
    checkpoint.begin(PendingRescale(2, 4, "", str(tmp_path / "out")))

    stream = streaming.start(session, build, location, policy=streaming.Fixed(4))

    assert stream.partitions == 4
    assert checkpoint.pending() is None
    stream.stop()
    assert session.read.parquet(str(tmp_path / "out")).count() == 2 * ROWS


def test_a_state_outside_rocksdb_is_refused_before_the_query_starts(
    session: SparkSession, tmp_path: Path
) -> None:
    session.conf.set(PROVIDER, f"{PACKAGE}.HDFSBackedStateStoreProvider")
    with pytest.raises(InputError, match="Spark repartitions only RocksDBStateStoreProvider"):
        streaming.start(session, pytest.fail, str(tmp_path), trigger="10s")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "the policy BatchTime needs a trigger"),
        ({"trigger": "0s"}, "the policy BatchTime needs a trigger"),
        ({"trigger": "soon"}, "trigger is 'soon': allowed is a time of at most one day"),
        ({"policy": 8, "trigger": 1}, "policy is 8: allowed is an object with `name`"),
        ({"trigger": 1, "build": None}, "build is None: allowed is a function"),
        ({"trigger": 1, "checkpoint": Path("c")}, "allowed is text with a location"),
        ({"trigger": 1, "cooldown": None}, "cooldown is None: allowed is a time"),
        ({"trigger": 1, "state_per_partition": None}, "state_per_partition is None: allowed is"),
        ({"trigger": 1, "min_partitions": 0}, "min_partitions is 0"),
        ({"trigger": 1, "min_partitions": 9, "max_partitions": 8}, "max_partitions is 8"),
        ({"trigger": 1, "state_per_partition": "0MB"}, "state_per_partition is '0MB'"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: dict[str, object], message: str, session: SparkSession
) -> None:
    with pytest.raises(InputError, match=message):
        streaming.start(session, **{"build": pytest.fail, "checkpoint": "unused", **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("metadata", ['{"conf": {', "[]"])
def test_a_damaged_batch_of_a_checkpoint_is_named(
    metadata: str, session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets/0").write_text(f"v1\n{metadata}\n{{}}")
    with pytest.raises(InputError, match="/offsets/0 is not a batch that Spark wrote"):
        streaming.start(session, pytest.fail, str(tmp_path), trigger=1)


def test_the_error_of_a_query_reaches_await_termination(
    session: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "in", 1)

    def build() -> DataStreamWriter:
        source = session.readStream.schema("k long").json(str(tmp_path / "in"))
        rows = source.select(f.raise_error(f.lit("broken")).alias("k")).distinct()
        return rows.writeStream.format("noop")

    stream = streaming.start(session, build, str(tmp_path / "checkpoint"), trigger=1)
    with pytest.raises(Exception, match="broken"):
        stream.await_termination()


def test_streams_need_spark_4_2() -> None:
    class Old:
        version = "4.1.3"
        _jvm = None

    with pytest.raises(ApportionError, match=r"needs Spark 4.2 or later.*This is Spark 4.1.3"):
        streaming.start(Old(), pytest.fail, "unused")  # type: ignore[arg-type]
