from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from apportion import ApportionError
from apportion.cli.support.table_files import find_tables, register


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.mark.parametrize(
    ("files", "tables"),
    [
        (["a.parquet", "b.csv", "c.json"], {"a": "parquet", "b": "csv", "c": "json"}),
        (["a.csv.gz", "b.JSONL", "c.ndjson.zst"], {"a": "csv", "b": "json", "c": "json"}),
        (["a/part-0.c000.snappy.parquet", "a/_SUCCESS", "a/.x.crc"], {"a": "parquet"}),
        (["a/year=2026/month=1/x.parquet"], {"a": "parquet"}),
        (["a.parquet/part-0.parquet", "v1.2/part-0.csv"], {"a": "parquet", "v1.2": "csv"}),
        (["a/_delta_log/0.json", "a/part-0.parquet"], {"a": "delta"}),
        (["a/metadata/v1.metadata.json", "a/data/x.parquet"], {"a": "iceberg"}),
        (["a/.hoodie/hoodie.properties", "a/x.parquet"], {"a": "hudi"}),
        (["a/metadata/x.parquet"], {"a": "parquet"}),
        (["monthly.2026.csv", "README.md", ".hidden.csv", "_log/0.json"], {"monthly.2026": "csv"}),
    ],
)
def test_tables_are_found_with_their_names_and_formats(
    tmp_path: Path, files: list[str], tables: dict[str, str]
) -> None:
    put(tmp_path, *files)
    assert {name: table.format for name, table in find_tables(tmp_path).items()} == tables


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["README.md"], "no parquet, csv or json files or folders in"),
        (["a.csv", "a.json"], r"two tables are named a: .*a\.csv and .*a\.json"),
        (["A.csv", "a.csv"], r"two tables are named a: .*A\.csv and .*a\.csv"),
        (["a/x.csv", "a/y.json"], "the folder .*/a mixes formats: csv, json"),
    ],
)
def test_a_folder_without_tables_or_with_ambiguous_tables_raises(
    tmp_path: Path, files: list[str], message: str
) -> None:
    put(tmp_path, *files)
    with pytest.raises(ApportionError, match=message):
        find_tables(tmp_path)


def test_a_url_of_tables_is_refused_with_another_way() -> None:
    with pytest.raises(ApportionError, match=r"of this machine, not s3a://.*`s3a://bucket/x/name`"):
        find_tables(Path("s3a://bucket/x"))


def test_a_table_of_a_missing_format_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "a/_delta_log/0.json", "a/part-0.parquet")
    with pytest.raises(ApportionError, match=r"/a is a table of the format delta, which"):
        register(spark.newSession(), find_tables(tmp_path))


def test_a_missing_directory_of_tables_raises(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match=r"no directory .*/nowhere \(--tables\)"):
        find_tables(tmp_path / "nowhere")


def test_tables_are_registered_as_views(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nAlan,\n")
    (tmp_path / "my-events.json").write_text('{"id": 1}\n{"id": 2}\n')
    spark.range(3).write.parquet(str(tmp_path / "numbers"))
    register(session, find_tables(tmp_path))
    ages = session.sql("SELECT age FROM people ORDER BY name").collect()
    assert ages == [Row(age=36), Row(age=None)]
    assert session.sql("SELECT sum(id) AS s FROM `my-events`").collect() == [Row(s=3)]
    assert session.sql("SELECT count(*) AS n FROM numbers").collect() == [Row(n=3)]
