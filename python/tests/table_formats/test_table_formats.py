"""Delta Lake and Iceberg, from Maven: tables are the same. Iceberg's files have the target size."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from apportion._spark import jars
from apportion._spark.jvm import EXTENSION
from tests.bare import Bare
from tests.maven import jars as fetched

pytestmark = pytest.mark.slow


@dataclasses.dataclass(frozen=True)
class Format:
    """A format of tables, for the newest Spark that its makers have a release for."""

    spark: str
    artifact: str
    extension: str
    conf: dict[str, str]
    create: dict[str, str]
    """Ways to create the table."""
    compact: str
    first_version: str
    """A query for the version after the first insert."""


COLUMNS = "CREATE TABLE items (id BIGINT, key INT, amount DECIMAL(12, 2))"
FORMATS = {
    "delta": Format(
        spark="4.2",
        artifact="io.delta:delta-spark_4.2_2.13:4.4.0",
        extension="io.delta.sql.DeltaSparkSessionExtension",
        conf={
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # Of the table's log, which is read in each statement: 50 by default.
            "spark.databricks.delta.snapshotPartitions": "2",
        },
        create={
            "files are rewritten": f"{COLUMNS} USING delta",
            "rows are marked": f"{COLUMNS} USING delta PARTITIONED BY (key) TBLPROPERTIES ("
            "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true', "
            "'delta.autoOptimize.optimizeWrite' = 'true')",
        },
        compact="OPTIMIZE items ZORDER BY (id)",
        first_version="SELECT 1",
    ),
    "iceberg": Format(
        spark="4.1",
        artifact="org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        extension="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        conf={
            "spark.sql.defaultCatalog": "ice",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": "warehouse",
            "spark.sql.catalog.ice.default-namespace": "db",
        },
        create={
            "files are rewritten": f"{COLUMNS} USING iceberg",
            "rows are marked": f"{COLUMNS} USING iceberg PARTITIONED BY (key) TBLPROPERTIES ("
            "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
            "'write.merge.mode' = 'merge-on-read', 'write.distribution-mode' = 'range')",
        },
        compact="CALL ice.system.rewrite_data_files(table => 'db.items', strategy => 'sort', "
        "sort_order => 'id DESC NULLS LAST', options => map('rewrite-all', 'true'))",
        first_version="SELECT snapshot_id FROM ice.db.items.snapshots "
        "ORDER BY committed_at LIMIT 1",
    ),
}
READ = "SELECT key, count(*), sum(id), sum(amount) FROM items GROUP BY key"
STATEMENTS = {
    "insert": "INSERT INTO items SELECT id, id % 4, id % 7 FROM range(0, 20000, 1, 4)",
    "insert more": "INSERT INTO items SELECT id, id % 4, 0.5 FROM range(20000, 30000, 1, 3)",
    "read": READ,
    "changes": "CREATE TEMPORARY VIEW changes AS SELECT id * 3 AS id, CAST(id % 4 AS INT) AS key, "
    "CAST(id AS DECIMAL(12, 2)) AS amount FROM range(0, 15000, 1, 4)",
    "join": "SELECT count(*), sum(i.amount - c.amount) FROM items i JOIN changes c ON i.id = c.id",
    "update": "UPDATE items SET amount = amount + 1 WHERE id % 7 = 0",
    "delete": "DELETE FROM items WHERE id % 11 = 0",
    "deleted": READ,
    "merge": "MERGE INTO items USING changes ON items.id = changes.id "
    "WHEN MATCHED AND changes.id % 5 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET amount = items.amount + changes.amount "
    "WHEN NOT MATCHED THEN INSERT *",
    "merged": READ,
    "overwrite": "INSERT OVERWRITE items SELECT id, key, amount FROM items DISTRIBUTE BY key",
    "overwritten": READ,
}
TARGET = 256 << 10
SIZES = "SELECT file_size_in_bytes FROM ice.db.texts.files"
# Hardly compressible rows of about 40 bytes.
TEXTS = "SELECT md5(string(id)) AS text, max(id) AS id, CAST(id % 2 AS INT) AS day "
MERGE = (
    f"MERGE INTO texts USING ({TEXTS} FROM range(30000, 150000, 1, 4) GROUP BY ALL) AS changes "
    "ON texts.text = changes.text WHEN MATCHED THEN UPDATE SET id = changes.id + 1 "
    "WHEN NOT MATCHED THEN INSERT *"
)
# Runs statements by name. Prints the rows of queries, and what was decided in each statement. Its
# folder is where the tables are.
PROGRAM = """
import json, os, sys
from pyspark.sql import SparkSession
from pyspark.errors import AnalysisException

DECISIONS = "SELECT operator, layout, reason FROM apportion_decisions()"
given = json.load(sys.stdin)
os.chdir(sys.argv[1])
spark = SparkSession.builder.getOrCreate()

def run(sql):
    return sorted(([*map(str, row)] for row in spark.sql(sql).collect()))

def decisions():
    try:
        return [row.asDict() for row in spark.sql(DECISIONS).collect()]
    except AnalysisException:  # Apportion is not there.
        return []

rows, decided = {}, {}
for name, sql in given["statements"].items():
    before = decisions()
    result = run(sql)
    decided[name] = decisions()[len(before):]
    if sql.startswith("SELECT"):
        rows[name] = result
if given["first version"]:
    version = spark.sql(given["first version"]).first()[0]
    rows["time travel"] = run(f"SELECT count(*), sum(amount) FROM items VERSION AS OF {version}")
print(json.dumps({"rows": rows, "decided": decided}))
"""
# Small, so that there is something to decide.
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.warehouse.dir": "warehouse",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "8KB",
}


@pytest.fixture(scope="module", params=FORMATS)
def tables(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]


@pytest.fixture(scope="module")
def bare(tables: Format, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """An environment with the Spark of the format."""
    with Bare(tmp_path_factory.mktemp("spark"), f"pyspark=={tables.spark}.*") as made:
        yield made


@pytest.mark.parametrize("way", ["files are rewritten", "rows are marked"])
def test_table_formats_have_the_same_tables_with_apportion(
    tables: Format, way: str, bare: Bare, tmp_path: Path
) -> None:
    orders = {
        "without": [tables.extension],
        "first": [EXTENSION, tables.extension],
        "last": [tables.extension, EXTENSION],
    }
    statements = {
        "create": tables.create[way],
        **STATEMENTS,
        "compact": tables.compact,
        "compacted": READ,
    }
    ran = {
        order: run(
            tables, statements, extensions, bare, tmp_path / order, version=tables.first_version
        )
        for order, extensions in orders.items()
    }
    assert ran["first"]["rows"] == ran["without"]["rows"]
    assert ran["last"]["rows"] == ran["without"]["rows"]
    for order in ("first", "last"):
        in_merge = [each["layout"] for each in ran[order]["decided"]["merge"]]
        assert "even" in in_merge, ran[order]["decided"]["merge"]


@pytest.mark.parametrize("tables", ["iceberg"], indirect=True)
@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (day)"])
def test_files_of_iceberg_have_the_target_size(
    tables: Format, partitions: str, bare: Bare, tmp_path: Path
) -> None:
    property_ = f"TBLPROPERTIES ('spark.apportion.write.targetFileSize' = '{TARGET}')"
    statements = {
        "create": f"CREATE TABLE texts USING iceberg {partitions} {property_} AS "
        f"{TEXTS} FROM range(0, 60000, 1, 4) GROUP BY ALL",
        "sizes": SIZES,
        "create another": f"CREATE TABLE others USING iceberg {property_} AS SELECT * FROM texts "
        "DISTRIBUTE BY text",
        "merge into another": MERGE.replace("texts", "others"),
        "overwrite": f"INSERT OVERWRITE texts {TEXTS} FROM range(0, 120000, 1, 4) GROUP BY ALL",
        "overwritten sizes": SIZES,
        # The first one has another ratio of bytes than the statements before.
        "first merge": MERGE,
        "merge": MERGE,
        "merged sizes": SIZES,
        "rows": "SELECT count(*), sum(id), sum(day) FROM texts",
    }
    # Tasks read whole shuffle partitions.
    settings = {"spark.sql.shuffle.partitions": "64"}
    with_and_without = [
        run(tables, statements, extensions, bare, tmp_path / str(len(extensions)), settings)
        for extensions in ([tables.extension], [tables.extension, EXTENSION])
    ]
    plain, sized = (each["rows"] for each in with_and_without)
    assert sized["rows"] == plain["rows"]
    # The ratio of the statement that created the table counts until the MERGE has one of its own.
    reasons = [each["reason"] for each in with_and_without[1]["decided"]["merge into another"]]
    assert any("write.targetFileSize" in reason for reason in reasons), reasons
    for each in ("sizes", "overwritten sizes", "merged sizes"):
        assert share_near(sized[each]) > 0.9 > share_near(plain[each]), each


def share_near(sizes: Sequence[Sequence[str]]) -> float:
    """Return the share of the bytes in files of 0.5 to 1.5 times the target."""
    numbers = [int(row[0]) for row in sizes]
    return sum(size for size in numbers if 0.5 <= size / TARGET <= 1.5) / sum(numbers)


def run(
    tables: Format,
    statements: Mapping[str, str],
    extensions: Sequence[str],
    bare: Bare,
    folder: Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    version: str = "",
) -> dict[str, Any]:
    """Return the rows of queries and the decisions of statements, by their names."""
    given = {"statements": statements, "first version": version}
    spark = jars.SparkVersion(tables.spark, "2.13")
    own = [jars.bundled(jars.jar_folder())[spark], *fetched(tables.artifact).glob("*.jar")]
    conf = {**SETTINGS, **settings, **tables.conf, "spark.sql.extensions": ",".join(extensions)}
    arguments = [
        *("--jars", ",".join(map(str, own))),
        *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}")),
    ]
    submitted = shlex.join([*arguments, "pyspark-shell"])
    folder.mkdir()
    printed = bare.run(
        *("python", "-c", PROGRAM, folder),
        stdin=json.dumps(given),
        PYSPARK_SUBMIT_ARGS=submitted,
    )
    result: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return result
