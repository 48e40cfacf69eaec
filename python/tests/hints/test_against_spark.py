"""Spark's parser agrees with the linter on syntax errors, and it reads every added hint."""

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
# The cases without templates and without very long texts.
CASES = [
    sql for sql in [*(sql for sql, _ in FINDINGS), *CLEAN] if "{" not in sql and len(sql) < 1000
]
# An SQL operator since Spark 4.0.
PIPE = "|>"


def _parse(spark: SparkSession, sql: str) -> str | None:
    """Return the plan of a statement as text, or None if Spark's parser rejects it."""
    from pyspark.errors import ParseException

    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        return str(parser.parsePlan(sql).treeString())
    except ParseException:
        return None


def test_spark_rejects_syntax_errors_of_the_linter(spark: SparkSession) -> None:
    for sql in CASES:
        if PIPE in sql and INSTALLED < "4.0":
            continue
        codes = {finding.code for finding in lint(sql)}
        texts = [sql[s.start : s.end] for s in read(sql).statements] or [sql]
        # An empty text is no error for the linter.
        if sql:
            is_refused = any(_parse(spark, text) is None for text in texts)
            assert (sql, is_refused) == (sql, bool(codes & SYNTAX_ERRORS))


@pytest.mark.slow
def test_spark_reads_each_hint_that_is_added(spark: SparkSession) -> None:
    for _, sql in spark_queries():
        for block in read(sql).blocks:
            hinted = add(sql, "PARALLELISM(4, 64)", block.path)
            plans = [_parse(spark, hinted[s.start : s.end]) for s in read(hinted).statements]
            assert None not in plans, hinted
            if not sql.startswith("EXPLAIN"):  # its plan has no text for the inner query
                count = sum(str(plan).count("UnresolvedHint PARALLELISM") for plan in plans)
                assert (hinted, count) == (hinted, 1)
