"""Hints in sqlglot's expressions: the dialect, and the same changes as in texts."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import ErrorLevel, ParseError, exp

from apportion.bench.suites import tpc
from apportion.hints import HintError, add, lint, replace, strip
from apportion.hints.expressions import Apportion, TypedHint, read_hints

HINTED = (
    "SELECT /*+ PARALLELISM(4, 64), BROADCAST(t), RANGES(balanced) */ a FROM t JOIN u USING (b)"
)


def test_the_dialect_gives_typed_hints_and_writes_them_back() -> None:
    query = sqlglot.parse_one(HINTED, read=Apportion)
    assert isinstance(query, exp.Select)
    assert read_hints(query) == [
        TypedHint("PARALLELISM", (4, 64)),
        TypedHint("RANGES", ("balanced",)),
    ]
    assert query.sql(dialect=Apportion) == query.sql(dialect="spark") == HINTED


def test_the_name_of_the_dialect_is_known() -> None:
    assert sqlglot.parse_one("SELECT /*+ SLOTS(0, 1, 2) */ 1", read="apportion")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT /*+ PARALLELISM(0) */ 1", "APH303: PARALLELISM takes a number from 1 to"),
        ("SELECT\n /*+ PARALELISM(8) */ 1", r"APH201: unknown hint .*\(line 2, column 6\)"),
        ("SELECT /*+ PARALLELISM(t 8) */ 1", "APH104: Spark cannot parse this hint comment"),
        ("SELECT 1 FROM /*+ RANGES(even) */ t", "APH101: Spark allows a hint comment only"),
    ],
)
def test_the_dialect_refuses_a_wrong_hint(sql: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        sqlglot.parse_one(sql, read=Apportion)
    assert sqlglot.parse_one("SELECT 1", read=Apportion, error_level=ErrorLevel.IGNORE)


def test_the_dialect_keeps_a_second_hint_comment() -> None:
    query = sqlglot.parse_one("SELECT /*+ MERGE(t) */ /*+ SLOTS(0, 1, 2) */ 1", read=Apportion)
    assert query.sql(dialect="spark") == "SELECT /*+ MERGE(t), SLOTS(0, 1, 2) */ 1"


@pytest.mark.parametrize(
    ("sql", "block", "expected"),
    [
        # text, block, text of the expression with PARALLELISM(8) added
        ("SELECT 1", None, "SELECT /*+ PARALLELISM(8) */ 1"),
        ("SELECT /*+ MERGE(t) */ 1", None, "SELECT /*+ MERGE(t), PARALLELISM(8) */ 1"),
        (
            "WITH c AS (SELECT 1) SELECT * FROM (SELECT 2)",
            "cte c",
            "WITH c AS (SELECT /*+ PARALLELISM(8) */ 1) SELECT * FROM (SELECT 2)",
        ),
        (
            "SELECT 1 UNION SELECT 2",
            None,
            "SELECT /*+ PARALLELISM(8) */ 1 UNION SELECT /*+ PARALLELISM(8) */ 2",
        ),
    ],
)
def test_a_hint_is_added_to_an_expression(sql: str, block: str | None, expected: str) -> None:
    query = sqlglot.parse_one(sql, read="spark")
    hinted = add(query, "PARALLELISM(8)", block)
    assert hinted.sql(dialect="spark") == expected
    assert query.sql(dialect="spark") == sql
    assert strip(hinted) == query
    assert replace(hinted, "PARALLELISM(4)", block).sql(dialect="spark") == expected.replace(
        "(8)", "(4)"
    )


def test_other_nodes_of_an_expression_are_equal_after_a_change() -> None:
    for text in tpc.queries("tpch").values():
        query = sqlglot.parse_one(text, read="spark")
        assert strip(add(query, "DATA_VOLUME('1gb')")) == query


def test_errors_and_findings_of_expressions_are_those_of_texts() -> None:
    query = sqlglot.parse_one("SELECT /*+ PARALELISM(8), RANGES(even) */ 1", read="spark")
    assert [finding.code for finding in lint(query)] == ["APH201"]
    with pytest.raises(HintError, match="block 'main' already has RANGES"):
        add(query, "RANGES(even)")
    with pytest.raises(HintError, match="unknown block 'cte c'"):
        add(query, "PARALLELISM(8)", "cte c")


def test_a_statement_that_sqlglot_keeps_as_text_is_refused() -> None:
    query = sqlglot.parse_one("EXPLAIN FORMATTED SELECT 1", read="spark")
    with pytest.raises(HintError, match="sqlglot keeps block 'main' of the expression as text"):
        add(query, "PARALLELISM(8)")
