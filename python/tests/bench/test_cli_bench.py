"""`apportion bench`: what it prints and writes, and how it ends."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from typer.testing import CliRunner, Result

from apportion.bench.results import Results, load
from apportion.bench.suites import skew
from apportion.cli import app
from apportion.cli.support.progress import counted

QUICK = ("--rounds", "1", "--warmups", "0", "--variants", "spark,even")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bench(*arguments: str | Path, stdin: str = "") -> Result:
    return CliRunner().invoke(
        app, ["bench", *map(str, arguments)], input=stdin, env={"COLUMNS": "200"}
    )


def flat(text: str) -> str:
    """Return the text without box drawing and line breaks."""
    return " ".join(re.sub(r"[\u2500-\u257f]", " ", text).split())


# Without Spark


def test_help_of_bench_has_examples() -> None:
    result = bench("--help")
    assert result.exit_code == 0
    for example in ("apportion bench tpch --scale 0.1", "spark-size", "--from bench-tpch.json"):
        assert example in flat(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "name a suite (tpch, tpcds, skew) or SQL files"),
        ("tpcx", "there is no suite or file tpcx. Did you mean tpch? Suites: tpch, tpcds, skew"),
        ("tpch skew", "the suite tpch cannot be combined with other suites or files"),
        ("tpch --tables .", "--tables is only for your own queries: the tables of tpch are"),
        ("tpch --scale 0", "scale is 0: allowed is above 0"),
        ("tpch --queries 23", "tpch has no query '23'"),
        ("skew --queries zip-join", "skew has no query 'zip-join'. Did you mean zipf-join?"),
        ("tpch --variants spark,evn", "unknown variant 'evn'. Did you mean even?"),
        ("tpch --variant small", "--variant small: write NAME:KEY=VALUE,KEY=VALUE"),
        ("tpch --conf mod=active", "unknown setting 'mod'. Did you mean mode?"),
        ("tpch --conf spark.a", "'spark.a' has no value: write NAME=VALUE"),
        ("tpch --rounds 0", "Invalid value for '--rounds'"),
        ("tpch --plot a.gif", "--plot a.gif: the file name must end in .png or .svg"),
        ("- --scale 1", "--scale is only for the suites"),
        ("query.sql --data .", "--data is only for the tables of suites"),
        ("query.sql --tables none", "there is no directory none"),
        ("-", "<stdin>: statement 2 (line 1) is not a query. It may change data"),
        ("empty.sql", "empty.sql: there is no SQL statement to run"),
        ("tpch --output all.html", "--output all.html: the name must end in .json"),
        ("--from none.json", "cannot read none.json: No such file"),
        ("--from empty.sql", "empty.sql is not complete JSON"),
        ("tpch --from none.json", "--from shows none.json and runs nothing"),
        (
            "--from none.json --scale 1 --conf mode=off",
            "--from shows none.json and runs nothing: leave out --scale, --set",
        ),
        (
            "tpch --memory 1g,2g --plot a.svg",
            "--plot draws one benchmark, and --memory runs several: leave out --plot",
        ),
        ("query.sql --memory 1g,2g,1G", "--memory has 1g twice: write each size once"),
        ("query.sql --memory 1g,a/b", "--memory has 'a/b': write sizes such as 4g,1g,700m"),
        ("query.sql --output . --tables none", "there is no directory none"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(folder: Path, arguments: str, message: str) -> None:
    (folder / "empty.sql").write_text("-- nothing")
    (folder / "query.sql").write_text("SELECT 1")
    result = bench(*arguments.split(), stdin="SELECT 1; SET spark.a = 1")
    assert result.exit_code == 2
    assert message in flat(result.stderr)
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit), result.exception


def test_bench_shows_a_saved_result(results: Results) -> None:
    results.save(Path("saved.json"))
    result = bench("--from", "saved.json", "--plot", "again.png")
    assert result.exit_code == 1
    text = flat(result.stdout)
    assert "made-up at scale 0.5: time of a / of each variant, median of 3 rounds" in text
    assert "q1 6.00 4.00 4 → 4" in text
    assert "q2 1.00 1.00 4 → 8" in text
    assert "q3 1.00 failed 4 → failed" in text
    assert "a baseline 7.0 4.0 8 4 60 1.50" in text
    assert "b 2.00 1.00 (q2) 3.0 4.0 12 6 60 1.50" in text
    assert Path("again.png").is_file()
    assert "query q3 failed under b: no luck" in result.stderr
    assert "query q2 returns a different result under b" in result.stderr


def test_bench_writes_json_for_programs(results: Results) -> None:
    results.save(Path("saved.json"))
    written = json.loads(bench("--from", "saved.json", "--format", "json").stdout)
    assert [each["variant"] for each in written["variants"]] == ["a", "b"]
    assert written["queries"]["q1"]["b"]["value"] == 4


def test_progress_names_the_query_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        "apportion.cli.support.progress.err", Console(file=screen, force_terminal=True)
    )
    assert list(counted(["first", "second"])) == ["first", "second"]
    for shown in ("Query first", "Query second", "0/2", "2/2"):
        assert shown in screen.getvalue()


# On the session of the tests


@pytest.mark.usefixtures("spark")
class TestOnSpark:
    def test_bench_measures_tpch(self, tmp_path: Path) -> None:
        options = ["--rounds", "1", "--warmups", "0", "--check", "--plot", "p.svg"]
        result = bench(
            "tpch", "--scale", "0.01", "--queries", "1,6", *options, "--data", tmp_path / "data"
        )
        assert result.exit_code == 0, result.stderr
        text = flat(result.stdout)
        assert "tpch at scale 0.01: time of spark / of each variant, 1 round" in text
        assert "Tasks: spark → spark-size, even, balanced" in text
        assert re.search(r" 6 [\d.]+ ([\d.]+ ){3}\d+ → \d+, \d+, \d+ ", text)
        assert re.search(r" balanced [\d.]+ [\d.]+ \([16]\) ", text)
        assert "All runs: bench-tpch.json" in result.stderr
        assert Path("p.svg").is_file()
        assert load(Path("bench-tpch.json")).queries.keys() == {"1", "6"}
        assert len(json.loads(Path("bench-tpch.json").read_text())["summary"]["variants"]) == 4

    def test_bench_continues_a_stopped_measurement(self) -> None:
        sql = "SELECT 1; SELECT id % 3, count(*) FROM range(100) GROUP BY 1"
        assert bench("-", "--queries", "1", *QUICK, stdin=sql).exit_code == 0
        first = load(Path("bench-stdin.json"))
        result = bench("-", *QUICK, stdin=sql)
        assert result.exit_code == 0, result.stderr
        assert "Continuing bench-stdin.json, which already has the queries <stdin>:1" in flat(
            result.stderr
        )
        both = load(Path("bench-stdin.json"))
        assert list(both.queries) == ["<stdin>:1", "<stdin>:2"]
        assert both.queries["<stdin>:1"] == first.queries["<stdin>:1"]

        again = bench("-", *QUICK, "--warmups", "2", stdin=sql)
        assert again.exit_code == 2
        assert "bench-stdin.json was measured with warmups 0, not 2" in flat(again.stderr)
        assert load(Path("bench-stdin.json")) == both
        assert bench("-", *QUICK, "--warmups", "2", "--fresh", stdin=sql).exit_code == 0
        assert load(Path("bench-stdin.json")).conditions.warmups == 2

    def test_bench_measures_files_of_sql_on_tables(self, folder: Path) -> None:
        (folder / "tables").mkdir()
        (folder / "tables" / "people.csv").write_text("name,city\nAda,London\nKay,London\n")
        (folder / "sql" / "more").mkdir(parents=True)
        (folder / "sql" / "cities.sql").write_text("SELECT city FROM people; SELECT 2")
        (folder / "sql" / "more" / "names.sql").write_text("SELECT name FROM people")
        result = bench("sql", "--tables", folder / "tables", *QUICK, "-o", "own.json")
        assert result.exit_code == 0, result.stderr
        assert list(load(Path("own.json")).queries) == ["cities:1", "cities:2", "more/names:1"]

    def test_bench_measures_a_user_defined_variant(self) -> None:
        seven = "seven:parallelism=7,spark.sql.shuffle.partitions=7"
        sql = "SELECT id % 9, count(*) FROM range(0, 100, 1, 2) GROUP BY 1"
        result = bench("-", *QUICK, "--variant", seven, stdin=sql)
        assert result.exit_code == 0, result.stderr
        [run] = load(Path("bench-stdin.json")).queries["<stdin>:1"].runs["seven"]
        assert run.reduce_tasks == 7

    def test_bench_shows_plans(self) -> None:
        sql = "SELECT id % 9, count(*) FROM range(0, 100, 1, 2) GROUP BY 1"
        result = bench("-", *QUICK, "--plans", stdin=sql)
        assert result.exit_code == 0, result.stderr
        text = flat(result.stdout)
        assert "Plans: spark → variant" in text
        assert re.search(r" <stdin>:1 even 1 0 0 0 0 0 0 0 1 \d", text)
        assert load(Path("bench-stdin.json")).queries["<stdin>:1"].plans.keys() == {"spark", "even"}
        assert "Plans:" not in bench("-", *QUICK, "--json", "b.json", stdin=sql).stdout

    def test_bench_exits_with_1_for_failed_or_different_queries(self) -> None:
        sql = "SELECT * FROM nowhere; SELECT uuid(); SELECT 3"
        result = bench("-", *QUICK, "--check", stdin=sql)
        assert result.exit_code == 1
        assert "query <stdin>:1 failed under spark: [TABLE_OR_VIEW_NOT_FOUND]" in result.stderr
        assert "query <stdin>:2 returns a different result under even" in result.stderr
        assert re.search(r"<stdin>:3 [\d.]+ [\d.]+ \d+ → \d+", flat(result.stdout))

    def test_bench_checks_the_output_file_before_it_runs(self) -> None:
        result = bench("-", "--json", "none/bench.json", stdin="SELECT 1 / 0")
        assert result.exit_code == 2
        assert "cannot write none/bench.json: No such file" in result.stderr

    def test_bench_reports_a_variant_that_spark_rejects(self) -> None:
        result = bench("-", "--variant", "wide:spark.default.parallelism=9", stdin="SELECT 1")
        assert result.exit_code == 2
        assert "variant wide: spark.default.parallelism cannot be set while Spark runs" in flat(
            result.stderr
        )

    def test_the_suite_skew_has_its_conf(self, tmp_path: Path, volume: None) -> None:
        result = bench("skew", "--scale", "0.001", "--queries", "hot-rebalance", *QUICK,
                       "--data", tmp_path / "data")  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert skew.CONF.items() <= load(Path("bench-skew.json")).conditions.conf.items()

    @pytest.fixture
    def volume(self, spark: SparkSession) -> Iterator[None]:
        yield
        for key in skew.CONF:
            spark.conf.unset(key)
