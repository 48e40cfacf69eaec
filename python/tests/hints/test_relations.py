"""The tables in the FROM of each block."""

from __future__ import annotations

import pytest

from apportion.sql.blocks import read

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
    ("SELECT * FROM a TABLESAMPLE (9 ROWS) REPEATABLE (1) JOIN b", {"main": ["a", "b"]}),
    ("WITH c(x) AS (SELECT 1) TABLE c |> SELECT x", {"cte c": [], "pipe 1": ["c"]}),
    ("SELECT * FROM a UNPIVOT INCLUDE NULLS (b FOR c IN (d)) e", {"main": ["a", "e"]}),
    ("SELECT a FROM b WHERE c IN (SELECT d FROM e)", {"main": ["b"], "subquery 1": ["e"]}),
    ("WITH a AS (SELECT * FROM b) SELECT * FROM a", {"cte a": ["b"], "main": ["a"]}),
    (
        "SELECT * FROM a UNION SELECT * FROM b",
        {"union branch 1": ["a"], "union branch 2": ["b"]},
    ),
    ("INSERT INTO a SELECT * FROM b", {"main": ["b"]}),
    ("SELECT * FROM VALUES 1, 2 AS v(x), VALUES (map(1, 2)) w", {"main": ["v", "w"]}),
    ("SELECT * FROM a JOIN b ON f(a.x, (1)) AND NOT b.left, c", {"main": ["a", "b", "c"]}),
    ("FROM a |> AS b |> SELECT c", {"pipe 1": ["b"]}),
    ("SELECT * FROM a x PIVOT (sum(b) FOR c IN (1)) p", {"main": ["x", "p"]}),
    ("SELECT * FROM f(TABLE(t) PARTITION BY a) JOIN u", {"main": ["u"]}),
    (
        "SELECT * FROM a VERSION AS OF 3 b, c FOR TIMESTAMP AS OF now() JOIN d",
        {"main": ["b", "c", "d"]},
    ),
    ("SELECT extract(YEAR FROM a), * FROM b WHERE a IS DISTINCT FROM c", {"main": ["b"]}),
    ("SELECT * FROM a LATERAL VIEW OUTER explode(b) c AS d, e JOIN f", {"main": ["a", "c", "f"]}),
    ("FROM a SELECT b", {"main": ["a"]}),
    ("FROM a |> JOIN b |> SELECT c |> JOIN d", {"pipe 1": ["a", "b"]}),
    ("SELECT * FROM {{ ref('a') }} b JOIN ${c}.d", {"main": ["b", "${c}.d"]}),
]


OPEN = [
    "SELECT * FROM a b c",
    "SELECT * FROM WHERE a",
    "SELECT * FROM IDENTIFIER('s').a",
    "SELECT * FROM a b {{ joins() }}",
]


@pytest.mark.parametrize(("sql", "expected"), RELATIONS)
def test_blocks_have_relations(sql: str, expected: dict[str, list[str]]) -> None:
    names = {}
    for block in read(sql).blocks:
        found = block.relations.found[: block.relations.before(block.end)]
        names[block.path] = [relation.text for relation in found]
    assert names == expected


@pytest.mark.parametrize("sql", OPEN)
def test_a_template_or_unknown_syntax_can_be_any_relation(sql: str) -> None:
    (block,) = read(sql).blocks
    assert block.relations.is_open
