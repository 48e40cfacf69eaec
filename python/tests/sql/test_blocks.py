"""The blocks of a text and their paths. The path after `>` is the enclosing block."""

from __future__ import annotations

import pytest

from apportion.sql.blocks import read

BLOCKS = [
    # text, its blocks as `path` or `path > path of the enclosing block`
    ("SELECT 1", ["main"]),
    ("((SELECT 1))", ["main"]),
    ("SELECT (SELECT 2), f((SELECT 3))", ["main", "subquery 1 > main", "subquery 2 > main"]),
    (
        "SELECT * FROM (SELECT * FROM (SELECT 1) a) b",
        ["main", "subquery 1 > main", "subquery 1 / subquery 1 > subquery 1"],
    ),
    ("WITH a AS (SELECT 1) SELECT * FROM a", ["cte a", "main"]),
    ("WITH a (SELECT 1), `b c`(x) AS (SELECT 2) SELECT 3", ["cte a", "cte b c", "main"]),
    ("WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT 1) SELECT 2", ["cte r", "main"]),
    (
        "WITH a AS (SELECT * FROM (SELECT 1)) SELECT 2",
        ["cte a", "cte a / subquery 1 > cte a", "main"],
    ),
    (
        "WITH a AS (WITH b AS (SELECT 1) SELECT 2) SELECT 3",
        ["cte a / cte b", "cte a", "main"],
    ),
    ("WITH a AS (SELECT 1) (SELECT 2)", ["cte a", "main"]),
    ("WITH a AS (SELECT 1) (WITH a AS (SELECT 2) SELECT 3)", ["cte a", "cte a (2)", "main"]),
    (
        "SELECT x IN (WITH a AS (SELECT 1) (SELECT 2))",
        ["main", "subquery 1 / cte a", "subquery 1 > main"],
    ),
    ("SELECT 1 UNION ALL SELECT 2", ["union branch 1", "union branch 2"]),
    ("SELECT 1 UNION ALL (SELECT 2)", ["union branch 1", "union branch 2"]),
    ("SELECT 1 MINUS SELECT 2", ["except branch 1", "except branch 2"]),
    (
        "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3",
        ["union branch 1", "union branch 2", "intersect branch 3"],
    ),
    (
        "(SELECT 1 UNION SELECT 2) EXCEPT SELECT 3",
        ["except branch 1 / union branch 1", "except branch 1 / union branch 2", "except branch 2"],
    ),
    (
        "SELECT * FROM ((SELECT 1) UNION (SELECT 2))",
        ["main", "subquery 1 / union branch 1 > main", "subquery 1 / union branch 2 > main"],
    ),
    (
        "SELECT 1 UNION SELECT (SELECT 2) ORDER BY (SELECT 3)",
        [
            "union branch 1",
            "union branch 2",
            "union branch 2 / subquery 1 > union branch 2",
            "subquery 1",
        ],
    ),
    ("SELECT 1 UNION VALUES (2)", ["union branch 1"]),
    ("SELECT * EXCEPT (a) FROM t", ["main"]),
    ("SELECT union, minus FROM t", ["main"]),
    ("SELECT 1; ; SELECT 2;", ["statement 1 / main", "statement 2 / main"]),
    ("SELECT 1;", ["main"]),
    ("FROM t SELECT 1", ["main"]),
    ("FROM (SELECT 1) SELECT 2", ["subquery 1 > main", "main"]),
    ("FROM t INSERT INTO a SELECT 1 INSERT INTO b SELECT 2", ["body 1", "body 2"]),
    ("SELECT 1 |> SELECT 2 |> SELECT 3", ["main > pipe 1", "pipe 1 > pipe 2", "pipe 2"]),
    (
        "FROM t |> WHERE a IN (SELECT 1) |> SELECT 2 |> WHERE b IN (SELECT 3)",
        ["subquery 1 > pipe 1", "pipe 1", "subquery 2"],
    ),
    ("INSERT INTO t (a, b) SELECT 1", ["main"]),
    ("INSERT INTO t WITH c(x) AS (SELECT 1) SELECT 2", ["cte c", "main"]),
    ("WITH c AS (SELECT 1) INSERT INTO t SELECT 2", ["cte c", "main"]),
    ("INSERT INTO t VALUES ((SELECT 1))", ["subquery 1"]),
    ("CREATE TABLE t AS SELECT 1", ["main"]),
    ("CREATE VIEW v (a COMMENT 'b') AS (SELECT 1)", ["main"]),
    ("CREATE TABLE t WITH SERDEPROPERTIES ('a'='b') AS SELECT 1", ["main"]),
    ("EXPLAIN EXTENDED SELECT 1", ["main"]),
    ("CACHE TABLE t AS SELECT 1", ["main"]),
    ("MERGE INTO t USING (SELECT 1) s ON a = b WHEN MATCHED THEN DELETE", ["subquery 1"]),
    ("UPDATE t SET a = (SELECT 1) WHERE b IN (SELECT 2)", ["subquery 1", "subquery 2"]),
    ("DELETE FROM t WHERE a IN (SELECT 1)", ["subquery 1"]),
    ("SELECT a.select, select, 1 AS select FROM t", ["main"]),
    ("SELECT select + 1 FROM VALUES (1) AS t(select)", ["main"]),
    ("SELECT `SELECT` FROM t -- SELECT", ["main"]),
    ("SELECT {{ x }} FROM ({% if y %} SELECT 1)", ["main", "subquery 1 > main"]),
    ("VALUES (1)", []),
    ("SET a = b", []),
    ("", []),
]


@pytest.mark.parametrize(("sql", "expected"), BLOCKS)
def test_blocks_have_paths_and_enclosers(sql: str, expected: list[str]) -> None:
    text = read(sql)
    paths = [
        f"{block.path} > {block.encloser.path}" if block.encloser else block.path
        for block in text.blocks
    ]
    assert paths == expected
    assert all(block.select.text == "SELECT" for block in text.blocks)


@pytest.mark.parametrize(
    ("sql", "outermost"),
    [
        ("SELECT (SELECT 1)", ["main"]),
        ("WITH a AS (SELECT 1) SELECT * FROM a", ["main"]),
        ("SELECT 1 UNION SELECT 2", ["union branch 1", "union branch 2"]),
        ("SELECT 1 |> SELECT 2", ["pipe 1"]),
        ("DELETE FROM t WHERE a IN (SELECT 1)", ["subquery 1"]),
        ("WITH a AS (SELECT 1) TABLE a", []),
    ],
)
def test_outermost_blocks(sql: str, outermost: list[str]) -> None:
    assert [block.path for block in read(sql).blocks if block.is_outermost] == outermost


@pytest.mark.parametrize(
    ("sql", "start", "message"),
    [
        ("SELECT (1", 7, "unmatched parenthesis ("),
        ("SELECT 1)", 8, "unmatched parenthesis )"),
        ("SELECT /*+ A", 7, "the hint comment opened by /*+ is never closed"),
        ("SELECT 'a", 7, "the string opened by ' is never closed"),
        ("SELECT " + "(" * 5000 + ")" * 5000, 0, "parentheses are nested too deeply"),
        ("SELECT (1; SELECT 2)", 7, "unmatched parenthesis ("),
    ],
)
def test_an_unreadable_text_has_a_problem_and_no_blocks(sql: str, start: int, message: str) -> None:
    text = read(sql)
    assert text.blocks == []
    assert text.problem is not None
    assert (text.problem.start, text.problem.message) == (start, message)
