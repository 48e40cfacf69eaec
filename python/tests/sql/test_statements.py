"""The statements of a text, for `apportion run` and for the linter."""

from __future__ import annotations

import pytest

from apportion import ApportionError
from apportion.sql.blocks import read
from apportion.sql.statements import split
from tests.hints.odd_queries import odd_queries


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
        ("SELECT $$;$$, {{ ';' }}; SELECT 2", ["SELECT $$;$$, {{ ';' }}", "SELECT 2"]),
        ("-- a \\\n; b\nSELECT 1; SELECT 2", ["-- a \\\n; b\nSELECT 1", "SELECT 2"]),
        ("SELECT (1; SELECT 2", ["SELECT (1", "SELECT 2"]),
        ("/*+ RANGES(even) */; SELECT 1", ["SELECT 1"]),
    ],
)  # fmt: skip
def test_text_is_split_into_statements(text: str, statements: list[str]) -> None:
    assert [statement.text for statement in split(text)] == statements


@pytest.mark.parametrize(
    ("text", "is_query"),
    [
        ("SELECT 1", True),
        ("  -- a comment\n (SELECT 1) UNION ALL SELECT 2", True),
        ("/*+ RANGES(even) */ SELECT 1", True),
        ("{# a comment #} SELECT 1", True),
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
def test_a_statement_that_only_reads_is_a_query(text: str, is_query: bool) -> None:
    assert [statement.is_query for statement in split(text)] == [is_query]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no SQL statement"),
        (" ; -- nothing\n;", "no SQL statement"),
        (
            "SELECT 1;\n 'open",
            r"cannot be split into statements: the string opened by ' is never closed "
            r"\(line 2, column 2\)",
        ),
        ("SELECT /* open", "the comment opened by /\\* is never closed"),
        ("SELECT /*+ open", "the hint comment opened by .* is never closed"),
    ],
)
def test_a_text_without_readable_statements_raises(text: str, message: str) -> None:
    with pytest.raises(ApportionError, match=message):
        split(text)


ODD_QUERIES = dict(odd_queries())


@pytest.mark.parametrize("sql", ODD_QUERIES.values(), ids=ODD_QUERIES.keys())
def test_the_linter_reads_the_same_statements(sql: str) -> None:
    runnable = [statement.text for statement in split(sql)]
    read_by_linter = [sql[each.start : each.end] for each in read(sql).statements]
    assert len(runnable) == len(read_by_linter)
    for text, code in zip(runnable, read_by_linter, strict=True):
        assert code in text
