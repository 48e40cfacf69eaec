"""A stream that reads Kafka, and rescales."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pyspark import __version__

from tests.programs import run
from tests.streaming import kafka
from tests.streaming.kafka_counts import KEYS, ROWS, ROWS_PER_BATCH

PROGRAM = Path(__file__).with_name("kafka_counts.py")


@pytest.mark.slow
@pytest.mark.skipif(not __version__.startswith("4.2."), reason="the connector is for Spark 4.2")
def test_a_rescaled_stream_counts_each_row_of_a_topic_once(tmp_path: Path) -> None:
    jars = kafka.connector()
    with kafka.broker(tmp_path / "broker") as address:
        printed = run(sys.executable, PROGRAM, address, jars, tmp_path)
    result = json.loads(printed.splitlines()[-1])
    assert result["counts"] == {str(key): len(range(key, ROWS, KEYS)) for key in range(KEYS)}
    records = result["records"]
    (rescale,) = (record for record in records if record["event"] == "rescale")
    assert (rescale["from_partitions"], rescale["to_partitions"]) == (2, 8)
    # Kafka reports the rows that no batch has read.
    batches = [record for record in records if record["input_rows"]]
    backlogs = [record["backlog_rows"] for record in batches]
    # Spark divides the rows of a batch by the partitions of the topic, and rounds.
    assert batches[0]["input_rows"] == pytest.approx(ROWS_PER_BATCH, abs=KEYS)
    assert backlogs[0] == ROWS - batches[0]["input_rows"]
    assert backlogs == sorted(backlogs, reverse=True)
    assert backlogs[-1] == 0
