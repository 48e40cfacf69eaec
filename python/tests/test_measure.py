from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from apportion.bench import measure
from apportion.bench.rows.digest import Digest, digest
from apportion.bench.rows.ties import without_ties
from apportion.errors import QueryError
from tests.spark_version import since

GROUPED = "SELECT id % 10 AS k, count(*) AS n FROM range(0, 1000, 1, 2) GROUP BY k"


@pytest.fixture(scope="module")
def digests(spark: SparkSession) -> Callable[[str], Digest]:
    return lru_cache(lambda query: digest(spark.sql(query)))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("SELECT id FROM range(0)", "SELECT id FROM range(0)", True),
        ("SELECT id FROM range(0)", "SELECT id FROM range(1)", False),
        ("VALUES (1, 'a'), (2, NULL)", "VALUES (2, NULL), (1, 'a')", True),
        ("VALUES (1), (1), (2)", "VALUES (1), (2), (2)", False),
        ("VALUES (NULL, 'x')", "VALUES ('x', NULL)", False),
        ("SELECT 1.10BD", "SELECT 1.11BD", False),
        ("SELECT 0.1D + 0.2D", "SELECT 0.3D", True),
        ("SELECT 1D", "SELECT 1.000001D", False),
        ("SELECT float(1)", "SELECT float(1.0000001)", True),
        ("SELECT double('nan'), double('inf')", "SELECT double('nan'), double('inf')", True),
        ("SELECT double('nan')", "SELECT 0D", False),
        ("SELECT double('inf')", "SELECT double('-inf')", False),
        ("VALUES (1234567.1D), (1234567.2D)", "VALUES (1234567.2D), (1234567.1D)", True),
        ("VALUES ('a', 1D), ('b', 2D)", "VALUES ('a', 2D), ('b', 1D)", False),
        ("VALUES (1D, 2D), (3D, 4D)", "VALUES (1D, 4D), (3D, 2D)", False),
        ("VALUES (1D), (4D)", "VALUES (2D), (3D)", False),
        ("SELECT array(0.1D + 0.2D), 'a'", "SELECT array(0.3D), 'a'", True),
        ("SELECT array(1D)", "SELECT array(1D, 2D)", False),
        ("SELECT map('a', 1D, 'b', 2D)", "SELECT map('b', 2D, 'a', 1D)", True),
        ("SELECT map('a', 1)", "SELECT map('b', 1)", False),
        ("SELECT struct(1 AS a, X'01')", "SELECT struct(2 AS a, X'01')", False),
        ("SELECT 1 AS a, 2 AS a", "SELECT 1 AS a, 2 AS a", True),
        ("SELECT struct(1 AS a, 2 AS a)", "SELECT struct(1 AS a, 2 AS a)", True),
        ("SELECT struct(1 AS a, 2 AS a)", "SELECT struct(1 AS a, 3 AS a)", False),
        ("SELECT make_interval(1, 2)", "SELECT make_interval(1, 2)", True),
    ],
)
def test_results_are_compared_without_order_and_with_rounded_floats(
    digests: Callable[[str], Digest], left: str, right: str, same: bool
) -> None:
    assert digests(left).equals(digests(right)) is same


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "16")
    session.conf.set("spark.apportion.parallelism", "4")
    return session


def test_a_run_has_rows_tasks_time_and_decisions(session: SparkSession) -> None:
    session.sql(GROUPED).collect()
    run = measure.run(session, GROUPED, head=10)
    assert run.columns == ["k", "n"]
    assert sorted(run.rows) == [(k, 100) for k in range(10)]
    assert run.tasks == 2 + 4
    assert run.seconds > 0
    # Its own decision, not that of the run before.
    [decision] = run.decisions
    assert decision.tasks == 4
    assert 0 < run.largest_task_bytes < decision.input_bytes


def test_a_command_runs_without_tasks(session: SparkSession) -> None:
    run = measure.run(session, "SET spark.sql.shuffle.partitions = 8")
    assert (run.tasks, run.largest_task_bytes, run.decisions) == (0, 0, [])
    assert session.conf.get("spark.sql.shuffle.partitions") == "8"


@pytest.mark.parametrize(
    ("query", "without"),
    [
        ("SELECT 1 a, 2 b ORDER BY a LIMIT 3", "SELECT 1 a, 2 b ORDER BY a , 1, 2 LIMIT 3"),
        ("SELECT 1 a, 2 b limit 3", "SELECT 1 a, 2 b ORDER BY 1, 2 limit 3"),
        ("SELECT 1 a ORDER BY a", "SELECT 1 a ORDER BY a"),
        *(
            pytest.param(query, query, marks=since("4.1") if "RECURSIVE" in query else ())
            for query in (
                "SELECT * FROM (SELECT 1 a LIMIT 3)",
                "SELECT 1 a SORT BY a LIMIT 3",
                "SELECT 1 a ORDER BY ALL LIMIT 3",
                "SELECT map(1, 2) m LIMIT 3",
                "SELECT 1 a, rank() OVER w r ORDER BY a WINDOW w AS (ORDER BY 2) LIMIT 3",
                "SELECT * EXCEPT (a) FROM VALUES (1) t(a) LIMIT 3",
                "VALUES (1), (2) |> LIMIT 3",
                "SELECT array(struct(map(1, 2))) m LIMIT 3",
                "WITH RECURSIVE r MAX RECURSION LEVEL 3 AS (SELECT 1 a) SELECT a FROM r LIMIT 3",
            )
        ),
    ],
)
def test_a_limit_gets_an_order_without_ties(
    session: SparkSession, query: str, without: str
) -> None:
    found = without_ties(session, query)
    assert found.split() == without.split()
    assert session.sql(found).collect() == session.sql(query).collect()


def test_compare_runs_a_query_with_and_without_apportion(session: SparkSession) -> None:
    comparison = measure.compare(session, GROUPED)
    assert comparison.equal
    # Spark alone makes one task of so few bytes.
    assert (comparison.spark.tasks, comparison.apportion.tasks) == (2 + 1, 2 + 4)
    assert comparison.spark.decisions == []
    assert len(comparison.apportion.decisions) == 1
    assert comparison.spark.largest_task_bytes > comparison.apportion.largest_task_bytes
    assert session.conf.get("spark.apportion.enabled") == "true"


def test_compare_finds_different_results(session: SparkSession) -> None:
    assert not measure.compare(session, "SELECT uuid()").equal


LARGE = "SELECT id, 'x' FROM range(0, 5000, 1, 3)"


def test_a_large_result_is_never_collected(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[int] = []
    # Spark 4 has a class of its own for classic sessions.
    frames = type(session.sql("SELECT 1"))
    collect = frames.collect

    def count(frame: DataFrame) -> list[Row]:
        rows = collect(frame)
        collected.append(len(rows))
        return rows

    monkeypatch.setattr(frames, "collect", count)
    run = measure.run(session, LARGE, head=3)
    assert (len(run.rows), run.row_count) == (3, 5000)
    comparison = measure.compare(session, LARGE, head=3)
    assert comparison.equal
    assert (len(comparison.apportion.rows), comparison.apportion.row_count) == (3, 5000)
    assert max(collected) <= 1024


def test_a_result_without_a_table_type_runs(session: SparkSession) -> None:
    query = "SELECT make_interval(1, 2), id FROM range(0, 2000, 1, 2)"
    assert measure.run(session, query).tasks == 2


@pytest.mark.parametrize(
    "value", ["DATE '0000-01-01'", "TIMESTAMP '+12345-01-01 00:00:00'", "INTERVAL '1' MONTH"]
)
def test_a_value_that_python_lacks_is_an_error_of_the_query(
    session: SparkSession, value: str
) -> None:
    message = r"^Python cannot hold a value of the result \(.+\): cast its column to string$"
    with pytest.raises(QueryError, match=message):
        measure.run(session, f"SELECT {value}", 1)


def test_compare_restores_the_setting_if_the_query_fails(session: SparkSession) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        measure.compare(session, "SELECT * FROM nowhere")
    assert session.conf.get("spark.apportion.enabled") == "true"
    assert session.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_the_group_and_the_description_of_the_user_come_back(session: SparkSession) -> None:
    context = session.sparkContext
    context.setJobGroup("mine", "my jobs")
    measure.run(session, "SELECT 1")
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    assert context.getLocalProperty("spark.job.description") == "my jobs"
    for key in ("spark.jobGroup.id", "spark.job.description"):
        context.setLocalProperty(key, None)  # type: ignore[arg-type]
