"""The linter reads every statement of Spark's own SQL tests."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from apportion.hints import add, lint, replace, strip
from apportion.sql.blocks import read

# The statements of identifier-clause.sql whose hints Spark refuses.
REFUSED = {"SELECT /*+ IDENTIFIER('BROADCAST')(hint_test) */", "SELECT /*+ IDENTIFIER('MERGE')"}
JARS = "org/apache/spark/spark-sql_2.13/*/spark-sql_2.13-*-tests.jar"


def _spark_tests() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file in the test jars that sbt has downloaded."""
    cache = Path.home() / ".cache/coursier/v1"
    jars = sorted(cache.rglob(JARS)) if cache.is_dir() else []
    for jar in jars[-1:]:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".sql"):
                    yield name, archive.read(name).decode("utf-8")


@pytest.mark.slow
def test_statements_of_spark_have_no_findings_and_known_tables() -> None:
    files = dict(_spark_tests())
    if not files:
        pytest.skip("sbt has not downloaded Spark's test jars")
    blocks, unread, found = 0, 0, []
    for name, sql in files.items():
        for finding in lint(sql):
            line = sql.splitlines()[finding.line - 1]
            if not any(line.startswith(refused) for refused in REFUSED):
                found.append((name, finding))
        relations = [block.relations for block in read(sql).blocks]
        blocks += len(relations)
        unread += sum(each.is_open for each in relations)
    assert found == []
    assert unread < blocks / 100


@pytest.mark.slow
def test_round_trip_of_statements_of_spark() -> None:
    for name, sql in _spark_tests():
        text = read(sql)
        blocks = [block for block in text.blocks if block.takes_hints and not text.problem]
        for block in blocks[:5]:
            hinted = add(sql, "PARALLELISM(4, 64)", block.path)
            assert (name, strip(hinted)) == (name, sql)
            assert (name, strip(replace(hinted, "PARALLELISM(2)", block.path))) == (name, sql)
