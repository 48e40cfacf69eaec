"""The input of sqlglot, and the tables that it finds in each block."""

from __future__ import annotations

import pytest

from apportion.hints.relations import parse
from apportion.hints.sqlglot_input import prepare
from apportion.sql.blocks import read

PREPARED = [
    # text, and the input of sqlglot at the same length
    ("SELECT /*+ A */ 1", "SELECT          1"),
    ("SELECT/* ' */1 -- x", "SELECT       1     "),
    ("SELECT 'a\nb',\n\t1", "SELECT 'a b',  1"),
    ("SELECT {{ x }}, a_{{ y }}", "SELECT xxxxxxx, a_xxxxxxx"),
    ("SELECT {% if x %} 1 {# y #}", "SELECT            1        "),
    ("SELECT ${x}", "SELECT xxxx"),
    ("SELECT $$ ' $$", "SELECT 'xxxxx'"),
    ("EXPLAIN COST SELECT 1", "             SELECT 1"),
    ("SELECT * FROM a JOIN b", "SELECT * FROM a ,    b"),
    ("SELECT * FROM a CROSS JOIN b WHERE c", "SELECT * FROM a       ,    b WHERE c"),
    ("SELECT * FROM a JOIN b ON c JOIN d", "SELECT * FROM a JOIN b ON c ,    d"),
    ("SELECT * FROM a JOIN b JOIN c USING (d)", "SELECT * FROM a ,    b JOIN c USING (d)"),
    ("SELECT * FROM (a JOIN b) JOIN c ON d", "SELECT * FROM (a ,    b) JOIN c ON d"),
    ("FROM a |> LEFT JOIN b", "FROM a |> LEFT JOIN b"),
    ("SELECT date(date(a))", "SELECT xxxx(date(a))"),
    ("SELECT CAST(a AS DECIMAL(10, 2))", "SELECT CAST(a AS DECIMAL(10, 2))"),
]


@pytest.mark.parametrize(("sql", "expected"), PREPARED)
def test_a_statement_is_prepared_at_its_length(sql: str, expected: str) -> None:
    text = read(sql)
    # White space and comments around a statement do not belong to it.
    assert prepare(text, text.statements[0]) == expected.rstrip().ljust(text.statements[0].end)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM a" + " JOIN b" * 300,
        "SELECT * FROM a" + " LEFT JOIN b" * 300,
        "SELECT * FROM a" + " JOIN (SELECT 1) b" * 200,
        "SELECT " + "struct(" * 30 + "1" + ")" * 30,
        "SELECT " + "date(" * 30 + "1" + ")" * 30,
    ],
    ids=lambda sql: sql[:40],
)
def test_statements_with_exponential_parsing_time_are_parsed(sql: str) -> None:
    text = read(sql)
    assert parse(text, text.statements[0]).problem is None


RELATIONS = [
    # text, and the relations of each block
    ("SELECT * FROM a, b.c d JOIN `e f` ON g", {"main": ["a", "d", "`e f`"]}),
    ("SELECT * FROM a.b.c", {"main": ["a.b.c"]}),
    ("SELECT * FROM (a JOIN b)", {"main": ["a", "b"]}),
    ("SELECT * FROM (SELECT * FROM a) b", {"main": ["b"], "subquery 1": ["a"]}),
    ("SELECT * FROM range(5) r, VALUES (1) AS v(x), f(1)", {"main": ["r", "v"]}),
    ("SELECT * FROM a LATERAL VIEW explode(b) c AS d", {"main": ["a", "c"]}),
    ("SELECT * FROM a, LATERAL (SELECT * FROM b) c", {"main": ["a", "c"], "subquery 1": ["b"]}),
    ("SELECT * FROM a TABLESAMPLE (10 PERCENT) b", {"main": ["b"]}),
    ("SELECT a FROM b WHERE c IN (SELECT d FROM e)", {"main": ["b"], "subquery 1": ["e"]}),
    ("WITH a AS (SELECT * FROM b) SELECT * FROM a", {"cte a": ["b"], "main": ["a"]}),
    (
        "SELECT * FROM a UNION SELECT * FROM b",
        {"union branch 1": ["a"], "union branch 2": ["b"]},
    ),
    ("INSERT INTO a SELECT * FROM b", {"main": ["b"]}),
    ("FROM a SELECT b", {"main": ["a"]}),
    ("FROM a |> JOIN b |> SELECT c |> JOIN d", {"pipe 1": ["a", "b"]}),
    ("SELECT * FROM {{ ref('a') }} b JOIN ${c}.d", {"main": ["b", "${c}.d"]}),
]


@pytest.mark.parametrize(("sql", "expected"), RELATIONS)
def test_blocks_have_relations(sql: str, expected: dict[str, list[str]]) -> None:
    text = read(sql)
    (statement,) = text.statements
    parsed = parse(text, statement)
    assert parsed.problem is None
    names = {
        block.path: [relation.text for relation in parsed.relations_in(block)]
        for block in statement.blocks
    }
    assert names == expected
