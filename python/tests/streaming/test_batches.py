"""Batches read from Spark's progress reports."""

from __future__ import annotations

from typing import Any

import pytest

from apportion.streaming.batches import Batch

REPORT: dict[str, Any] = {
    "id": "query",
    "runId": "run",
    "name": None,
    "timestamp": "2026-11-23T23:51:10.500Z",
    "batchId": 7,
    "batchDuration": 1500,
    "numInputRows": 3000,
    "inputRowsPerSecond": 300.0,
    "processedRowsPerSecond": 2000.0,
    "durationMs": {"triggerExecution": 1500, "addBatch": 1200},
    "stateOperators": [
        {
            "operatorName": "stateStoreSave",
            "numRowsTotal": 50,
            "memoryUsedBytes": 1000,
            "numShufflePartitions": 4,
            "customMetrics": {"rocksdbSstFileSize": 4000},
        },
        {"operatorName": "dedupe", "numRowsTotal": 5, "memoryUsedBytes": 10},
    ],
    "sources": [],
}


def batch(**changed: Any) -> Batch:
    return Batch.from_progress({**REPORT, **changed})


def test_a_batch_has_the_state_of_all_operators() -> None:
    assert (batch().partitions, batch().state_rows, batch().state_bytes) == (4, 55, 4010)


def test_a_batch_ends_after_its_duration() -> None:
    assert batch().ended.isoformat() == "2026-11-23T23:51:12+00:00"
    assert batch().seconds == 1.5


def test_a_query_without_a_name_has_its_id() -> None:
    assert batch().name == "query"


@pytest.mark.parametrize(
    ("sink", "name"),
    [
        ({"description": "FileSink[s3a://bucket/orders/]"}, "orders (01234567)"),
        ({"description": "FileSink[/]"}, "01234567-89ab"),
        ({"description": "org.apache.ConsoleTable$@1"}, "01234567-89ab"),
        ({}, "01234567-89ab"),
        ("FileSink[/orders]", "01234567-89ab"),
    ],
)
def test_a_query_without_a_name_is_called_by_the_folder_that_it_writes_to(
    sink: object, name: str
) -> None:
    assert batch(id="01234567-89ab", sink=sink).name == name
    assert batch(id="01234567-89ab", sink=sink, name="clicks").name == "clicks"
    assert batch(name="clicks").name == "clicks"


def test_the_name_of_a_query_begins_no_line() -> None:
    assert batch(name="clicks\nEnded").name == "clicks\ufffdEnded"


def test_a_stateless_batch_has_no_partitions() -> None:
    assert batch(stateOperators=[]).partitions is None


@pytest.mark.parametrize("rate", [None, "NaN", float("inf"), -1.0])
def test_a_rate_that_spark_does_not_know_is_zero(rate: object) -> None:
    assert batch(inputRowsPerSecond=rate).input_rows_per_second == 0


def source(latest: object, end: object) -> list[dict[str, object]]:
    return [{"latestOffset": latest, "endOffset": end}]


@pytest.mark.parametrize(
    ("sources", "rows"),
    [
        (source({"t": {"0": 90, "1": 50}}, {"t": {"0": 60, "1": 45}}), 35),
        (source('{"t": {"0": 90}}', '{"t": {"0": 60}}'), 30),
        (source({"t": {"0": 90, "1": 50}}, {"t": {"0": 90}}), 0),
        (source({"offset": 500, "timestamp": 9}, {"offset": 200, "timestamp": 3}), 300),
        (source({"logOffset": 9}, {"logOffset": 3}), None),
        (source(None, {"t": {"0": 60}}), None),
        (source("not JSON", "{"), None),
        (source({"t": {"0": 5}}, {"t": {"0": 3}}) + source(None, None), 2),
        ([], None),
    ],
    ids=["Kafka", "text", "new partition", "rate", "files", "none", "wrong", "two", "no source"],
)
def test_the_backlog_is_the_rows_up_to_the_newest_offsets(
    sources: list[dict[str, object]], rows: int | None
) -> None:
    assert batch(sources=sources).backlog_rows == rows
