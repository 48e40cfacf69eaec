"""A Spark program that does what it is told, line by line: tests run it beside a cluster of theirs.

Each line of its input is a JSON object, `{"id": n, "call": name, "arguments": {...}}`; each line of
its output answers one, `{"id": n, "value": ...}` or `{"id": n, "error": text}`, in whatever order
they are done. The first line is the conf.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import apportion
from apportion import resources, streaming


class Calls:
    """What it can be told."""

    def __init__(self, conf: dict[str, str]) -> None:
        builder = SparkSession.builder
        for key, value in conf.items():
            builder.config(key, value)
        self.spark = apportion.configure(builder).getOrCreate()

    def query(self, text: str, settings: dict[str, str]) -> dict[str, Any]:
        session = self.spark.newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        rows = [list(row) for row in session.sql(text).collect()]
        found = [dataclasses.asdict(each) for each in apportion.decisions(session)]
        return {"rows": rows, "decisions": found}

    def query_to_repeat(self, text: str, settings: dict[str, str]) -> list[list[Any]]:
        for name, value in settings.items():
            self.spark.conf.set(name, value)
        self.frame = self.spark.sql(text)
        return self.repeat()

    def repeat(self) -> list[list[Any]]:
        """Run the last stage again. Spark keeps the shuffles of a plan that has run."""
        return [list(row) for row in self.frame.collect()]

    def start_stream(self, folder: str, seconds: int) -> None:
        """Start a stream with a batch in each second, which takes `seconds` with one task slot."""

        def build() -> DataStreamWriter:
            rows = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 64)
            # Random, so that Spark does not filter before the shuffle.
            work = "aggregate(sequence(1, 100000), 0L, (a, x) -> a + x) + rand() > 0"
            kept = rows.load().dropDuplicates(["value"])
            for _ in range(4 * seconds):
                kept = kept.where(work)
            return kept.writeStream.format("noop")

        self.stream = streaming.start(
            self.spark, build, folder, trigger=1, stabilization=1, cooldown=1
        )

    def state_partitions(self) -> int | None:
        return self.stream.partitions

    def changes(self) -> list[dict[str, Any]]:
        return [dataclasses.asdict(each) for each in resources.history(self.spark)]

    def executors(self) -> int:
        jvm: Any = self.spark._jsc
        return int(jvm.sc().getExecutorMemoryStatus().size()) - 1

    def active_stages(self) -> list[int]:
        return list(self.spark.sparkContext.statusTracker().getActiveStageIds())

    def threads(self) -> list[str]:
        jvm: Any = self.spark._jvm
        found = jvm.java.lang.Thread.getAllStackTraces().keySet()
        return [thread.getName() for thread in found if not thread.isDaemon()]

    def stop(self) -> None:
        self.spark.stop()


def main() -> None:
    calls = Calls(json.loads(sys.stdin.readline()))
    lock = threading.Lock()

    def answer(entry: dict[str, Any]) -> None:
        with lock:
            print("answer", json.dumps(entry, default=str), flush=True)

    def carry_out(request: dict[str, Any]) -> None:
        try:
            value = getattr(calls, request["call"])(**request["arguments"])
            answer({"id": request["id"], "value": value})
        except Exception as error:
            answer({"id": request["id"], "error": f"{type(error).__name__}: {error}"})

    answer({"id": 0, "value": pyspark.__version__})
    for line in sys.stdin:
        threading.Thread(target=carry_out, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
