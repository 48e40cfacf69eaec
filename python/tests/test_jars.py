from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from apportion import ApportionError
from apportion._spark import jars
from apportion._spark.jars import SparkVersion
from tests import programs

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ROOT / "project/SparkVersion.scala"
MAIN = ROOT / "jvm/src/main"
SOURCES = MAIN / "scala", MAIN / "scala-spark-4"
# Methods with a default that a trait of Spark 4.3 adds, by the class that extends it: the JVM finds
# the default without the compiler's help. CacheManager alone calls this one, on logical plans.
MORE_METHODS = {"io/apportion/scans/ListedFileIndex.class": {"public boolean isTimeTravel();"}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A SPARK_HOME whose Spark has no files yet, and Apportion's jars in its `ours` folder."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "ours").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "jar_folder", lambda: tmp_path / "ours")
    return tmp_path


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()


@pytest.mark.parametrize(
    ("core", "ours"),
    [
        ("spark-core_2.13-4.2.0.jar", "apportion-spark-4.2_2.13-0.1.0.jar"),
        ("spark-core_2.13-4.3.0.jar", "apportion-spark-4.2_2.13-0.1.0.jar"),
        ("spark-core_2.13-4.1.3.jar", "apportion-spark-4.2_2.13-0.1.0.jar"),
        ("spark-core_2.13-4.0.4.jar", "apportion-spark-4.2_2.13-0.1.0.jar"),
        ("spark-core_2.13-3.5.9.jar", "apportion-spark-3.5_2.13-0.1.0.jar"),
        ("spark-core_2.12-3.5.1-amzn-0.jar", "apportion-spark-3.5_2.12-0.1.0.jar"),
        ("spark-core_2.13-4.2.0-SNAPSHOT.jar", "apportion-spark-4.2_2.13-0.1.0.jar"),
    ],
)
def test_the_jar_is_found_by_spark_and_scala_version(home: Path, core: str, ours: str) -> None:
    put(home / "jars", core, "spark-core_extras.jar", "scala-library-2.13.16.jar")
    put(
        home / "ours",
        "apportion-spark-4.2_2.13-0.1.0.jar",
        "apportion-spark-3.5_2.13-0.1.0.jar",
        "apportion-spark-3.5_2.12-0.1.0.jar",
        "other.jar",
    )
    assert jars.find().name == ours


def test_an_unsupported_spark_version_has_no_jar(home: Path) -> None:
    put(home / "jars", "spark-core_2.12-3.4.1.jar")
    put(home / "ours", "apportion-spark-4.2_2.13-0.1.0.jar")
    with pytest.raises(ApportionError) as error:
        jars.find()
    assert "fits Spark 3.4 (Scala 2.12)" in str(error.value)
    assert str(home) in str(error.value)
    supported = (f"Spark {minor} (Scala 2.13)" for minor in ("4.3", "4.2", "4.1", "4.0"))
    assert f"Supported: {', '.join(supported)}." in str(error.value)


def test_a_checkout_without_built_jars_is_an_error(home: Path) -> None:
    put(home / "jars", "spark-core_2.13-4.2.0.jar")
    with pytest.raises(
        ApportionError, match=f"no jar of Apportion .* in {home}/ours: .* make jars"
    ):
        jars.find()


def test_two_jars_for_one_spark_version_are_an_error(home: Path) -> None:
    put(home / "jars", "spark-core_2.13-4.2.0.jar")
    put(home / "ours", "apportion-spark-4.2_2.13-0.1.0.jar", "apportion-spark-4.2_2.13-0.2.0.jar")
    with pytest.raises(ApportionError, match=r"two jars .*0\.1\.0\.jar and .*0\.2\.0\.jar"):
        jars.find()


def test_a_spark_home_without_spark_is_an_error(home: Path) -> None:
    with pytest.raises(ApportionError, match=f"in {home}/jars: set SPARK_HOME"):
        jars.installed_spark()


def test_the_spark_of_pyspark_is_used_without_spark_home(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    monkeypatch.delenv("SPARK_HOME", raising=False)
    minor = ".".join(pyspark.__version__.split(".")[:2])
    scala = "2.12" if minor == "3.5" else "2.13"
    assert jars.installed_spark() == SparkVersion(minor, scala)


def test_a_missing_pyspark_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ApportionError, match=r"pip install 'apportion\[spark\]', .* platform's"):
        jars.spark_home()


def test_spark_home_is_enough_without_pyspark(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert jars.spark_home() == home
    with pytest.raises(ApportionError, match=rf"put {home}/python and .* on PYTHONPATH"):
        jars.pyspark_folder()


def test_pyspark_client_has_no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(jars, "spark_home", lambda: tmp_path)
    with pytest.raises(ApportionError, match=f"pyspark in {tmp_path} has no Spark .*sc://host"):
        jars.installed_spark()


def test_this_checkout_has_a_jar_for_the_installed_spark() -> None:
    assert jars.find().is_file()


def methods(classes: Path, names: list[str]) -> list[dict[str, str]]:
    """The instructions of each method of classes, without places in a table of constants."""
    if not names:
        return []
    code = programs.run("javap", "-p", "-c", "-cp", classes, *names)
    # A full compilation calls type variables of Function1 `A$` that an incremental one calls `A`.
    code = code.replace("A$", "A")
    each = re.sub(r"#\d+(, +\d+)? +//", "//", code).split("Compiled from ")[1:]
    parts = [code.split("\n\n") for code in each]
    return [{head.strip(): code for head, _, code in (m.partition("\n") for m in p)} for p in parts]


@pytest.mark.slow
def test_the_built_jar_matches_the_sources(tmp_path: Path) -> None:
    spark, name = jars.installed_spark(), jars.find().name
    if f'SparkVersion("{spark.minor}"' in VERSIONS.read_text("utf-8"):
        pytest.skip(f"the Scala tests run {name} on Spark {spark.minor}")
    # One compiler of the JVM is faster for a program that runs once.
    programs.run(
        *("java", "-XX:TieredStopAtLevel=1", "-cp", jars.spark_home() / "jars" / "*"),
        *("scala.tools.nsc.Main", "-usejavacp"),
        *("-release", str(spark.oldest_java), "-g:line", "-d", tmp_path),
        *(each for folder in SOURCES for each in folder.rglob("*.scala")),
    )
    # The jar to run has no signatures, which are only for compilers.
    (jar,) = ROOT.glob(f"target/spark*/scala-*/{name}")
    with zipfile.ZipFile(jar) as classes:
        names = {each for each in classes.namelist() if each.endswith(".class")}
        assert names == {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.class")}
        differ = [each for each in names if classes.read(each) != (tmp_path / each).read_bytes()]
    names_of = [each.removesuffix(".class") for each in differ]
    both = zip(differ, methods(jar, names_of), methods(tmp_path, names_of), strict=True)
    for each, ours, theirs in both:
        more = {head for head in theirs if head not in ours}
        assert more == MORE_METHODS.get(each, set()), each
        assert ours == {head: code for head, code in theirs.items() if head not in more}, each
