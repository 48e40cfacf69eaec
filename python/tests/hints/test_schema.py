"""Findings that need a schema: unknown tables, and hints of blocks that shuffle nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from apportion import InputError
from apportion.hints import lint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"t": {"a": "int"}, "u": {"a": "int"}}

FINDINGS = [
    # text, the code and the part of each finding
    ("SELECT /*+ SOURCE_PARALLELISM(x, 8) */ a FROM nope x", ["APH314 x"]),
    ("SELECT /*+ BROADCAST(nope) */ t.a FROM t JOIN nope", ["APH314 nope"]),
    ("SELECT /*+ SOURCE_PARALLELISM(T, 8) */ a FROM T", []),
    ("WITH c AS (SELECT 1) SELECT /*+ SOURCE_PARALLELISM(c, 8) */ * FROM c", []),
    ("SELECT /*+ PARALLELISM(8), FINISH_WITHIN('1 h') */ a FROM t", ["APH315 PARALLELISM(8)"]),
    ("SELECT a FROM (SELECT /*+ RANGES(even) */ a FROM t)", ["APH315 RANGES(even)"]),
    ("WITH c AS (SELECT a FROM t) SELECT /*+ RANGES(even) */ a FROM c", ["APH315 RANGES(even)"]),
    ("SELECT /*+ RANGES(even) */ DISTINCT a FROM t", []),
    ("SELECT /*+ RANGES(even) */ t.a FROM t JOIN u", []),
    ("SELECT /*+ RANGES(even) */ sum(a) FROM t", []),
    ("SELECT /*+ RANGES(even) */ row_number() OVER (ORDER BY a) FROM t", []),
    ("SELECT /*+ RANGES(even) */ a FROM t ORDER BY a", []),
    ("SELECT /*+ RANGES(even) */ a FROM t UNION SELECT 1", []),
    ("SELECT /*+ RANGES(even) */ a FROM (SELECT a FROM u GROUP BY a)", []),
    ("SELECT /*+ RANGES(even) */ a FROM t WHERE a IN (SELECT max(a) FROM u)", []),
    ("SELECT /*+ RANGES(even) */ a FROM t WHERE a IN (SELECT a FROM u)", []),
    ("SELECT /*+ RANGES(even) */ a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", []),
    ("SELECT /*+ RANGES(even) */ a, (SELECT a FROM u WHERE u.a = t.a) FROM t", []),
    ("SELECT /*+ RANGES(even), REPARTITION(a) */ a FROM t", []),
    ("SELECT /*+ REBALANCE, RANGES(even) */ a FROM t", []),
    ("SELECT /*+ RANGES(even) */ a FROM (t JOIN u USING (a))", []),
    ("(SELECT /*+ RANGES(even) */ a FROM t) ORDER BY a", []),
    ("SELECT /*+ SOURCE_PARALLELISM(x, 8) */ a FROM parquet.`/path` x", []),
    ("SELECT /*+ SOURCE_PARALLELISM(x, 8) */ id FROM range(3) x", []),
    ("SELECT /*+ RANGES(even), BROADCAST(nope) */ 1 FROM t, t, nope", []),
    ("{% if x %} SELECT /*+ RANGES(even) */ a FROM t {% endif %}", ["APH315 RANGES(even)"]),
    ("SELECT /*+ SOURCE_PARALLELISM(x, 8) */ a FROM {{ ref('nope') }} x", []),
    ("SELECT /*+ SOURCE_PARALLELISM(x, 8) */ a FROM nope_{{ day }} x", []),
    # In doubt there is no finding: an unknown function, a table that can be a view, a write.
    ("SELECT /*+ RANGES(even) */ f(a) FROM t", []),
    ("SELECT /*+ RANGES(even) */ a FROM v", []),
    ("INSERT INTO u SELECT /*+ RANGES(even) */ a FROM t", []),
    ("SELECT /*+ RANGES(even) */ " + "struct(" * 30 + "a" + ")" * 30 + " FROM t", []),
]


@pytest.mark.parametrize(("sql", "expected"), FINDINGS)
def test_findings_in_a_schema(sql: str, expected: list[str]) -> None:
    findings = [f for f in lint(sql, TABLES) if f.code in ("APH314", "APH315")]
    assert [f"{f.code} {sql[f.offset : f.offset + f.length]}" for f in findings] == expected
    assert [f for f in lint(sql) if f.code in ("APH314", "APH315")] == []


@pytest.mark.parametrize(("table", "is_known"), [("d.t", True), ("D.T", True), ("e.t", False)])
def test_a_schema_can_have_databases(table: str, is_known: bool) -> None:
    sql = f"SELECT /*+ SOURCE_PARALLELISM(x, 8) */ a FROM {table} x"
    codes = [finding.code for finding in lint(sql, {"d": TABLES})]
    assert codes == ([] if is_known else ["APH314"])


def test_a_table_of_two_databases_is_known_without_its_database() -> None:
    schema = {"d": TABLES, "e": TABLES}
    assert lint("SELECT /*+ SOURCE_PARALLELISM(t, 8) */ a FROM t", schema) == []


def test_sqlglot_does_not_warn_of_unknown_statements(caplog: pytest.LogCaptureFixture) -> None:
    assert lint("EXPLAIN FORMATTED SELECT /*+ RANGES(even) */ a FROM t", TABLES) == []
    assert caplog.records == []


@pytest.mark.parametrize(
    "schema",
    [
        {"a": {"b": "int"}, "c": {"d": {"e": "int"}}},
        {"t": None},
        {"a": {"b": {"c": {"d": {"e": "int"}}}}},
    ],
    ids=["of two depths", "without columns", "too deep"],
)
def test_a_schema_of_another_form_raises(schema: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="the schema must have the form"):
        lint("SELECT /*+ RANGES(even) */ 1", schema)


@pytest.mark.parametrize("schema", [["t"], "tables.yml"], ids=["names", "a file"])
def test_a_schema_that_is_no_mapping_raises(schema: Any) -> None:
    with pytest.raises(InputError, match=r"allowed is \{table: \{column: type\}\} or a session"):
        lint("SELECT /*+ SOURCE_PARALLELISM(t, 8) */ a FROM t", schema)


def test_a_session_is_a_schema(spark: SparkSession) -> None:
    spark.range(1).createOrReplaceTempView("some_view")
    sql = "SELECT /*+ RANGES(even), SOURCE_PARALLELISM(x, 8) */ id FROM {} x"
    assert lint(sql.format("some_view"), spark) == []
    assert [finding.code for finding in lint(sql.format("no_table"), spark)] == ["APH314"]


@pytest.mark.parametrize(
    "source",
    [
        "(t JOIN u USING (a))",
        "t PIVOT (sum(a) FOR k IN (1, 2))",
        "t TABLESAMPLE (10 PERCENT) REPEATABLE (3)",
        "t VERSION AS OF 3",
        "range(3) t",
        "explode(array(1)) t",
        "nocat.db.t",
    ],
)
def test_a_source_that_the_catalog_does_not_know_raises_nothing(
    spark: SparkSession, source: str
) -> None:
    lint(f"SELECT /*+ PARALLELISM(8), SOURCE_PARALLELISM(t, 2) */ * FROM {source}", spark)
