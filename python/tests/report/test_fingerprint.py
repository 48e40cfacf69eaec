from __future__ import annotations

from pathlib import Path

import pytest

from apportion import eventlog
from apportion.logs.report.fingerprint import fingerprint, without_literals

from .samples import KEYS, aggregate, exchange, node, scan

GOLDEN = Path(__file__).parents[1] / "eventlog/golden"
VERSIONS = ("3.5", "4.0", "4.1", "4.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_queries_have_the_same_fingerprints_on_each_spark_version(version: str) -> None:
    def prints(name: str) -> list[str | None]:
        queries = eventlog.read(GOLDEN / f"spark-{name}.zstd").queries.values()
        return [fingerprint(query.plan) for query in queries]

    assert prints(version) == prints("4.2")
    assert len(set(prints(version))) == 3
    assert None not in prints(version)


def test_operators_of_adaptive_execution_do_not_change_the_fingerprint() -> None:
    plain = aggregate(scan())
    inner = node("AQEShuffleRead coalesced", node("ShuffleQueryStage 0", exchange(scan(), 8)))
    adaptive = node(
        "AdaptiveSparkPlan isFinalPlan=true",
        node(
            "WholeStageCodegen (2)",
            node(KEYS.format(""), node("InputAdapter", node(KEYS.format("partial_"), inner))),
        ),
    )
    assert fingerprint(adaptive) == fingerprint(plain)


def test_the_join_strategy_does_not_change_the_fingerprint() -> None:
    left, right = scan(), scan("id#7", "db.items")
    merge = node(
        "SortMergeJoin(skew=true) [k#1], [id#7], LeftOuter",
        node("Sort [k#1 ASC NULLS FIRST], false, 0", exchange(left)),
        node("Sort [id#7 ASC NULLS FIRST], false, 0", exchange(right)),
    )
    broadcast = node(
        "BroadcastHashJoin [k#1], [id#7], LeftOuter, BuildRight, false",
        left,
        node("BroadcastExchange HashedRelationBroadcastMode(List(input[0]))", right),
    )
    inner = node("SortMergeJoin [k#1], [id#7], Inner", exchange(left), exchange(right))
    assert fingerprint(merge) == fingerprint(broadcast)
    assert fingerprint(merge) != fingerprint(inner)


def test_a_reused_exchange_does_not_change_the_fingerprint() -> None:
    join = "SortMergeJoin [k#1], [k#9], Inner"
    twice = node(join, exchange(scan()), exchange(scan("k#9,v#10")))
    reused = node(join, exchange(scan()), node("ReusedExchange [k#9, v#10], Exchange"))
    assert fingerprint(twice) == fingerprint(reused)


def test_a_runtime_filter_does_not_change_the_fingerprint() -> None:
    bloom = node("ObjectHashAggregate(keys=[], functions=[bloom_filter_agg(id#7)])", scan("id#7"))
    filtered = node("Filter might_contain(Subquery, k#1)", scan(), node("Subquery s#1", bloom))
    assert fingerprint(aggregate(filtered)) == fingerprint(aggregate(scan()))


def test_the_order_of_columns_does_not_change_the_fingerprint() -> None:
    assert fingerprint(scan("v#5,k#3")) == fingerprint(scan())


def test_ids_and_numbers_do_not_change_the_fingerprint() -> None:
    text = "HashAggregate(keys=[k#1], functions=[{}sum((v#2 + 5))])"
    other = "HashAggregate(keys=[k#31], functions=[{}sum((v#32 + 7))])"
    assert fingerprint(aggregate(scan(), text)) == fingerprint(aggregate(scan("k#31,v#32"), other))


def test_conditions_that_spark_infers_do_not_change_the_fingerprint() -> None:
    text = "Filter ((isnotnull(k#1) AND (v#2 > 5)) AND might_contain(Subquery s#7, hash(k#1, 42)))"
    assert fingerprint(node(text, scan())) == fingerprint(node("Filter (v#9 > 7)", scan()))


@pytest.mark.parametrize(
    "other",
    [
        node("Filter (v#2 > 5)", aggregate(scan())),
        node("Project [k#1, upper(v#2) AS u#3]", aggregate(scan())),
        node("Sort [k#1 ASC NULLS FIRST], true, 0", aggregate(scan())),
        node("Exchange hashpartitioning(k#1, 9), REPARTITION_BY_NUM", aggregate(scan())),
        aggregate(scan("k#1,w#2")),
        aggregate(scan(table="db.items")),
        aggregate(scan(), "HashAggregate(keys=[k#1], functions=[{}avg(v#2)])"),
        node("Window [row_number()]", aggregate(scan())),
    ],
    ids=["filter", "projection", "sort", "repartition", "columns", "table", "function", "operator"],
)
def test_another_query_has_another_fingerprint(other: eventlog.PlanNode) -> None:
    assert fingerprint(aggregate(scan())) != fingerprint(other)


def test_a_path_with_a_date_does_not_change_the_fingerprint() -> None:
    def plan(day: str) -> eventlog.PlanNode:
        text = f"FileScan parquet [k#1] Location: InMemoryFileIndex(1 paths)[file:/in/{day}]"
        return node(text, name="Scan parquet ")

    assert fingerprint(plan("2026-11-01")) == fingerprint(plan("2026-11-02"))
    assert fingerprint(plan("2026-11-01")) != fingerprint(plan("clicks"))


INSERT = "Execute InsertIntoHadoopFsRelationCommand {}, false, Parquet, [path={}], Overwrite, [id]"
HIVE = "Execute InsertIntoHiveTable `spark_catalog`.`db`.`{}`, org.apache.hadoop.SerDe, false"
ICEBERG = "AppendData org.apache.spark.Lambda/0x{0}@5f, IcebergWrite(table=c.db.{1}, format=ORC)"
JDBC = "Execute SaveIntoDataSourceCommand Jdbc@{0}, [url=jdbc:x://host, dbtable={1}], Append"


@pytest.mark.parametrize(
    ("write", "other"),
    [
        (INSERT.format("file:/a/out", "/a/out"), INSERT.format("file:/b/out", "/b/out")),
        (HIVE.format("sales"), HIVE.format("items")),
        (ICEBERG.format("1", "sales"), ICEBERG.format("1", "items")),
        (JDBC.format("1", "sales"), JDBC.format("1", "items")),
    ],
    ids=["path", "Hive table", "Iceberg table", "JDBC table"],
)
def test_writes_to_different_targets_have_different_fingerprints(write: str, other: str) -> None:
    assert fingerprint(written(write)) != fingerprint(written(other))


@pytest.mark.parametrize(
    ("write", "same"),
    [
        (INSERT.format("file:/a/11/05", "/a/11/05"), INSERT.format("file:/a/1/2", "/a/1/2")),
        (INSERT.format("s3a://b/day=1", "b"), INSERT.format("s3a://b/day=2", "b")),
        (ICEBERG.format("1", "sales"), ICEBERG.format("2", "sales")),
        (JDBC.format("1", "sales"), JDBC.format("2", "sales")),
    ],
    ids=["date in a path", "partition", "Iceberg table", "JDBC table"],
)
def test_writes_of_different_days_have_the_same_fingerprint(write: str, same: str) -> None:
    assert fingerprint(written(write)) == fingerprint(written(same))


def test_a_write_has_the_same_fingerprint_if_its_name_has_the_table() -> None:
    older = node(ICEBERG.format("1", "sales"), scan(), name="AppendData")
    text = "AppendData c.db.sales IcebergWrite(table=c.db.sales, format=ORC)"
    assert fingerprint(older) == fingerprint(node(text, scan(), name="AppendData c.db.sales"))


def written(text: str) -> eventlog.PlanNode:
    words = text.split(" ")
    return node(text, scan(), name=" ".join(words[: 2 if words[0] == "Execute" else 1]))


def test_a_query_without_a_plan_has_no_fingerprint() -> None:
    assert fingerprint(None) is None
    assert fingerprint(node("AdaptiveSparkPlan isFinalPlan=false")) is None


def test_descriptions_are_compared_without_literals() -> None:
    assert without_literals("batch = 12,\n id 3.5") == "batch = ?, id ?"
    uuid = "0f9b5e9a-d489-7281-58fd-34f002a7bb56"
    assert without_literals(f"run {uuid} of 'a b'") == "run ? of ?"
