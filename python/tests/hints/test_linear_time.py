"""The time of the linter and of the rewriter grows linearly with the text."""

from __future__ import annotations

import contextlib
import time
import timeit
from collections.abc import Callable

import pytest

from apportion import ApportionError
from apportion.hints import add, lint, show, strip
from apportion.sql.statements import split

# A text of about `n` characters.
TEXTS: dict[str, Callable[[int], str]] = {
    "long IN list": lambda n: f"SELECT /*+ BROADCAST(t) */ 1 FROM t, u WHERE a IN ({'1, ' * n} 1)",
    "statements": lambda n: "SELECT /*+ BROADCAST(t) */ a FROM t JOIN u;\n" * (n // 44),
    "branches": lambda n: " UNION ".join(["SELECT /*+ MERGE(t) */ a FROM t JOIN u"] * (n // 45)),
    "subqueries": lambda n: "SELECT " + ", ".join(["(SELECT /*+ RANGES(even) */ 1)"] * (n // 32)),
    "CTEs": lambda n: (
        f"WITH {', '.join(f'c{i} AS (SELECT 1 FROM c{i - 1})' for i in range(n // 30))} SELECT 1"
    ),
    "hints": lambda n: f"SELECT /*+ {', '.join(['MERGE(t)'] * (n // 10))} */ 1 FROM t JOIN u",
    "misplaced hints": lambda n: "SELECT a " + "/*+ RANGES(even) */ " * (n // 20),
    "pipes": lambda n: "FROM t " + "|> WHERE a |> JOIN u " * (n // 21) + "|> SELECT a",
    "pipes with hints": lambda n: "FROM t " + "|> SELECT /*+ MERGE(t) */ a " * (n // 27),
    "pipes with wrong hints": lambda n: (
        f"FROM t {' '.join(f'|> JOIN t{i} |> SELECT /*+ MERGE(u) */ a' for i in range(n // 40))}"
    ),
    "pipes with CTEs": lambda n: (
        f"WITH c AS (SELECT 1) FROM c {'|> SELECT /*+ MERGE(c) */ a |> JOIN c ' * (n // 39)}"
    ),
    "bodies": lambda n: "FROM t " + "INSERT INTO u SELECT /*+ MERGE(t) */ a " * (n // 40),
    "comments": lambda n: "SELECT 1 /* " + "a /* b */ " * (n // 10) + "*/ -- c\n" * 9,
    "parentheses": lambda n: "SELECT /*+ RANGES(even) */ " + "(" * (n // 2) + ")" * (n // 2),
    "nested calls": lambda n: f"SELECT /*+ MERGE(t) */ {'long(' * 90}{')' * 90} FROM t, u",
    "unclosed quotes": lambda n: "SELECT 'a;\n" * (n // 10),
    "unclosed comments": lambda n: "SELECT /* a /* b */;\n" * (n // 20),
    "unclosed hints": lambda n: "SELECT /*+ A;\n" * (n // 14),
    "unclosed templates": lambda n: "SELECT {{ a;\n" * (n // 13),
    "templates in strings": lambda n: "SELECT '{{ (', " * (n // 15),
    "wrong templates": lambda n: "SELECT {{ ( }} ;\n" * (n // 17),
    "alternatives": lambda n: "SELECT 1 " + "{% if a %}, (x{% else %}, (y{% endif %})" * (n // 42),
    "scripts": lambda n: "BEGIN " * (n // 6),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("read", [lint, split, show, strip, lambda sql: add(sql, "RANGES(even)")])
def test_time_grows_linearly(name: str, read: Callable[[str], object]) -> None:
    small, sql = TEXTS[name](4_000), TEXTS[name](32_000)
    # Quadratic time would grow 64 times.
    most = 24 * min(_seconds(read, small), _seconds(read, small)) + 0.1
    assert _seconds(read, sql) < most or _seconds(read, sql) < most


def _seconds(read: Callable[[str], object], sql: str) -> float:
    def read_until_error() -> None:
        with contextlib.suppress(ApportionError):
            read(sql)

    # `timeit` pauses the garbage collector, which would count the objects of all tests.
    return timeit.timeit(read_until_error, timer=time.process_time, number=1)
