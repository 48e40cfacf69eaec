"""Runs a streaming query in three stages, with and without a repartition between them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

Query = Callable[[DataFrame], DataFrame]
Rows = list[tuple[Any, ...]]

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"

PARTITIONS = 4
# Files are read one in each batch: four batches, then two after each repartition.
STAGES = (4, 2, 2)

_SCHEMA = (
    StructType()
    .add("key", StringType())
    .add("side", StringType())
    .add("at", TimestampType())
    .add("amount", LongType())
)
_ROWS = 24
_KEYS = 11
_SECONDS_OF_A_FILE = 60


class Stream:
    """A query over JSON files, which are added from stage to stage."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        query: Query,
        mode: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._spark = spark.newSession()
        conf = {
            PROVIDER: ROCKSDB,
            "spark.sql.shuffle.partitions": str(PARTITIONS),
            "spark.sql.streaming.noDataMicroBatches.enabled": "true",
            **(settings or {}),
        }
        for name, value in conf.items():
            self._spark.conf.set(name, value)
        self._input, self.checkpoint = folder / "input", folder / "checkpoint"
        self._query, self._mode = query, mode
        self._files = 0
        self.partitions: list[int] = []

    def run(self, files: int) -> Rows:
        """Add files, process them, and return the rows that the query wrote."""
        for number in range(self._files, self._files + files):
            _write(self._input, number)
        self._files += files
        written: Rows = []

        def keep(batch: DataFrame, number: int) -> None:
            written.extend(tuple(row) for row in batch.collect())

        events = self._spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
        started = (
            self._query(events.json(str(self._input)))
            .writeStream.outputMode(self._mode)
            .foreachBatch(keep)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        started.awaitTermination()
        self.partitions += [
            operator.numShufflePartitions
            for progress in started.recentProgress[-1:]
            for operator in progress.stateOperators
        ]
        return sorted(written, key=repr)

    def repartition(self, partitions: int) -> None:
        """Change the number of state partitions with Spark's checkpoint manager."""
        self._spark._streamingCheckpointManager.repartition(str(self.checkpoint), partitions)

    def copy(self, folder: Path) -> None:
        """Copy the checkpoint."""
        shutil.copytree(self.checkpoint, folder)


def outputs(stream: Stream, partitions: Sequence[int] = ()) -> list[Rows]:
    """Return the output of each stage. Between stages, change the number of state partitions."""
    written = []
    for stage, files in enumerate(STAGES):
        if stage and partitions:
            stream.repartition(partitions[stage - 1])
        written.append(stream.run(files))
    return written


def _write(folder: Path, number: int) -> None:
    """Write a file of a minute. Rows of later files repeat keys, and some are late."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for row in range(_ROWS):
        place = number * _ROWS + row
        late = 4 * _SECONDS_OF_A_FILE if place % 13 == 0 else 0
        seconds = 1_600_000_020 + number * _SECONDS_OF_A_FILE + row * 2 - late
        event = {
            "key": f"key {place * 7 % _KEYS}",
            "side": "left" if place % 3 else "right",
            "at": f"{seconds}",
            "amount": place % 9,
        }
        lines.append(json.dumps({**event, "at": _text(seconds)}))
    file = folder / f"{number:03}.json"
    file.write_text("\n".join(lines), "utf-8")
    # The source reads files in the order of their times.
    os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def _text(seconds: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()
