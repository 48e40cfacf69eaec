from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from apportion import ApportionError
from apportion.bench import measure, suites
from apportion.bench.suites import Suite, skew, tpc
from apportion.session import confs

SCALE, ROWS = 0.2, 260_000

SUITE = Suite("made-up", {"first": "SELECT 1", "second": "SELECT 2", "9": "SELECT 9"})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("second", ["second"]),
        ("2", ["second"]),
        ("9", ["9"]),
        ("9, 1", ["first", "9"]),
        ("first,1", ["first"]),
    ],
)
def test_queries_of_a_suite_are_chosen_by_name_or_number(text: str, names: list[str]) -> None:
    assert list(SUITE.only(text).queries) == names


@pytest.mark.parametrize("text", ["4", "0", "frist", ""])
def test_an_unknown_query_of_a_suite_raises(text: str) -> None:
    with pytest.raises(ApportionError, match=rf"made-up has no query '{text}'.* 1 to 3"):
        SUITE.only(text)


@pytest.mark.parametrize(("name", "count"), [("tpch", 22), ("tpcds", 99), ("skew", 12)])
def test_generated_suites_have_all_queries(name: str, count: int) -> None:
    assert len(suites.generated(name, 1).queries) == count


@pytest.fixture(scope="module")
def skewed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with the tables of the suite skew as views, and tasks of 1 MB."""
    session = spark.newSession()
    for key in skew.CONF:
        session.conf.set(key, "1MB")
    folder = skew.generate(session, SCALE, tmp_path_factory.mktemp("skew"))
    for table in folder.iterdir():
        session.read.parquet(str(table)).createOrReplaceTempView(table.name)
    return session


@pytest.mark.parametrize(
    ("table", "keys", "least", "most"),
    [("zipf", 1, 0.12, 0.17), ("lognormal", 10, 0.12, 0.25), ("hot", 5, 0.48, 0.52)],
)
def test_skewed_tables_have_the_distribution_of_their_name(
    skewed: SparkSession, table: str, keys: int, least: float, most: float
) -> None:
    counts = skewed.sql(f"SELECT count(*) AS n FROM {table} GROUP BY key ORDER BY n DESC").collect()
    rows = sum(row.n for row in counts)
    assert rows == ROWS
    assert least < sum(row.n for row in counts[:keys]) / rows < most


def test_the_table_of_keys_has_every_key(skewed: SparkSession) -> None:
    for table in ("zipf", "lognormal", "hot"):
        missing = skewed.sql(f"SELECT key FROM {table} LEFT ANTI JOIN keys USING (key)")
        assert missing.isEmpty()


def test_skewed_tables_are_generated_once_and_reproducibly(
    skewed: SparkSession, tmp_path: Path
) -> None:
    folder = skew.generate(skewed, SCALE, tmp_path)
    assert folder == tmp_path / "skew-0.2"
    assert list(tmp_path.iterdir()) == [folder]
    again = skewed.read.parquet(str(folder / "zipf"))
    assert again.exceptAll(skewed.table("zipf")).isEmpty()
    written = (folder / "zipf").stat().st_mtime_ns
    assert skew.generate(skewed, SCALE, tmp_path) == folder
    assert (folder / "zipf").stat().st_mtime_ns == written


@pytest.mark.parametrize("name", skew.queries())
def test_skew_queries_shuffle_all_rows_in_even_tasks_if_they_can_be(
    skewed: SparkSession, name: str
) -> None:
    with confs(skewed, {"spark.apportion.ranges": "balanced"}):
        run = measure.run(skewed, skew.queries()[name])
    shuffles = [decision for decision in run.decisions if decision.stages]
    largest = max(shuffles, key=lambda decision: decision.input_bytes)
    # 50 bytes of payload that hardly compress.
    assert largest.input_bytes > ROWS * 40
    assert largest.tasks >= 8
    if name.endswith(("-join", "-rebalance")) or name.startswith("lognormal"):
        assert largest.largest_task_bytes / largest.mean_task_bytes <= 1.25
    else:
        assert re.search("not split, as .* reads all rows of a key in one task", largest.reason)


def test_tables_that_cannot_be_generated_raise_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_out_of_memory(*_: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory: 1 of 1 GB used\nPossible solutions: ...")

    monkeypatch.setattr(tpc, "in_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(tpc, "_copy_tables", run_out_of_memory)
    with pytest.raises(ApportionError) as error:
        tpc.generate("tpch", 0.01, tmp_path)
    assert str(error.value) == ("cannot generate tpch at scale 0.01: Out of Memory: 1 of 1 GB used")
    assert list(tmp_path.iterdir()) == []
