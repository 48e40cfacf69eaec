"""Queries that are hard to read: each form of nesting, combined with each gap and item."""

from __future__ import annotations

from collections.abc import Iterator

# Forms of nesting. Each SELECT is replaced by SELECT with a gap or an item.
FORMS = [
    "SELECT",
    "(SELECT)",
    "(((SELECT)))",
    ";;SELECT;",
    "SELECT; SELECT FROM t",
    "SELECT FROM t WHERE a = 1 GROUP BY b HAVING c ORDER BY d LIMIT 5",
    "SELECT UNION ALL SELECT",
    "SELECT UNION (SELECT) EXCEPT ALL SELECT ORDER BY (SELECT FROM t)",
    "(SELECT EXCEPT SELECT) INTERSECT DISTINCT SELECT LIMIT 3",
    "WITH c AS (SELECT) SELECT FROM c",
    "WITH c (x) AS (SELECT), `d``e` AS (WITH f AS (SELECT) SELECT) SELECT FROM c, `d``e`",
    "WITH c AS (SELECT) (SELECT FROM c)",
    "WITH RECURSIVE r(n) AS (SELECT UNION ALL SELECT FROM r) SELECT FROM r",
    "WITH c AS (SELECT) INSERT INTO t SELECT FROM c",
    "INSERT INTO t SELECT",
    "INSERT INTO t (a, b) WITH c AS (SELECT) SELECT",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT",
    "CREATE TABLE t USING parquet AS SELECT",
    "CREATE OR REPLACE TEMPORARY VIEW v AS (SELECT)",
    "CACHE TABLE t AS SELECT",
    "EXPLAIN FORMATTED SELECT",
    "FROM t SELECT",
    "FROM t INSERT INTO a SELECT INSERT INTO b SELECT",
    "FROM t |> WHERE a > (SELECT FROM u) |> SELECT |> LIMIT 3",
    "SELECT FROM (SELECT FROM (SELECT) x) y, LATERAL (SELECT) z",
    "SELECT FROM (a JOIN (SELECT) b ON a.x = b.x) JOIN ((SELECT) UNION (SELECT)) c",
    "SELECT FROM t WHERE EXISTS (SELECT FROM u) AND (a, b) IN (SELECT FROM v)",
    "VALUES ((SELECT FROM t)), (2)",
    "MERGE INTO t USING (SELECT) s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "UPDATE t SET a = (SELECT FROM u) WHERE b IN (SELECT FROM v)",
    "DELETE FROM t WHERE a IN (SELECT FROM u)",
    "SELECT, EXISTS(SELECT FROM t), array((SELECT FROM u)), CASE (SELECT FROM v) WHEN 1 THEN 2 END",
]

# Text directly after SELECT.
GAPS = {
    "space": " ",
    "newline": "\n",
    "CRLF": "\r\n\t",
    "no-break space": "\u00a0",
    "comment": " /* c */ ",
    "empty comment": "/**/",
    "nested comment": " /* a /* ' */ \" */ ",
    "comment with hint": " /* not /*+ a hint */ ",
    "line comment": " -- it's /*+ PARALLELISM(9) */\n",
    "line comment, CRLF": "--\r\n",
    "continued line comment": " -- a \\\n ' \r\n ",
    "Spark's hint": " /*+ BROADCAST(t) */ ",
    "tight hint": "/*+MERGE(t)*/",
    "two hints": " /*+ BROADCAST(t), REPARTITION(3, a) -- ' */\n */ DISTINCT ",
    "two hint comments": " /*+ COALESCE(3) */\r\n/*+ MERGE(t) /* x */ */ ",
    "foreign hint": " /*+ SKEW('a */', `b */`) */ ",
}

# Select lists.
ITEMS = {
    "star": "*",
    "string with hint": "'/*+ PARALLELISM(8) */'",
    "quotes": "'it''s', \"\"\"\", 'a\\'b', '\\\\'",
    "raw strings": "r'\\', R\"\\\"",
    "comment marks in strings": "'--', '/*', \"*/\"",
    "backticks": "`/*+ a */`, `b``c`, `SELECT`",
    "unicode": "'日本', `ñ`, '\U0001f600'",
    "numbers": "1.5e-3, .5, 1L, 2BD, 3--4\n",
    "select as a name": "t.select, 1 AS select",
    "division and product": "a/b*c, -1",
    "semicolon in string": "';', \"(\", `)`",
    "functions": "trim(BOTH ' ' FROM a), transform(b, x -> x + 1), extract(YEAR FROM c)",
    "EXCEPT columns": "* EXCEPT (union, b)",
}

# SQL that fits no form, and templates, which are SQL only after substitution.
OTHERS = {
    "dollar strings": "CREATE FUNCTION f() RETURNS INT AS $$ it's /*+ $$; SELECT 1, $t$ $$ ' $t$",
    "MINUS": "SELECT 1 MINUS SELECT 2",
    "script": "BEGIN SELECT 1; IF (SELECT 2) = 2 THEN SELECT 3; END IF; END",
    "TRANSFORM in FROM": "SELECT * FROM (SELECT TRANSFORM(a) USING 'cat' AS (b) FROM t)",
    "expression": "SELECT {{ x }} FROM {{ ref('it''s') }} a",
    "statement": "{% if it's %}SELECT 1{% else %}SELECT 2{% endif %}",
    "comment": "{# it's ( #} SELECT 1",
    "config": "{{ config(materialized='table', hints=\"/*+ X */\") }}\n\nSELECT * FROM t",
    "in a string": "SELECT '{{ x' FROM t",
    "in a name": "SELECT * FROM db_{{ env }}.t WHERE a = (SELECT {{ agg }}(x) FROM u)",
    "variable": "SELECT ${hiveconf:x}, '${y' FROM ${db}.t",
    "in a hint": "SELECT /*+ BROADCAST({{ small }}) */ * FROM t",
    "macro in parentheses": "SELECT * FROM ({{ sub() }}) s JOIN ({% x %} SELECT 1) r",
    "loop": "SELECT {% for c in cs %}{{ c }}, {% endfor %} 1 FROM t",
}


def spark_queries() -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each query that Spark's parser accepts."""
    for form in FORMS:
        for name, gap in GAPS.items():
            yield f"{form}: {name}", form.replace("SELECT", f"SELECT{gap}1")
        for name, item in ITEMS.items():
            yield f"{form}: {name}", form.replace("SELECT", f"SELECT {item}")


def odd_queries() -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each query, with templates."""
    yield from spark_queries()
    yield from OTHERS.items()
