"""Records the golden event log of the Spark that is installed.

    python -m tests.eventlog.record

writes `golden/spark-VERSION.zstd`, without what tells of the machine it ran on.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import zstandard
from pyspark.sql import SparkSession

import apportion

GOLDEN = Path(__file__).parent / "golden"

QUERIES = {
    "a hint of a block, an estimate above it": """
        SELECT n, count(*) FROM (
          SELECT /*+ PARALLELISM(3) */ id % 100 AS k, count(*) AS n
          FROM range(0, 5000, 1, 2) GROUP BY 1
        ) GROUP BY n ORDER BY n""",
    "a join, a scalar subquery, a table used twice": """
        WITH busy AS (SELECT id % 50 AS k, id FROM range(0, 5000, 1, 2))
        SELECT /*+ SHUFFLE_MERGE(b) */ a.k, count(*) FROM busy a JOIN busy b ON a.id = b.id
        WHERE a.k > (SELECT avg(id) / 1000 FROM busy) GROUP BY a.k""",
    "one key with most rows": """
        SELECT /*+ SHUFFLE_MERGE(b), RANGES(balanced) */ a.id, b.id
        FROM (SELECT id, IF(id < 18000, 7, id) AS k FROM range(0, 20000, 1, 8)) a
        JOIN (SELECT id, id * 7 AS k FROM range(0, 500, 1, 2)) b ON a.k = b.k""",
}
CONFS = {
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "4KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "8KB",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.ui.enabled": "false",
}


def main() -> None:
    """Run the queries and keep their log."""
    with tempfile.TemporaryDirectory() as directory:
        builder = SparkSession.builder.master("local[2]").appName("golden")
        for key, value in {**CONFS, "spark.eventLog.dir": f"file://{directory}"}.items():
            builder = builder.config(key, value)
        spark = apportion.configure(builder).getOrCreate()
        for description, sql in QUERIES.items():
            spark.sparkContext.setJobDescription(description)
            spark.sql(sql).collect()
        version = ".".join(spark.version.split(".")[:2])
        spark.stop()
        (log,) = Path(directory).iterdir()
        kept = "\n".join(filter(None, map(_without_machine, log.read_text().splitlines())))
    GOLDEN.mkdir(exist_ok=True)
    compressed = zstandard.ZstdCompressor(19).compress(kept.encode())
    (GOLDEN / f"spark-{version}.zstd").write_bytes(compressed)


def _without_machine(line: str) -> str:
    event = json.loads(line)
    if event["Event"] == "SparkListenerEnvironmentUpdate":
        properties = event["Spark Properties"]
        kept = {key: value for key, value in properties.items() if key in CONFS}
        event = {
            "Event": event["Event"],
            "Spark Properties": {**kept, "spark.eventLog.dir": "logs"},
        }
    text = json.dumps(event)
    for place in (Path(__file__).parents[3], sys.prefix):
        text = text.replace(str(place), "")
    return text


if __name__ == "__main__":
    main()
