"""Measure streams whose state partitions follow a load that grows tenfold and falls again.

    python -m measurements streams

Files come at a rate of 1, 10 and 1 for a third of the time each. A stateful query reads them under
the policy `BatchTime`. The same files then go through the query without a rescale, and
both outputs are compared row by row.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pyarrow
import pyarrow.parquet
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import apportion
from apportion import streaming
from apportion._spark import jvm
from apportion.cli.support.progress import counted
from apportion.logs.stream_record import StreamRecord
from apportion.streaming import controller
from apportion.streaming.controller import Stream
from apportion.streaming.sizes import StateSizes
from measurements import raw

Reports = dict[str, Any]
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "id long, k long, at timestamp"
OPERATORS = ("aggregate", "deduplicate", "join")
KEYS = 1_000_000
"""Many, so that most of the time of a batch is spent on state."""
SHARE = 0.8
OVERLOAD = 1.3
"""Time of a batch at the tenfold rate and with one partition, as a share of the trigger."""
OBSERVING = (
    (controller, "load_of"),
    (Stream, "_record"),
    (StateSizes, "needed"),
)
PAUSES = ("stop_millis", "repartition_millis", "start_millis", "pause_millis")


class Source:
    """Writes one file of rows per second. Each row is in two files that follow each other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._rows = 0
        for side in ("left", "right"):
            (folder / side).mkdir(parents=True)

    def write(self, rows: int, at: float) -> None:
        """Write files with the rows of one second, `at` seconds since 1970."""
        first = self._number * 10_000_000
        ids = [first + n for n in range(rows)] + [first - 10_000_000 + n for n in range(rows // 2)]
        times = pyarrow.array([round(at * 1e6)] * len(ids), pyarrow.timestamp("us", "UTC"))
        keys = [(self._rows + n) % KEYS for n in range(len(ids))]
        self._rows += len(ids)
        table = pyarrow.table({"id": ids, "k": keys, "at": times})
        for side, part in (("left", table), ("right", table.slice(0, rows // 2))):
            hidden = self._folder / side / f".{self._number:06}"
            pyarrow.parquet.write_table(part, hidden, compression="none")
            hidden.rename(self._folder / side / f"{self._number:06}.parquet")
        self._number += 1


def query(spark: SparkSession, folder: Path, operator: str, files: int | None) -> DataFrame:
    """Return the stateful query. `files` is the most files per batch."""

    def read(side: str) -> DataFrame:
        reader = spark.readStream.schema(SCHEMA)
        if files:
            reader = reader.option("maxFilesPerTrigger", files)
        return reader.parquet(str(folder / side)).withWatermark("at", "20 seconds")

    if operator == "aggregate":
        window = f.window("at", "10 seconds").alias("window")
        groups = read("left").groupBy(window, "k")
        return groups.agg(f.count("id").alias("rows"), f.sum("id").alias("ids"))
    if operator == "deduplicate":
        # Which of two equal rows stays depends on the batch, so only the key is compared.
        return read("left").dropDuplicatesWithinWatermark(["id"]).select("id")
    left, right = read("left").alias("l"), read("right").alias("r")
    condition = "l.id = r.id and r.at between l.at and l.at + interval 5 seconds"
    return left.join(right, f.expr(condition)).select("l.id", "l.at", f.col("r.at").alias("also"))


def seconds_per_row(spark: SparkSession, folder: Path, operator: str) -> tuple[float, float]:
    """Return the time of a batch without rows, and the time of a row, with one partition."""
    source = Source(folder / "in")
    sizes = [5_000] * 4 + [400_000] * 5
    for number, rows in enumerate(sizes):
        source.write(rows, 1e9 + number)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    ended = finish(writer(spark, folder, operator, 1))
    few, many = statistics.median(ended[2:4]), statistics.median(ended[5:9])
    each = (many - few) / (sizes[-1] - sizes[0])
    return max(0.0, few - each * sizes[0]), each


def writer(spark: SparkSession, folder: Path, operator: str, files: int | None) -> DataStreamWriter:
    """Return the query with its sink."""
    rows = query(spark, folder / "in", operator, files)
    sink = rows.writeStream.format("parquet").option("path", str(folder / "out"))
    return sink.option("checkpointLocation", str(folder / "checkpoint")).outputMode("append")


def finish(query: DataStreamWriter) -> list[float]:
    """Run a query until it has read all files. Return the seconds of its batches."""
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    return [json.loads(each.json)["batchDuration"] / 1000 for each in running.recentProgress]


def timed(spent: list[float], method: Callable[..., object]) -> Callable[..., object]:
    """Return a method that adds its seconds to `spent`."""

    def call(*arguments: object, **keywords: object) -> object:
        began = time.perf_counter()
        try:
            return method(*arguments, **keywords)
        finally:
            spent.append(time.perf_counter() - began)

    return call


def asked_again(spent: list[float], ask: Callable[..., Reports]) -> Callable[..., Reports]:
    """Return `ask`, which repeats a question that found batches, and times it without the wait."""

    def call(spark: SparkSession, query: StreamingQuery, after: str | None, _: float) -> Reports:
        found = ask(spark, query, after, _)
        if found["progress"]:
            timed(spent, ask)(spark, query, after, 0)
        return found

    return call


def measure(
    spark: SparkSession, folder: Path, operator: str, minutes: float, trigger: int
) -> tuple[raw.Row, list[raw.Row]]:
    """Run one operator with rescales and without. Return its row, and a row for each rescale."""
    fixed, each = seconds_per_row(spark, folder / "calibration", operator)
    high = int((OVERLOAD * trigger - fixed) / (each * trigger * 1.5))
    source = Source(folder / "rescaled/in")
    spent: list[float] = []
    methods = [(owner, name, getattr(owner, name)) for owner, name in OBSERVING]
    for owner, name, method in methods:
        setattr(owner, name, timed(spent, method))
    await_batch = jvm.await_batch
    jvm.await_batch = asked_again(spent, await_batch)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    source.write(high // 10, time.time())
    stream = streaming.start(
        spark,
        lambda: writer(spark, folder / "rescaled", operator, None),
        str(folder / "rescaled/checkpoint"),
        policy=streaming.BatchTime(SHARE),
        trigger=trigger,
        stabilization=3 * trigger,
        cooldown=6 * trigger,
    )
    feed(source, minutes * 60, high)
    # The last row closes all windows.
    source.write(2, time.time() + 86_400)
    time.sleep(3 * trigger)
    stream.query.processAllAvailable()
    records = stream.records
    stream.stop()
    stream.await_termination()
    for owner, name, method in methods:
        setattr(owner, name, method)
    jvm.await_batch = await_batch
    plain = folder / "plain"
    plain.mkdir()
    (plain / "in").symlink_to(folder / "rescaled/in")
    finish(writer(spark, plain, operator, 100))
    ours = spark.read.parquet(str(folder / "rescaled/out"))
    theirs = spark.read.parquet(str(plain / "out"))
    different = ours.exceptAll(theirs).count() + theirs.exceptAll(ours).count()
    batches = sum(record.batch_millis for record in records if record.event == "batch") / 1000
    rescales = [record for record in records if record.event == "rescale"]
    row = {
        "query": operator,
        "low": high // 10,
        "high": high,
        "rows": ours.count(),
        # Rows that only one of the two outputs has.
        "different": different,
        "rescales": len(rescales),
        # Time to observe and to decide, as a share of the time of all batches.
        "observing": f"{sum(spent) / batches:.3f}",
    }
    return row, [_rescale(operator, record) for record in rescales]


def _rescale(operator: str, record: StreamRecord) -> raw.Row:
    """Return the row of a rescale, with the seconds of its parts."""
    seconds = {
        name.removesuffix("_millis"): f"{(getattr(record, name) or 0) / 1000:.1f}"
        for name in PAUSES
    }
    partitions = {"before": record.from_partitions, "after": record.to_partitions}
    return {"query": operator, **partitions, **seconds}


def feed(source: Source, seconds: float, high: int) -> None:
    """Write files for `seconds`: a tenth of the high rate, the high rate, and a tenth again."""
    began = time.time()
    second = 1
    while second < seconds:
        time.sleep(max(0.0, began + second - time.time()))
        is_high = seconds / 3 <= second < seconds * 2 / 3
        source.write(high if is_high else high // 10, began + second)
        second += 1


def main(
    minutes: Annotated[float, typer.Option(help="Time of one stream.")] = 15.0,
    trigger: Annotated[int, typer.Option(min=1, help="Seconds between two batches.")] = 10,
    operators: Annotated[str, typer.Option(help="Queries to run.")] = ",".join(OPERATORS),
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Run stateful streams under a load that grows tenfold and falls again."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder.config("spark.sql.streaming.stateStore.providerClass", PROVIDER)
    builder.config("spark.driver.memory", "3g").config("spark.log.level", "ERROR")
    spark = apportion.configure(builder).getOrCreate()
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    about = raw.conditions(
        spark, "measured", minutes=minutes, trigger=trigger, policy=f"BatchTime({SHARE})"
    )
    rows: list[raw.Row] = []
    rescales: list[raw.Row] = []
    before = {thread.name for thread in threading.enumerate()}
    with tempfile.TemporaryDirectory() as directory:
        for operator in counted(operators.split(",")):
            scratch = Path(directory) / operator
            row, of_operator = measure(spark, scratch, operator, minutes, trigger)
            rows.append(row)
            rescales += of_operator
            raw.write("streams", about, rows, folder)
            raw.write("stream-rescales", about, rescales, folder)
    left = {thread.name for thread in threading.enumerate()} - before
    assert not left, left
    spark.stop()
