"""Spark Connect: a server with the extension, and a client that has no JVM (pyspark-client)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import version

import pytest

from tests.bare import Bare
from tests.docs.pages import ROOT

from .distributions import Distributions
from .servers import running

pytestmark = pytest.mark.slow

SESSION = """
import apportion
from pyspark.sql import SparkSession
spark = apportion.configure(SparkSession.builder.remote("{url}")).getOrCreate()
"""

Client = Callable[[str], str]


@pytest.fixture(scope="module")
def bare(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    # What a newer client can ask for is up to Spark.
    packages = (f"{built.wheel}[connect]", f"pyspark-client<={version('pyspark')}", "pytest")
    with Bare(tmp_path_factory.mktemp("connect"), *packages) as made:
        yield made


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("connect_server")
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with running(server, "spark.connect.grpc.binding.port", folder) as port:
        yield f"sc://localhost:{port}"


@pytest.fixture
def client(bare: Bare, url: str) -> Client:
    """Runs a program that has a session of the server's, and returns the lines it prints."""
    return lambda code: bare.python(SESSION.format(url=url) + code)


def test_the_connect_client_has_no_jvm(bare: Bare) -> None:
    assert (
        bare.python("""
from importlib.util import find_spec
print(find_spec("pyspark") is not None, find_spec("py4j") is not None)
""")
        == "True False\n"
    )


def test_hints_and_settings_work_on_spark_connect(client: Client) -> None:
    printed = client("""
query = "SELECT id % 100 AS key, count(*) FROM range(0, 1000, 1, 2) GROUP BY 1"
spark.sql(query.replace("SELECT", "SELECT /*+ PARALLELISM(8) */")).collect()
spark.sql("SET spark.apportion.parallelism = 4").collect()
spark.sql(query).collect()
spark.conf.set("spark.apportion.parallelism", "2")
spark.sql(query).collect()
keys = spark.range(0, 100, 1, 2).selectExpr("id % 7 AS key")
keys.groupBy("key").count().hint("parallelism", 16).collect()
for decision in apportion.decisions(spark):
    print(decision.parallelism, decision.sources["parallelism"])
for row in spark.sql("SELECT parallelism FROM apportion_decisions()").collect():
    print(row.parallelism)
""")
    assert printed.splitlines() == [
        "8 hint on the query block, line 1",
        "4 session setting",
        "2 session setting",
        "16 hint on the query block",
        "8",
        "4",
        "2",
        "16",
    ]


def test_configure_passes_settings_to_spark_connect(bare: Bare, url: str) -> None:
    code = SESSION.format(url=url).replace('")).get', '"), parallelism=32).get')
    assert bare.python(f'{code}\nprint(spark.conf.get("spark.apportion.parallelism"))') == "32\n"


def test_a_wrong_setting_fails_on_spark_connect(client: Client) -> None:
    printed = client("""
try:
    spark.conf.set("spark.apportion.mode", "passive")
except Exception as error:
    print(error)
""")
    assert "Allowed: auto, active, reactive, observe." in printed


def test_key_functions_work_on_spark_connect(client: Client) -> None:
    assert client("""
from apportion.keys import spread
items = spark.range(1000).selectExpr("id % 10 AS bucket", "concat('town ', id % 10) AS town")
even = items.selectExpr("*", "even_key(bucket, 5) AS surrogate").repartition(5, "surrogate")
placed = even.selectExpr("bucket", "spark_partition_id() AS task").distinct().collect()
print(all(row.task == row.bucket % 5 for row in placed))
tasks = spread(items, "town", 5).selectExpr("town", "task_of(5, 5, even_key) AS task").distinct()
print(sorted(row["count"] for row in tasks.groupBy("task").count().collect()))
row = spark.sql("SELECT flink_key_group('Berlin', 128), flink_rebalance_keys(5)").first()
print(*row)
""").splitlines() == ["True", "[2, 2, 2, 2, 2]", "46 [4, 9, 10, 0, 2]"]


@pytest.mark.parametrize(
    "code",
    ["apportion.decide(spark, [])", "apportion.explain(spark.range(1))", "run_sql(spark, [])"],
)
def test_functions_that_need_a_jvm_raise_on_spark_connect(code: str, client: Client) -> None:
    printed = client(f"""
from apportion.logs.explanation.run_queries import run_sql
try:
    {code}
except apportion.ApportionError as error:
    print(error)
""")
    assert "needs a classic Spark session, and this one is a Spark Connect client" in printed


def test_a_connect_client_without_a_server_raises(bare: Bare) -> None:
    printed = bare.python("""
import apportion
try:
    apportion.get_or_create()
except apportion.ApportionError as error:
    print(error)
""")
    assert "has no Spark in it" in printed


def test_golden_tests_run_on_spark_connect(bare: Bare, url: str) -> None:
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    (script,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    (fixture,) = [
        text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "sc://" in text
    ]
    (expected,) = re.findall(r"```text\n(-- name: .*?)```", page, re.DOTALL)
    folder = bare.folder / "sql_tests"
    folder.mkdir()
    (folder / "orders.sql").write_text(script)
    (bare.folder / "pytest.ini").write_text("[pytest]\napportion_sql_tests = sql_tests\n")
    imports = "import apportion, pytest\nfrom pyspark.sql import SparkSession\n\n"
    connected = fixture.replace("sc://localhost:15002", url)
    (bare.folder / "conftest.py").write_text(imports + connected)
    bare.run("pytest", "--apportion-update-golden")
    assert (folder / "orders.golden").read_text() == expected
    assert "2 passed" in bare.run("pytest")


def test_the_doctor_checks_a_spark_connect_server(bare: Bare, url: str) -> None:
    assert "1 task" in bare.run("apportion", "doctor", "--remote", url)
