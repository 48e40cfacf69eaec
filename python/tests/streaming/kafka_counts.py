"""Program that counts the rows of a Kafka topic, and rescales from 2 to 8 state partitions.

    python kafka_counts.py ADDRESS JARS FOLDER

It prints the counts of each key, and the records of the stream, as JSON. Its Spark has the
connector from the start, so it is not the Spark of other tests.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import apportion
from apportion import streaming

ROWS, KEYS, ROWS_PER_BATCH = 3_000, 7, 200
TOPIC = "clicks"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(address: str, jars: str, folder: Path) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder.config("spark.jars", jars)
    builder.config("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    spark = apportion.configure(builder).getOrCreate()
    server = {"kafka.bootstrap.servers": address}
    rows = spark.range(ROWS).selectExpr(f"string(id % {KEYS}) AS key", "string(id) AS value")
    rows.write.format("kafka").options(**server, topic=TOPIC).save()
    counts: dict[str, int] = {}

    def keep(batch: DataFrame, number: int) -> None:
        counts.update((row["key"].decode(), row["count"]) for row in batch.collect())

    def build() -> DataStreamWriter:
        source = spark.readStream.format("kafka").options(**server, subscribe=TOPIC)
        source.options(startingOffsets="earliest", maxOffsetsPerTrigger=ROWS_PER_BATCH)
        counted = source.load().groupBy("key").count()
        return counted.writeStream.outputMode("update").foreachBatch(keep)

    records = []
    for partitions in (2, 8):
        stream = streaming.start(
            spark,
            build,
            str(folder / "checkpoint"),
            policy=streaming.Fixed(partitions),
            stabilization=0,
            cooldown=0,
        )
        while _goes_on(stream, partitions):
            time.sleep(0.1)
        stream.stop()
        stream.await_termination()
        records += [record.to_json() for record in stream.records]
    print(json.dumps({"counts": counts, "records": records}))
    spark.stop()


def _goes_on(stream: streaming.Stream, partitions: int) -> bool:
    """Whether the first stream has less than three batches, or the second has rows to read."""
    seen = stream.records
    if stream.await_termination(0):
        return False
    return len(seen) < 3 if partitions == 2 else not seen or seen[-1].backlog_rows != 0


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
