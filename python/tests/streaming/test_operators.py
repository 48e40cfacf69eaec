"""The stateful operators whose state Spark repartitions, and Spark's refusals."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apportion.streaming.checkpoint import Checkpoint, is_unsupported
from tests.streaming import operators
from tests.streaming.rescaled import HDFS, PROVIDER, Query, Stream, outputs

slow = pytest.mark.slow

STATE_STORE = "spark.sql.streaming.stateStore"
FORMAT_2 = {f"{STATE_STORE}.checkpointFormatVersion": "2"}
# With a time to live, Spark always wants another batch without data.
NO_EMPTY_BATCHES = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
NO_CHANGELOG = {f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "false"}

# Name, query, output mode, settings.
SUPPORTED: list[tuple[str, Query, str, dict[str, str]]] = [
    ("aggregation", operators.aggregation, "update", {}),
    ("windows", operators.windows, "append", {}),
    ("two aggregations", operators.two_aggregations, "append", {}),
    ("session windows", operators.session_windows, "append", {}),
    ("dropDuplicates", operators.deduplication, "append", {}),
    ("dropDuplicates by time", operators.deduplication_by_time, "append", {}),
    ("dropDuplicatesWithinWatermark", operators.deduplication_within_watermark, "append", {}),
    ("inner join", operators.inner_join, "append", {}),
    ("left outer join", operators.left_outer_join, "append", {}),
    ("full outer join", operators.full_outer_join, "append", {}),
    ("left semi join", operators.left_semi_join, "append", {}),
    ("applyInPandasWithState", operators.groups_with_state, "update", {}),
    ("transformWithStateInPandas", operators.transform_with_state, "update", {}),
    (
        "transformWithStateInPandas with TTL",
        operators.transform_with_ttl,
        "update",
        NO_EMPTY_BATCHES,
    ),
    ("transformWithState", operators.transform_rows_with_state, "update", {}),
    ("windows, format 2", operators.windows, "append", FORMAT_2),
    ("join, format 2", operators.left_outer_join, "append", FORMAT_2),
    ("windows without changelog", operators.windows, "append", NO_CHANGELOG),
    ("windows, format 2 without changelog", operators.windows, "append", FORMAT_2 | NO_CHANGELOG),
]

# Name, query, settings, part of Spark's message, whether it says that it never can.
REFUSED = [
    ("HDFS state store", operators.windows, {PROVIDER: HDFS}, "UNSUPPORTED_PROVIDER", True),
    ("limit", operators.global_limit, {}, "STDS_FAILED_TO_READ_STATE_SCHEMA", False),
]


@pytest.fixture
def repartitioning(spark: SparkSession) -> SparkSession:
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 2):
        pytest.skip("Spark repartitions state from 4.2")
    # Functions run in the Python that has pandas.
    spark.sparkContext.pythonExec = sys.executable
    return spark


def _cases() -> list[object]:
    # One operator runs always, because each takes ten seconds.
    first, *others = SUPPORTED
    ids = [pytest.param(*each[1:], id=each[0], marks=slow) for each in others]
    return [pytest.param(*first[1:], id=first[0]), *ids]


@pytest.mark.parametrize(("query", "mode", "settings"), _cases())
def test_a_repartition_does_not_change_the_output(
    query: Query,
    mode: str,
    settings: dict[str, str],
    repartitioning: SparkSession,
    tmp_path: Path,
) -> None:
    spark = repartitioning
    rescaled = Stream(spark, tmp_path / "rescaled", query, mode, settings)
    constant = Stream(spark, tmp_path / "constant", query, mode, settings)
    expected = outputs(constant)
    assert all(map(len, expected[:2]))
    assert outputs(rescaled, (8, 2)) == expected
    assert sorted(set(rescaled.partitions)) == [2, 4, 8]
    assert set(constant.partitions) == {4}


@slow
@pytest.mark.parametrize(
    ("query", "settings", "message", "never"),
    [pytest.param(*each[1:], id=each[0]) for each in REFUSED],
)
def test_spark_refuses_and_the_stream_continues(
    query: Query,
    settings: dict[str, str],
    message: str,
    never: bool,
    repartitioning: SparkSession,
    tmp_path: Path,
) -> None:
    spark = repartitioning
    refused = Stream(spark, tmp_path / "refused", query, "append", settings)
    constant = Stream(spark, tmp_path / "constant", query, "append", settings)
    assert refused.run(4) == constant.run(4)
    # Spark alone leaves an unfinished batch, with which the query does not start.
    checkpoint = Checkpoint(spark, str(refused.checkpoint))
    with pytest.raises(Exception, match=message) as refusal:
        checkpoint.repartition(8)
    assert is_unsupported(refusal.value) == never
    assert refused.run(2) == constant.run(2)
