"""Program that runs a stream, rescales it all the time, and kills itself at a step of a rescale.

    python crashing.py FOLDER OPERATOR STEP SECONDS [SEED]

With the step `none`, it reads all remaining input, and ends. `SECONDS` passes between the beginning
of the step and the kill. The kill hits the JVM too, as it is in the same process group. With a
seed, the journal, the log of the sink and others fail at random until the kill. With the step
`late`, many rescales pass before it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamWriter

import apportion
from apportion import streaming
from apportion._spark import jvm
from apportion.streaming import bookkeeping, controller
from apportion.streaming.checkpoint import Checkpoint
from apportion.streaming.controller import Stream

SCHEMA = "id long, k long, v long, at timestamp"
NEXT = {2: 4, 4: 8, 8: 2}
STEPS: dict[str, tuple[type, str]] = {
    "begin": (Checkpoint, "begin"),
    "finish": (Stream, "_finish_batch"),
    "repartition": (Checkpoint, "repartition"),
    "sink": (Checkpoint, "complete_sink"),
    "start": (Stream, "_start"),
    "end": (Checkpoint, "end"),
}


class Alternate:
    """Policy that wants another number after each decision."""

    name = "alternate"

    def wanted(self, load: streaming.Load) -> streaming.Wanted:
        return streaming.Wanted(NEXT[load.partitions], "it is a test")


FAULTY: list[tuple[Any, str]] = [
    (Alternate, "wanted"),
    (Checkpoint, "write_journal"),
    (Checkpoint, "read_journal"),
    (Checkpoint, "begin"),
    (jvm, "add_empty_file_batch"),
    (jvm, "await_batch"),
    (jvm, "most_slots"),
    (jvm, "repartition_state"),
    (jvm, "report_stream"),
]
# The kill comes after this time at the latest, because the faults can prevent all rescales.
MOST_SECONDS = 30


def fail_at_random(seed: int) -> None:
    """Let each of these functions fail with a probability of its own."""
    controller._SLOTS_SECONDS = bookkeeping._JOURNAL_SECONDS = 0
    bookkeeping._JOURNAL_SHARE = 1
    chance = random.Random(seed)
    for owner, name in FAULTY:
        share = chance.choice([0, 0.2, 0.6])
        setattr(owner, name, failing(getattr(owner, name), random.Random(chance.random()), share))
    threading.Thread(target=kill, args=[MOST_SECONDS], daemon=True).start()


def failing(function: Callable[..., Any], chance: random.Random, share: float) -> Any:
    def call(*arguments: Any) -> Any:
        if chance.random() < share:
            raise OSError(f"{function.__name__} failed")
        return function(*arguments)

    return call


def kill_at(step: str, seconds: float) -> None:
    """Kill this process and its JVM after `seconds` in the step of the first rescale."""
    begun = threading.Event()
    begin = Checkpoint.begin

    def noted(self: Checkpoint, rescale: Any) -> None:
        begun.set()
        begin(self, rescale)

    Checkpoint.begin = noted  # type: ignore[method-assign]
    owner, name = STEPS[step]
    method: Callable[..., Any] = getattr(owner, name)

    def killed(*arguments: Any) -> Any:
        if begun.is_set():
            threading.Thread(target=kill, args=[seconds], daemon=True).start()
        return method(*arguments)

    setattr(owner, name, killed)


def kill(seconds: float) -> None:
    time.sleep(seconds)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def query(spark: SparkSession, base: Path, operator: str) -> DataFrame:
    def read(folder: str) -> DataFrame:
        files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return files.json(str(base / folder)).withWatermark("at", "1 hour")

    if operator == "aggregate":
        return read("left").groupBy("k").agg(f.sum("v").alias("v"), f.count("v").alias("rows"))
    if operator in ("deduplicate", "file sink"):
        return read("left").dropDuplicates(["k", "v"]).select("k", "v")
    left = read("left").alias("l")
    right = read("right").alias("r")
    return left.join(right, f.expr("l.id = r.id and l.at = r.at")).select("l.k", "l.v", "r.id")


def run(base: Path, operator: str, step: str, seconds: float, seed: int | None) -> None:
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder.config("spark.sql.shuffle.partitions", "4")
    builder.config("spark.sql.streaming.stateStore.providerClass", provider)
    spark = apportion.configure(builder).getOrCreate()
    out = base / "out"
    out.mkdir(exist_ok=True)

    def write(rows: DataFrame, batch: int) -> None:
        # A batch that runs again replaces its file.
        lines = [json.dumps(row.asDict()) for row in rows.collect()]
        part = out / f"{batch}.part"
        part.write_text("\n".join(lines), "utf-8")
        part.replace(out / f"{batch}.json")

    def build() -> DataStreamWriter:
        mode = "update" if operator == "aggregate" else "append"
        writer = query(spark, base, operator).writeStream.outputMode(mode)
        if operator == "file sink":
            return writer.format("json").option("path", str(base / "sink"))
        return writer.foreachBatch(write)

    is_last = step == "none"
    if step in STEPS:
        kill_at(step, seconds)
    if seed is not None:
        fail_at_random(seed)
    # The last run continues an interrupted rescale, and begins no other.
    stabilization = "1d" if is_last else 0
    stream = None
    while stream is None:
        try:
            stream = streaming.start(
                spark,
                build,
                str(base / "checkpoint"),
                policy=Alternate(),
                stabilization=stabilization,
                cooldown=0,
            )
        except OSError:
            if seed is None:
                raise
            # A fault while an interrupted rescale continues. You see the error, and start again.
            time.sleep(0.1)
    if is_last:
        stream.query.processAllAvailable()
        stream.stop()
    stream.await_termination()
    if operator == "file sink":
        write(spark.read.schema("k long, v long").json(str(base / "sink")), 0)
    spark.stop()


if __name__ == "__main__":
    base, operator, step, seconds, *seeds = sys.argv[1:]
    run(Path(base), operator, step, float(seconds), int(seeds[0]) if seeds else None)
