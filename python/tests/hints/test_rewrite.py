"""Adding, replacing and removing hints changes nothing else, and `strip` reverses `add`."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.bench.suites import tpc
from apportion.hints import HintError, add, replace, strip
from apportion.sql.blocks import read

from .odd_queries import FORMS, GAPS, ITEMS, odd_queries

ADDED = [
    # text, block, text with PARALLELISM(8) added
    ("SELECT 1", None, "SELECT /*+ PARALLELISM(8) */ 1"),
    ("SELECT\r\n 1", None, "SELECT /*+ PARALLELISM(8) */\r\n 1"),
    ("SELECT* FROM t", None, "SELECT /*+ PARALLELISM(8) */* FROM t"),
    ("select distinct a FROM t", None, "select /*+ PARALLELISM(8) */ distinct a FROM t"),
    ("SELECT /* c */ 1", None, "SELECT /*+ PARALLELISM(8) */ /* c */ 1"),
    ("SELECT /*+ MERGE(t) */ 1", None, "SELECT /*+ MERGE(t), PARALLELISM(8) */ 1"),
    ("SELECT /*+ MERGE(t) -- c\n*/ 1", None, "SELECT /*+ MERGE(t), PARALLELISM(8) -- c\n*/ 1"),
    ("SELECT /*+ A */ /*+ B */ 1", None, "SELECT /*+ A, PARALLELISM(8) */ /*+ B */ 1"),
    ("SELECT /*+ A( */ /*+ B */ 1", None, "SELECT /*+ A( */ /*+ B, PARALLELISM(8) */ 1"),
    ("SELECT /*+ */ 1", None, "SELECT /*+ PARALLELISM(8) */ /*+ */ 1"),
    ("SELECT /*+ RANGES(even) */ 1", None, "SELECT /*+ RANGES(even), PARALLELISM(8) */ 1"),
    ("SELECT (SELECT 1)", "subquery 1", "SELECT (SELECT /*+ PARALLELISM(8) */ 1)"),
    ("SELECT (SELECT 1)", "main", "SELECT /*+ PARALLELISM(8) */ (SELECT 1)"),
    (
        "SELECT 1 UNION SELECT 2",
        None,
        "SELECT /*+ PARALLELISM(8) */ 1 UNION SELECT /*+ PARALLELISM(8) */ 2",
    ),
    ("SELECT 1 UNION SELECT 2", "union branch 2", "SELECT 1 UNION SELECT /*+ PARALLELISM(8) */ 2"),
    (
        "WITH c AS (SELECT 1) SELECT 2",
        "cte c",
        "WITH c AS (SELECT /*+ PARALLELISM(8) */ 1) SELECT 2",
    ),
    ("SELECT 1; SELECT 2", "statement 2 / main", "SELECT 1; SELECT /*+ PARALLELISM(8) */ 2"),
    (
        "SELECT 1; SET a = b; SELECT 2",
        None,
        "SELECT /*+ PARALLELISM(8) */ 1; SET a = b; SELECT /*+ PARALLELISM(8) */ 2",
    ),
]


@pytest.mark.parametrize(("sql", "block", "expected"), ADDED)
def test_add(sql: str, block: str | None, expected: str) -> None:
    assert add(sql, "PARALLELISM(8)", block) == expected


def test_add_keeps_the_spelling_of_the_hint() -> None:
    assert add("SELECT 1", " parallelism( 4,8 ) ") == "SELECT /*+ parallelism( 4,8 ) */ 1"


def test_one_source_parallelism_for_each_table() -> None:
    sql = add("SELECT * FROM a, b", "SOURCE_PARALLELISM(a, 2)")
    sql = add(sql, "SOURCE_PARALLELISM(b, 4)")
    assert replace(sql, "SOURCE_PARALLELISM(A, 8)") == (
        "SELECT /*+ SOURCE_PARALLELISM(A, 8), SOURCE_PARALLELISM(b, 4) */ * FROM a, b"
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # text, text with PARALLELISM(8)
        ("SELECT /*+ PARALLELISM(4) */ 1", "SELECT /*+ PARALLELISM(8) */ 1"),
        ("SELECT /*+ A, PARALLELISM(4, 8), B */ 1", "SELECT /*+ A, PARALLELISM(8), B */ 1"),
        ("SELECT /*+ parallelism */ 1", "SELECT /*+ PARALLELISM(8) */ 1"),
        ("SELECT 1", "SELECT /*+ PARALLELISM(8) */ 1"),
        (
            "SELECT /*+ PARALLELISM(4), A */ /*+ PARALLELISM(2) */ 1",
            "SELECT /*+ PARALLELISM(8), A */ 1",
        ),
        ("SELECT /*+ PARALLELISM(1), PARALLELISM(2) */ 1", "SELECT /*+ PARALLELISM(8) */ 1"),
    ],
)
def test_replace(sql: str, expected: str) -> None:
    assert replace(sql, "PARALLELISM(8)") == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT /*+ PARALLELISM(8) */ 1", "SELECT 1"),
        ("SELECT/*+PARALLELISM(8)*/1", "SELECT 1"),
        ("SELECT /*+ PARALLELISM(8) */x", "SELECT x"),
        ("SELECT/*+PARALLELISM(8)*/* FROM t", "SELECT* FROM t"),
        ("SELECT\n  /*+ PARALLELISM(8) */\n  1", "SELECT\n  1"),
        ("SELECT\r\n\t/*+ PARALLELISM(8) */ \r\n  1", "SELECT\r\n  1"),
        ("SELECT /*+ PARALLELISM(8), MERGE(t) */ 1", "SELECT /*+ MERGE(t) */ 1"),
        ("SELECT /*+ MERGE(t) , PARALLELISM(8) */ 1", "SELECT /*+ MERGE(t)  */ 1"),
        ("SELECT /*+ MERGE(t) PARALLELISM(8) */ 1", "SELECT /*+ MERGE(t) */ 1"),
        ("SELECT /*+ PARALLELISM(8) MERGE(t) */ 1", "SELECT /*+ MERGE(t) */ 1"),
        ("SELECT /*+ A, RANGES(even), B */ 1", "SELECT /*+ A, B */ 1"),
        ("SELECT /*+ RANGES(even), A, PARALLELISM(8) */ 1", "SELECT /*+ A */ 1"),
        ("SELECT /*+ A, RANGES(even), PARALLELISM(8), B */ 1", "SELECT /*+ A, B */ 1"),
        ("SELECT /*+ A, /* why */ PARALLELISM(8) */ 1", "SELECT /*+ A /* why */  */ 1"),
        ("SELECT /*+ PARALLELISM(8) /* why */, A */ 1", "SELECT /*+  /* why */ A */ 1"),
        ("SELECT /*+ PARALLELISM(8) */ /*+ A */ 1", "SELECT /*+ A */ 1"),
        ("SELECT /*+ parallelism(0), `RANGES` */ 1", "SELECT 1"),
        ("SELECT /*+ PARALELISM(8) */ 1", "SELECT /*+ PARALELISM(8) */ 1"),
        ("SELECT DISTINCT /*+ PARALLELISM(8) */ 1", "SELECT DISTINCT /*+ PARALLELISM(8) */ 1"),
        ("SELECT '/*+ PARALLELISM(8) */'", "SELECT '/*+ PARALLELISM(8) */'"),
    ],
)
def test_strip(sql: str, expected: str) -> None:
    assert strip(sql) == expected


@pytest.mark.parametrize("verb", ["GRANT", "REVOKE", "deny"])
def test_privileges_get_no_hint(verb: str) -> None:
    sql = f"{verb} SELECT ON TABLE t TO u"
    assert add(f"{sql}; SELECT 1", "RANGES(even)") == f"{sql}; SELECT /*+ RANGES(even) */ 1"
    with pytest.raises(HintError, match="no outermost SELECT"):
        add(sql, "RANGES(even)")


def test_a_hint_before_a_string_leaves_nothing() -> None:
    sql = "SELECT b, 1 AS select'a'"
    assert strip(add(sql, "PARALLELISM(8)", "body 2")) == sql


def test_strip_of_one_block() -> None:
    sql = "SELECT /*+ RANGES(even) */ (SELECT /*+ RANGES(even) */ 1)"
    assert strip(sql, "subquery 1") == "SELECT /*+ RANGES(even) */ (SELECT 1)"


def _check_round_trip(sql: str) -> None:
    text = read(sql)
    assert text.blocks
    for block in [None, *(block.path for block in text.blocks if block.takes_hints)]:
        hinted = add(sql, "PARALLELISM(4, 64)", block)
        assert strip(hinted) == sql
        # Only the intended blocks have the hint. Paths and other hints stay the same.
        before, after = text.blocks, read(hinted).blocks
        assert [each.path for each in after] == [each.path for each in before]
        outermost = [each for each in text.blocks if each.is_outermost]
        for old, new in zip(before, after, strict=True):
            is_meant = old in outermost if block is None else old.path == block
            added = ["PARALLELISM(4, 64)"] if is_meant else []
            assert [h.text for h in new.hints if h.name == "PARALLELISM"] == added
            assert [h.text for h in new.hints if h.name != "PARALLELISM"] == [
                h.text for h in old.hints
            ]
        assert strip(replace(hinted, "PARALLELISM(2)", block)) == sql


ODD_QUERIES = list(odd_queries())


@pytest.mark.parametrize("sql", [text for _, text in ODD_QUERIES], ids=[n for n, _ in ODD_QUERIES])
def test_round_trip_of_odd_queries(sql: str) -> None:
    _check_round_trip(sql)


@functools.cache
def _tpc_queries() -> dict[tuple[str, int], str]:
    return {
        (benchmark, number): text
        for benchmark in ("tpch", "tpcds")
        for number, text in tpc.queries(benchmark).items()
    }


@pytest.mark.parametrize(
    ("benchmark", "number"),
    [("tpch", n) for n in range(1, 23)] + [("tpcds", n) for n in range(1, 100)],
)
def test_round_trip_of_tpc_queries(benchmark: str, number: int) -> None:
    _check_round_trip(_tpc_queries()[benchmark, number])


_pieces = st.sampled_from([*GAPS.values(), *ITEMS.values(), *(f"({form})" for form in FORMS)])
_code = st.lists(_pieces | st.sampled_from(["SELECT ", ", ", " FROM t ", " UNION "]), max_size=8)


# The time of a test depends on the load of the machine.
@settings(deadline=None)
@given(st.sampled_from(FORMS), _code, st.sampled_from(["", "\ufeff", "\n;\r\n", " -- end"]))
def test_round_trip_of_random_code(form: str, code: list[str], end: str) -> None:
    sql = form.replace("SELECT", "SELECT " + "".join(code)) + end
    text = read(sql)
    for block in text.blocks:
        assert strip(add(sql, "PARALLELISM(8)", block.path)) == sql


@given(st.text(alphabet="SELECT'\"`/*+-\n\r\\ ,()$;{}%#\u00e9\U0001f600", max_size=60))
def test_round_trip_of_random_text(noise: str) -> None:
    sql = f"SELECT 1, {noise}"
    if read(sql).problem is None:
        assert strip(add(sql, "RANGES(even)")) == sql
    else:
        with pytest.raises(HintError, match="line "):
            add(sql, "RANGES(even)")


# One case per message of the rewriter, for messages.golden.txt.
ERRORS = [
    # text, hint, block
    ("SELECT 1", "PARALLELISM(8)", "mian"),
    ("SELECT 1", "PARALLELISM(8)", "cte c"),
    ("VALUES (1)", "PARALLELISM(8)", None),
    ("VALUES (1)", "PARALLELISM(8)", "main"),
    ("SELECT /*+ PARALLELISM(4) */ 1", "PARALLELISM(8)", None),
    ("SELECT TRANSFORM(a) USING 'cat' FROM t", "PARALLELISM(8)", None),
    ("SELECT 1", "PARALELISM(8)", None),
    ("SELECT 1", "PARALLELISM(0)", None),
    ("SELECT 1", "PARALLELISM(8, 4)", None),
    ("SELECT 1", "PARALLELISM(t 8)", None),
    ("SELECT 1", "PARALLELISM(4), RANGES(even)", None),
    ("SELECT 1", "BROADCAST(t)", None),
    ("SELECT 1", "", None),
    ("SELECT 1", "8", None),
    ("SELECT 1", "RANGES('even", None),
    ("SELECT 1", "RANGES(even) */ /*+ A", None),
    ("SELECT\n 'a", "PARALLELISM(8)", None),
    ("SELECT (\n{{ '(' }}", "PARALLELISM(8)", None),
    ("SELECT {{ x } FROM t", "PARALLELISM(8)", None),
    ("SELECT /*+ A", "PARALLELISM(8)", None),
]


@pytest.mark.parametrize(("sql", "hint", "block"), ERRORS)
def test_a_wrong_hint_or_text_raises(sql: str, hint: str, block: str | None) -> None:
    with pytest.raises(HintError):
        add(sql, hint, block)
