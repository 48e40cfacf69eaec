"""Sessions with Apportion. Each scenario of starting one has a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import apportion
from apportion import ApportionError, SettingError, Settings
from apportion._spark import jars, jvm
from apportion._spark.builder import merged
from apportion.errors import SparkEndedError
from apportion.session import confs
from tests.programs import without_spark

EXTENSION = "io.apportion.ApportionExtension"
REPORT = """
import json
print(json.dumps({
    "jars": spark.conf.get("spark.jars").split(","),
    "extensions": spark.conf.get("spark.sql.extensions").split(","),
    "decisions": len(apportion.decisions(spark)),
}))
"""
BUILDER = """
import apportion
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
"""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("", "ours"),
        ("a", "ours,a"),
        (" a , b,", "ours,a,b"),
        ("a,ours,b", "a,ours,b"),
        ("a,,a", "ours,a,a"),
    ],
)
def test_apportion_is_added_to_a_list_unless_it_is_listed(values: str, expected: str) -> None:
    assert merged("ours", values) == expected


def run(code: str, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program with `python -c`, or with `command`, without this process's Spark variables."""
    return subprocess.run(
        [*(command or (sys.executable, "-c")), textwrap.dedent(code)],
        env=without_spark(**environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def report(finished: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert finished.returncode == 0, finished.stderr
    conf: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return conf


def jar_file(folder: Path, name: str) -> str:
    (folder / name).touch()
    return (folder / name).as_uri()


def ours() -> str:
    return jars.find().as_uri()


def test_the_builders_own_jars_and_extensions_are_kept(tmp_path: Path) -> None:
    before, after = jar_file(tmp_path, "before.jar"), jar_file(tmp_path, "after.jar")
    code = f"""{BUILDER}
assert apportion.configure(builder.config("spark.jars", "{before}"), min_parallelism=2) is builder
builder.config("spark.jars", "{before},{after}").config("spark.sql.extensions", "a.B")
apportion.configure(builder)
spark = builder.getOrCreate()
assert spark.conf.get("spark.apportion.minParallelism") == "2"
assert builder._options["spark.sql.extensions"] == "a.B"
{REPORT}
assert builder.getOrCreate() is spark
"""
    assert report(run(code)) == {
        "jars": [ours(), before, after],
        "extensions": [EXTENSION, "a.B"],
        "decisions": 0,
    }


def test_submit_arguments_and_spark_defaults_are_kept(tmp_path: Path) -> None:
    other = jar_file(tmp_path, "other.jar")
    defaults = "# of the platform\nspark.sql.extensions  a.B,c.D\nspark.jars=/not/this.jar\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    code = f"{BUILDER}\nspark = apportion.configure(builder).getOrCreate()\n{REPORT}"
    finished = run(
        code, SPARK_CONF_DIR=str(tmp_path), PYSPARK_SUBMIT_ARGS=f"--jars {other} pyspark-shell"
    )
    assert report(finished) == {
        "jars": [ours(), other],
        "extensions": [EXTENSION, "a.B", "c.D"],
        "decisions": 0,
    }


def test_the_history_is_set_when_spark_starts(tmp_path: Path) -> None:
    code = f"""{BUILDER}
for _ in range(2):
    spark = apportion.configure(
        builder, history_path="{tmp_path}", target_task_time="1s"
    ).getOrCreate()
assert spark.conf.get("spark.apportion.history.path") == "{tmp_path}"
slow = "java_method('java.lang.Thread', 'sleep', 10L)"
spark.sql(f"SELECT {{slow}} FROM (SELECT DISTINCT id % 50 FROM range(0, 99, 1, 2))").collect()
spark.stop()
"""
    finished = run(code)
    assert finished.returncode == 0, finished.stderr
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_a_decision_names_the_source_of_each_setting(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.apportion.parallelism  3\nspark.apportion.minTaskVolume  2m\n"
    )
    code = f"""{BUILDER}
builder.config("spark.apportion.broadcastRatio", "0.4")
spark = apportion.configure(builder).getOrCreate()
spark.conf.set("spark.apportion.minTaskVolume", "1m")
query = "SELECT id % 9, count(*) FROM range(0, 100, 1, 2) GROUP BY 1"
spark.sql(query).collect()
spark.sql(query.replace("SELECT", "SELECT /*+ PARALLELISM(2) */")).collect()
names = ["parallelism", "broadcastRatio", "minTaskVolume", "ranges"]
for decision in apportion.decisions(spark):
    print(*(decision.sources[name] for name in names), sep="; ")
"""
    finished = run(code, SPARK_CONF_DIR=str(tmp_path))
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines() == [
        "spark-defaults.conf; submit-time conf; session setting; default",
        "hint on the query block, line 1; submit-time conf; session setting; default",
    ]


def test_configure_works_in_a_program_of_spark_submit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{BUILDER}\nspark = apportion.configure(builder).getOrCreate()\n{REPORT}")
    submit = str(jars.spark_home() / "bin" / "spark-submit")
    finished = run(str(program), submit, "--conf", "spark.sql.extensions=a.B")
    assert report(finished)["extensions"] == [EXTENSION, "a.B"]


def test_configure_names_settings_of_another_type() -> None:
    builder = SparkSession.builder
    for wrong in ({}, {"mode": "active"}):
        with pytest.raises(SettingError, match=r"settings is {.*}: allowed is apportion\.Settings"):
            apportion.configure(builder, wrong)  # type: ignore[arg-type]


def test_configure_raises_for_a_running_session_without_the_extension() -> None:
    code = f"""{BUILDER}
configured = apportion.configure(SparkSession.builder)
plain = builder.getOrCreate()
for attempt in (
    apportion.get_or_create,
    lambda: apportion.configure(builder),
    configured.getOrCreate,
    lambda: apportion.decide(plain, []),
    lambda: apportion.decisions(plain),
):
    try:
        attempt()
    except apportion.ApportionError as error:
        assert "without Apportion's extension. Stop it (spark.stop())" in str(error), error
    else:
        raise AssertionError(attempt)
plain.stop()
spark = apportion.get_or_create(min_parallelism=2)
assert apportion.get_or_create(min_parallelism=4) is spark
assert spark.conf.get("spark.apportion.minParallelism") == "4"
try:
    apportion.get_or_create(history_path="/history")
except apportion.SettingError as error:
    assert "history_path cannot be changed while Spark runs" in str(error), error
else:
    raise AssertionError
{REPORT}
spark.stop()
for attempt in (apportion.decisions, lambda stopped: apportion.resources.plan(stopped, "SELECT 1")):
    try:
        attempt(spark)
    except apportion.ApportionError as error:
        assert "has been stopped: start a new one" in str(error), error
    else:
        raise AssertionError(attempt)
"""
    assert report(run(code)) == {"jars": [ours()], "extensions": [EXTENSION], "decisions": 0}


@pytest.mark.usefixtures("connect")
def test_configure_works_on_spark_connect() -> None:
    code = f"""
import apportion
from pyspark.sql import SparkSession
spark = apportion.configure(SparkSession.builder.remote("local[1]")).getOrCreate()
client = SparkSession.builder.remote("sc://localhost")
assert apportion.configure(client, parallelism=2).getOrCreate() is spark
spark.range(0, 100, 1, 2).selectExpr("id % 10 AS k").groupBy("k").count().collect()
[decision] = apportion.decisions(spark)
assert (decision.parallelism, decision.ranges) == (2, [(0, 128), (128, 256)]), decision
try:
    apportion.decide(spark, [])
except apportion.ApportionError as error:
    assert "needs a classic Spark session" in str(error)
else:
    raise AssertionError
{REPORT}"""
    conf = report(run(code))
    assert conf["extensions"] == [EXTENSION]
    assert conf["decisions"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("connect")
def test_configure_raises_for_a_spark_connect_server_without_the_extension() -> None:
    code = """
import apportion
from pyspark.sql import SparkSession
SparkSession.builder.remote("local[1]").getOrCreate()
try:
    apportion.configure(SparkSession.builder.remote("sc://localhost")).getOrCreate()
except apportion.ApportionError as error:
    assert "the Spark Connect server runs without Apportion's extension: start it" in str(error)
else:
    raise AssertionError
"""
    finished = run(code)
    assert finished.returncode == 0, finished.stderr


def test_configure_with_a_wrong_setting_leaves_the_builder_unchanged() -> None:
    builder = SparkSession.builder.appName("as it was")
    with pytest.raises(SettingError, match="min_parallelism is 0"):
        apportion.configure(builder, min_parallelism=0)
    assert builder._options == {"spark.app.name": "as it was"}


def test_keywords_override_settings() -> None:
    builder = apportion.configure(
        SparkSession.builder, Settings(min_parallelism=2, mode="active"), min_parallelism=4
    )
    assert builder._options == {
        "spark.apportion.minParallelism": "4",
        "spark.apportion.mode": "active",
    }


def test_configure_raises_for_an_unsupported_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.4.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(ApportionError, match=r"fits Spark 3\.4 \(Scala 2\.12\)"):
        apportion.configure(SparkSession.builder)


def test_import_is_fast_and_needs_no_pyspark() -> None:
    code = """
    import sys
    import apportion
    assert not {"pyspark", "py4j", "duckdb", "typer", "sqlglot"} & set(sys.modules)
    """
    assert run(code).returncode == 0


def test_confs_are_restored_after_a_block(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "16")
    values = {"spark.sql.shuffle.partitions": "3", "spark.sql.some.key": "x"}
    with confs(session, values):
        assert session.conf.get("spark.sql.shuffle.partitions") == "3"
        assert session.conf.get("spark.sql.some.key") == "x"
    assert session.conf.get("spark.sql.shuffle.partitions") == "16"
    assert session.conf.get("spark.sql.some.key", None) is None


def test_changing_a_static_conf_raises(spark: SparkSession) -> None:
    values = {"spark.apportion.history.path": "/history"}
    with (
        pytest.raises(SettingError, match="history_path cannot be changed while Spark runs"),
        confs(spark, values),
    ):
        pass


def test_no_conf_is_set_if_spark_rejects_one(spark: SparkSession) -> None:
    session = spark.newSession()
    values = {"spark.sql.some.key": "x", "spark.sql.warehouse.dir": "elsewhere"}
    with pytest.raises(Exception, match=r"spark\.sql\.warehouse\.dir"), confs(session, values):
        pass
    assert session.conf.get("spark.sql.some.key", None) is None


def test_errors_are_short_where_py4j_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py4j.protocol", None)
    with pytest.raises(SparkEndedError, match="Spark has ended: reset"), jvm.short_errors():
        raise ConnectionResetError("reset")
