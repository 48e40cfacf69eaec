from __future__ import annotations

import pytest

from apportion import ApportionError
from apportion.sql.statements import split


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1;\n\n SELECT 2 ;;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', `a;b`, \"c;\"; SELECT 2", ["SELECT ';', `a;b`, \"c;\"", "SELECT 2"]),
        ("-- one; not two\nSELECT 1 /* ; */; -- the end;", ["-- one; not two\nSELECT 1 /* ; */"]),
        ("SELECT /*+ REPARTITION(3); */ 1", ["SELECT /*+ REPARTITION(3); */ 1"]),
        (r"SELECT '\';', r'\'; SELECT 2", [r"SELECT '\';', r'\'", "SELECT 2"]),
        ("SELECT 'größe;';\r\nSELECT 2\r\n", ["SELECT 'größe;'", "SELECT 2"]),
    ],
)  # fmt: skip
def test_split(text: str, statements: list[str]) -> None:
    assert [statement.text for statement in split(text)] == statements


@pytest.mark.parametrize(
    ("text", "is_query"),
    [
        ("SELECT 1", True),
        ("  -- a comment\n (SELECT 1) UNION ALL SELECT 2", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("VALUES (1)", True),
        ("FROM t |> SELECT a", True),
        ("TABLE t", True),
        ("SELECT `insert` FROM t", True),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", False),
        ("FROM s INSERT INTO t SELECT * INSERT INTO u SELECT *", False),
        ("INSERT INTO t SELECT 1", False),
        ("CREATE TABLE t AS SELECT 1", False),
        ("SET a = 1", False),
        ("DROP TABLE t", False),
    ],
)
def test_only_queries_may_run_twice(text: str, is_query: bool) -> None:
    assert [statement.is_query for statement in split(text)] == [is_query]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no SQL statement"),
        (" ; -- nothing\n;", "no SQL statement"),
        ("SELECT 'open", "cannot be split into statements"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(ApportionError, match=message):
        split(text)
