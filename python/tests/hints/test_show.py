"""The effective hints of each block."""

from __future__ import annotations

import pytest

from apportion.hints import BlockHints, EffectiveHint, HintError, show

P4, P8 = "PARALLELISM(4)", "PARALLELISM(8)"

EFFECTIVE = [
    # text; for each block, its path, and each hint with the path of the hint's block
    ("SELECT 1", {"main": []}),
    (f"SELECT /*+ {P4}, MERGE(t) */ 1", {"main": [(P4, "main")]}),
    # Nested blocks inherit a hint unless they have the same hint.
    (
        f"SELECT /*+ {P4} */ (SELECT 1 FROM (SELECT 2))",
        {
            "main": [(P4, "main")],
            "subquery 1": [(P4, "main")],
            "subquery 1 / subquery 1": [(P4, "main")],
        },
    ),
    (
        f"SELECT /*+ {P4} */ (SELECT /*+ {P8} */ 1)",
        {"main": [(P4, "main")], "subquery 1": [(P8, "subquery 1")]},
    ),
    (
        f"SELECT /*+ {P4} */ (SELECT /*+ RANGES(even) */ 1)",
        {"main": [(P4, "main")], "subquery 1": [("RANGES(even)", "subquery 1"), (P4, "main")]},
    ),
    (f"SELECT 1, (SELECT /*+ {P8} */ 1)", {"main": [], "subquery 1": [(P8, "subquery 1")]}),
    # A hint for a table covers only its own block. A hint for all scans is inherited.
    (
        "SELECT /*+ SOURCE_PARALLELISM(t, 2), SOURCE_PARALLELISM(3) */ (SELECT 1) FROM t",
        {
            "main": [("SOURCE_PARALLELISM(t, 2)", "main"), ("SOURCE_PARALLELISM(3)", "main")],
            "subquery 1": [("SOURCE_PARALLELISM(3)", "main")],
        },
    ),
    # Branches do not inherit from each other.
    (
        f"SELECT /*+ {P4} */ 1 UNION SELECT 2",
        {"union branch 1": [(P4, "union branch 1")], "union branch 2": []},
    ),
    # A CTE inherits from the blocks that use it.
    (
        f"WITH c AS (SELECT 1) SELECT /*+ {P4} */ * FROM c",
        {"cte c": [(P4, "main")], "main": [(P4, "main")]},
    ),
    (
        f"WITH c AS ((SELECT 1) UNION (SELECT 2)) SELECT /*+ {P4} */ * FROM c",
        {
            "cte c / union branch 1": [(P4, "main")],
            "cte c / union branch 2": [(P4, "main")],
            "main": [(P4, "main")],
        },
    ),
    (
        f"WITH c AS (SELECT 1) SELECT * FROM C d WHERE a IN (SELECT /*+ {P4} */ 1 FROM b)",
        {"cte c": [], "main": [], "subquery 1": [(P4, "subquery 1")]},
    ),
    (
        f"WITH c AS (SELECT 1) SELECT /*+ {P4} */ * FROM c UNION SELECT /*+ {P8} */ * FROM c",
        {
            "cte c": [(P4, "union branch 1"), (P8, "union branch 2")],
            "union branch 1": [(P4, "union branch 1")],
            "union branch 2": [(P8, "union branch 2")],
        },
    ),
    (
        f"WITH c AS (SELECT 1), d AS (SELECT * FROM c) SELECT /*+ {P4} */ * FROM d",
        {"cte c": [(P4, "main")], "cte d": [(P4, "main")], "main": [(P4, "main")]},
    ),
    (
        f"WITH c AS (SELECT 1) SELECT /*+ {P4} */ * FROM x.c",
        {"cte c": [], "main": [(P4, "main")]},
    ),
    # The inner c hides the outer c.
    (
        f"WITH c AS (SELECT 1) SELECT (WITH c AS (SELECT 2) SELECT /*+ {P4} */ * FROM c)",
        {
            "cte c": [],
            "main": [],
            "subquery 1 / cte c": [(P4, "subquery 1")],
            "subquery 1": [(P4, "subquery 1")],
        },
    ),
    (
        f"WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT /*+ {P4} */ * FROM r",
        {
            "cte r / union branch 1": [(P4, "main")],
            "cte r / union branch 2": [(P4, "main")],
            "main": [(P4, "main")],
        },
    ),
    # A later SELECT of a pipeline encloses the earlier ones.
    (
        f"SELECT 1 |> WHERE (SELECT 2) |> SELECT /*+ {P4} */ 3 |> WHERE (SELECT 4)",
        {
            "main": [(P4, "pipe 1")],
            "subquery 1": [(P4, "pipe 1")],
            "pipe 1": [(P4, "pipe 1")],
            "subquery 2": [],
        },
    ),
    # Of the SELECTs of a pipeline around a table, the innermost one uses it.
    (
        f"WITH c AS (SELECT 1) FROM c |> SELECT /*+ {P4} */ 2 |> SELECT /*+ {P8} */ 3",
        {"cte c": [(P4, "pipe 1")], "pipe 1": [(P4, "pipe 1")], "pipe 2": [(P8, "pipe 2")]},
    ),
    (
        f"WITH c AS (SELECT 1) SELECT * FROM c |> SELECT /*+ {P4} */ 2 |> JOIN c "
        f"|> SELECT /*+ {P8} */ 3",
        {
            "cte c": [(P4, "pipe 1"), (P8, "pipe 2")],
            "main": [(P4, "pipe 1")],
            "pipe 1": [(P4, "pipe 1")],
            "pipe 2": [(P8, "pipe 2")],
        },
    ),
    (
        f"WITH c AS (SELECT 1) FROM c INSERT INTO d SELECT /*+ {P4} */ 2 "
        f"INSERT INTO e SELECT /*+ {P8} */ 3",
        {
            "cte c": [(P4, "body 1"), (P8, "body 2")],
            "body 1": [(P4, "body 1")],
            "body 2": [(P8, "body 2")],
        },
    ),
    # The first of two hints is used. Wrong hints are not used.
    (f"SELECT /*+ {P4}, {P8} */ 1", {"main": [(P4, "main")]}),
    (f"SELECT /*+ PARALLELISM(0) */ /*+ {P8} */ 1", {"main": [(P8, "main")]}),
    (
        f"SELECT /*+ {P4} */ 1; SELECT 2",
        {
            "statement 1 / main": [(P4, "statement 1 / main")],
            "statement 2 / main": [],
        },
    ),
]


@pytest.mark.parametrize(("sql", "expected"), EFFECTIVE)
def test_blocks_have_effective_hints(sql: str, expected: dict[str, list[tuple[str, str]]]) -> None:
    shown = show(sql)
    assert {
        block.path: [(hint.hint, hint.block) for hint in block.effective] for block in shown
    } == expected
    assert list(expected) == [block.path for block in shown]


def test_a_block_has_a_position_and_its_own_hints() -> None:
    _, inner = show("SELECT /*+ PARALLELISM(4) */\n  (SELECT /*+ RANGES(even) */ 1)")
    assert inner == BlockHints(
        path="subquery 1",
        line=2,
        column=4,
        own=("RANGES(even)",),
        effective=(
            EffectiveHint("RANGES(even)", "subquery 1"),
            EffectiveHint("PARALLELISM(4)", "main"),
        ),
    )


# One text per message of `show`, for messages.golden.txt.
ERRORS = ["SELECT\n(1", "SELECT 'a"]


@pytest.mark.parametrize("sql", ERRORS)
def test_an_unreadable_text_raises(sql: str) -> None:
    with pytest.raises(HintError, match="line "):
        show(sql)


def test_a_long_pipeline_has_hints() -> None:
    blocks = show("FROM t" + " |> SELECT a" * 5000 + f" |> SELECT /*+ {P4} */ a")
    assert {block.effective for block in blocks} == {(EffectiveHint(P4, "pipe 5001"),)}
