"""Records of streams that Python reports to the JVM."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from pyspark.sql import SparkSession

from apportion import ApportionError
from apportion._spark import jvm

RECORD: dict[str, Any] = {
    "stream": "clicks",
    "query_id": "query",
    "run_id": "run",
    "at": "2026-03-01T10:00:00.500000+00:00",
    "event": "rescale",
    "batch": 7,
    "policy": "load",
    "partitions": 16,
    "target": 16,
    "slots": 4,
    "batch_millis": 12000,
    "trigger_millis": None,
    "input_rows": 90000,
    "input_rows_per_second": 3000.0,
    "processed_rows_per_second": 7500.0,
    "backlog_rows": None,
    "state_rows": 50000,
    "state_bytes": 5 << 20,
    "batch_bytes": 3 << 20,
    "largest_share": 0.25,
    "from_partitions": 8,
    "to_partitions": 16,
    "stop_millis": 700,
    "repartition_millis": 5600,
    "start_millis": 1900,
    "pause_millis": 8200,
    "reason": "8 -> 16 partitions: batches took 41 s of a 30 s trigger for 5 minutes",
}


def test_a_record_of_a_stream_is_a_row_of_the_table_function(spark: SparkSession) -> None:
    jvm.report_stream(spark, json.dumps(RECORD))
    row = jvm.table(spark, "apportion_streams")[-1].asDict()
    at = row.pop("at")
    assert row == {name: value for name, value in RECORD.items() if name != "at"}
    assert at.isoformat() == "2026-03-01T10:00:00.500000"


def test_a_wrong_record_raises_with_the_name_of_the_field(spark: SparkSession) -> None:
    with pytest.raises(ApportionError, match='field slots of the record of a stream is "many"'):
        jvm.report_stream(spark, json.dumps({**RECORD, "slots": "many"}))
    with pytest.raises(ApportionError, match=r"field input_rows_per_second .* Allowed: a finite"):
        jvm.report_stream(spark, json.dumps({**RECORD, "input_rows_per_second": math.nan}))
