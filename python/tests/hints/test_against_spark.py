"""Spark's own parser agrees: what it refuses are errors here, and what is added it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apportion.hints import add, lint
from apportion.sql.blocks import read
from tests.spark_version import INSTALLED

from .odd_queries import spark_queries
from .test_lint import CLEAN, FINDINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYNTAX_ERRORS = {"APH001", "APH002", "APH101", "APH104"}
# No templates, and none of the texts that are there for their size.
CASES = [
    sql for sql in [*(sql for sql, _ in FINDINGS), *CLEAN] if "{" not in sql and len(sql) < 1000
]
# An operator of SQL since Spark 4.0.
PIPE = "|>"


def _parse(spark: SparkSession, sql: str) -> str | None:
    """Return the plan of a statement as text, or None where Spark's parser refuses it."""
    from pyspark.errors import ParseException

    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        return str(parser.parsePlan(sql).treeString())
    except ParseException:
        return None


def test_spark_refuses_what_the_linter_calls_a_syntax_error(spark: SparkSession) -> None:
    for sql in CASES:
        if PIPE in sql and INSTALLED < "4.0":
            continue
        codes = {finding.code for finding in lint(sql)}
        texts = [sql[s.start : s.end] for s in read(sql).statements] or [sql]
        # What sqlglot cannot parse may be anything, and no statement at all is not an error here.
        if sql and "APH003" not in codes:
            is_refused = any(_parse(spark, text) is None for text in texts)
            assert (sql, is_refused) == (sql, bool(codes & SYNTAX_ERRORS))


@pytest.mark.slow
def test_spark_reads_each_hint_that_is_added(spark: SparkSession) -> None:
    for _, sql in spark_queries():
        for block in read(sql).blocks:
            hinted = add(sql, "PARALLELISM(4, 64)", block.path)
            plans = [_parse(spark, hinted[s.start : s.end]) for s in read(hinted).statements]
            assert None not in plans, hinted
            if not sql.startswith("EXPLAIN"):  # which keeps its plan to itself
                found = sum(str(plan).count("UnresolvedHint PARALLELISM") for plan in plans)
                assert (hinted, found) == (hinted, 1)
