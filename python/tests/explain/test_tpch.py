"""What `apportion explain` says about the queries of TPC-H, as text, compared with a golden file.

What differs from run to run is masked: ids, times, bytes, and how full bars are.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apportion.bench.suites import tpc
from apportion.logs.explanation import run_queries
from apportion.logs.explanation.render import text
from apportion.logs.explanation.views.view import view
from apportion.session import confs
from apportion.testing import golden
from tests.spark_version import INSTALLED

GOLDEN = Path(__file__).parent / "tpch.golden"

# So small that stages have several tasks, and the same on every machine: joins are what Spark makes
# of them before stages have run, as which of them ends first is chance.
SETTINGS = {
    "spark.apportion.mode": "active",
    "spark.apportion.dataVolumePerTask": "64KB",
    "spark.apportion.volume.measure": "estimated",
    "spark.apportion.sources.enabled": "false",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.autoBroadcastJoinThreshold": "64KB",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}

# The queries of which other versions of Spark make another plan than the newest: before 4.3, Spark
# does not merge two aggregates of rows that are partitioned already, and before 4.1 it drops other
# projections, subqueries and empty relations.
OTHER_PLANS = {
    "4.2": {3, 13, 18},
    "4.1": {3, 13, 18},
    "4.0": {3, 13, 15, 18, 20},
    "3.5": {3, 13, 15, 17, 18, 20, 22},
}

MASKS = [
    (r"^Query \d+: ", "Query: "),
    (r"\([\d.]+ s\)", "(# s)"),
    (r"[\d.]+ s of task time", "# s of task time"),
    (r"(Ran as Spark stages?) [\d+ ]+,", r"\1 #,"),
    (r"^stages? [\d+ ]+ \(", "stage ("),
    (r"^  reads .*", "  reads #"),
    (r"^  [\d.]+ s: .*\n", ""),
    # The order of the tables depends on times.
    (r" of [^()]*?(?=, (query|result|subquery|shuffle|broadcast))", ""),
    (r"Peak concurrency: \d+ tasks?", "Peak concurrency: # tasks"),
    (r"[\d.]+ ([KMG]i)?B\b", "# B"),
    (r"^  Critical path: .*", "  Critical path: #"),
    (r"^    (time|tasks|rows|written): .*", r"    \1: #"),
    (r", written in \d+ blocks? instead of up to \d+", ""),
    # Spark cuts paths by their length. The other lines depend on memory and on chance.
    (r"^ +(scans .*|(Outside of the plan|spilled to disk|failed attempts): .*)\n", ""),
    (r"^ +(overhead|memory|files|advice): .*\n", ""),
    (r"\*\(\d+\)", "*(#)"),
    (r"[▁▂▃▄▅▆▇█]", "▄"),
]


def masked(shown: str) -> golden.Entry:
    """The lines, with stages numbered as they come."""
    for pattern, replacement in MASKS:
        shown = re.sub(pattern, replacement, shown, flags=re.MULTILINE)
    numbers: dict[str, str] = {}
    renumbered = re.sub(
        r"\bstage (\d+)", lambda stage: numbers.setdefault(stage[0], f"stage {len(numbers)}"), shown
    )
    return tuple(line for line in renumbered.splitlines() if line)


@pytest.fixture(scope="module")
def explained(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, golden.Entry]:
    """All queries, run one after the other."""
    session = spark.newSession()
    for table in tpc.generate("tpch", 0.01, tmp_path_factory.mktemp("tpch")).iterdir():
        session.read.parquet(str(table)).createOrReplaceTempView(table.stem)
    queries = tpc.queries("tpch")
    with confs(session, SETTINGS):
        application, _, _ = run_queries.run_sql(session, list(queries.values()))
    return {
        f"query {number}": masked(text.render(view(application, query)))
        for number, query in zip(queries, application.queries.values(), strict=True)
    }


@pytest.mark.parametrize("number", range(1, 23))
def test_the_explanation_of_a_tpch_query_matches_the_golden_file(
    explained: dict[str, golden.Entry], number: int, request: pytest.FixtureRequest
) -> None:
    if number in OTHER_PLANS.get(INSTALLED, ()):
        pytest.skip(f"Spark {INSTALLED} makes another plan")
    name = f"query {number}"
    if request.config.getoption("--apportion-update-golden"):
        golden.write(GOLDEN, explained)
    expected = golden.read(GOLDEN)[name]
    assert explained[name] == expected, golden.difference(GOLDEN.name, expected, explained[name])


def test_the_golden_file_has_exactly_the_tpch_queries(explained: dict[str, golden.Entry]) -> None:
    assert list(golden.read(GOLDEN)) == list(explained)
