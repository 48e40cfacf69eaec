"""`write.targetFileSize`, from the session to the files."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from apportion import decisions
from apportion.session import confs

TARGET = 128 << 10


def rows(spark: SparkSession) -> DataFrame:
    text = "md5(string(id)) AS text"
    return spark.range(0, 40_000, 1, 4).selectExpr("id % 2 AS k", text).distinct()


def sizes(table: Path) -> list[int]:
    return [file.stat().st_size for file in table.rglob("part-*")]


def test_files_have_the_target_size(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    with confs(session, {"spark.apportion.write.targetFileSize": str(TARGET)}):
        rows(session).write.partitionBy("k").parquet(str(tmp_path / "table"))
    assert all(TARGET / 2 <= size <= TARGET * 1.5 for size in sizes(tmp_path / "table"))
    assert "write.targetFileSize 128 KiB" in decisions(session)[-1].reason
    assert session.read.parquet(str(tmp_path / "table")).count() == 40_000
