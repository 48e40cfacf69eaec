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
    "script",
    [
        "BEGIN END",
        "BEGIN DECLARE x INT; SELECT x; END",
        "BEGIN NOT ATOMIC SELECT 1; END",
        "BEGIN SELECT end FROM t; SELECT 2; END",
        "BEGIN IF a THEN SELECT 1; ELSEIF b THEN SELECT 2; ELSE SELECT 3; END IF; END",
        "BEGIN IF CASE WHEN a THEN b END THEN SELECT 1; END IF; BEGIN SELECT 2; END; END",
        "BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; SELECT CASE a WHEN 1 THEN 2 END; END",
        "BEGIN CASE WHEN a THEN SELECT 1; WHEN b THEN SELECT 2; END CASE; END",
        "BEGIN l: WHILE a DO LEAVE l; END WHILE l; END",
        "BEGIN FOR r AS SELECT 1 DO SELECT r.a; END FOR; LOOP SELECT 1; END LOOP; END",
        "BEGIN REPEAT SELECT 1; UNTIL a END REPEAT; END",
        "BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '1', NOT FOUND BEGIN SELECT 1; END; END",
        "BEGIN DECLARE c CONDITION FOR SQLSTATE '1'; SELECT IF(a, 1, 2); END",
    ],
)
def test_a_script_is_one_statement(script: str) -> None:
    assert [each.text for each in split(f"{script}; SELECT 9")] == [script, "SELECT 9"]


def test_a_script_has_parts() -> None:
    script = (
        "BEGIN DECLARE EXIT HANDLER FOR NOT FOUND BEGIN SELECT 1; END; IF CASE WHEN a THEN 2 END "
        "THEN SELECT 3; ELSEIF (SELECT 4) THEN MERGE INTO t USING u ON a WHEN MATCHED THEN DELETE; "
        "ELSE SELECT 5; END IF; REPEAT SELECT 6; UNTIL b END REPEAT; l: FOR r AS SELECT 7 DO "
        "SELECT 8; END FOR; END"
    )
    assert [script[part.start : part.end] for part in read(script).statements] == [
        "SELECT 1",
        "IF CASE WHEN a THEN 2 END",
        "SELECT 3",
        "ELSEIF (SELECT 4)",
        "MERGE INTO t USING u ON a WHEN MATCHED THEN DELETE",
        "SELECT 5",
        "SELECT 6",
        "UNTIL b",
        "FOR r AS SELECT 7",
        "SELECT 8",
    ]


def test_a_script_without_end_reaches_to_the_end() -> None:
    assert [each.text for each in split("BEGIN SELECT 1; SELECT 2")] == ["BEGIN SELECT 1; SELECT 2"]


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
        ("SELECT insert('abc', 1, 1, 'x')", True),
        ("SELECT update, delete FROM t", True),
        ("WITH a AS (SELECT 1) SELECT (1) + insert('abc', 1, 1, 'x')", True),
        ("WITH a AS (SELECT 1) MERGE INTO t USING a ON true WHEN MATCHED THEN DELETE", False),
        ("WITH a AS (SELECT 1) MERGE WITH SCHEMA EVOLUTION INTO t USING a ON true", False),
        ("WITH a AS (SELECT 1), b(c) AS (SELECT 2) UPDATE t SET n = n + 1", False),
        ("WITH a AS (SELECT 1) DELETE FROM t WHERE n IN (SELECT * FROM a)", False),
        ("FROM (SELECT 1) s INSERT OVERWRITE TABLE t SELECT *", False),
        ("EXECUTE IMMEDIATE 'SELECT 1'", False),
        ("BEGIN SELECT 1; END", False),
        ("CALL system.rewrite()", False),
        ("CACHE TABLE t", False),
        ("DROP TABLE t", False),
    ],
)
def test_a_statement_that_only_reads_is_a_query(text: str, is_query: bool) -> None:
    assert [statement.is_query for statement in split(text)] == [is_query]


def test_a_statement_knows_its_line_and_column() -> None:
    first, second, third = split("\nSELECT 1; SELECT\n2;\r\n-- c\nSELECT 3")
    assert [(first.line, first.column), (second.line, second.column)] == [(2, 1), (2, 11)]
    assert third.line == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no SQL statement"),
        (" ; -- nothing\n;", "no SQL statement"),
        (
            "SELECT 1;\n 'open",
            r"cannot be split into statements: the string opened by ' is never closed "
            r"\(statement 2, line 2, column 2\)",
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
    read_by_linter = [(each.number, sql[each.start : each.end]) for each in read(sql).statements]
    # The linter reads the statements inside a script one by one.
    assert {number for number, _ in read_by_linter} == set(range(1, len(runnable) + 1))
    assert all(code in runnable[number - 1] for number, code in read_by_linter)
