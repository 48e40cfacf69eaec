"""The tables in the FROM of each block."""

from __future__ import annotations

import pytest

from apportion.hints.relations import RelationsReader
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
    names = {}
    for block in read(sql).blocks:
        relations = RelationsReader().read(block)
        assert relations.unread is None
        names[block.path] = [relation.text for relation in relations.found]
    assert names == expected
