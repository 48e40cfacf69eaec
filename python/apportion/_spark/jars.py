"""The jar of the extension that fits the Spark that will run."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

from apportion.errors import ApportionError

_PACKAGE = Path(__file__).parent.parent
_CORE = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<version>(?P<minor>\d+\.\d+)\..*)\.jar")
_JAR = re.compile(r"apportion-spark-(?P<minor>\d+\.\d+)_(?P<scala>\d+\.\d+)-(?P<version>.*)\.jar")

_OLDEST_JAVA = 17

# Versions whose classes, as far as Apportion uses them, are those of the version before: its jar
# compiled against them is the same.
_SAME_JAR = {"4.2": ("4.3",)}


class SparkVersion(NamedTuple):
    """A Spark and its Scala, as far as a jar depends on them: `4.2` and `2.13`."""

    minor: str
    scala: str

    @property
    def oldest_java(self) -> int:
        """The oldest Java that it runs on."""
        return 8 if self.minor == "3.5" else _OLDEST_JAVA

    def __str__(self) -> str:
        return f"Spark {self.minor} (Scala {self.scala})"


class JarName(NamedTuple):
    """What the name of one of Apportion's jars says."""

    spark: SparkVersion
    """What it was compiled against."""
    version: str

    @property
    def runs_on(self) -> list[SparkVersion]:
        """Every Spark that it is for."""
        newer = _SAME_JAR.get(self.spark.minor, ())
        return [self.spark, *(SparkVersion(minor, self.spark.scala) for minor in newer)]


def find() -> Path:
    """Return the jar for the Spark that a session started now would run.

    Raises `ApportionError` when there is no Spark, no jar, or no jar for that Spark.
    """
    spark, folder = installed_spark(), jar_folder()
    jars = bundled(folder)
    if spark not in jars:
        supported = ", ".join(str(version) for version in sorted(jars, reverse=True))
        raise ApportionError(
            f"no jar of Apportion fits {spark}, found in {spark_home()}. Supported: {supported}. "
            "Install one of these, for example pip install 'apportion[spark]', or point "
            "SPARK_HOME to one"
        )
    return jars[spark]


def spark_home() -> Path:
    """Return the folder of the Spark that will run: SPARK_HOME, else the pyspark package.

    Raises `ApportionError` when there is neither.
    """
    home = os.environ.get("SPARK_HOME")
    return Path(home) if home else pyspark_folder()


def pyspark_folder() -> Path:
    """Return the folder of the Python package pyspark, without importing it.

    Raises `ApportionError` when Python does not find it.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        home = os.environ.get("SPARK_HOME")
        own = f"{home}/python and {home}/python/lib/py4j-*.zip" if home else "your platform's own"
        raise ApportionError(
            "the Python package pyspark is not installed: pip install 'apportion[spark]', or put "
            f"{own} on PYTHONPATH, as spark-submit does"
        )
    return Path(package.submodule_search_locations[0])


def installed_spark() -> SparkVersion:
    """Return the version of the Spark that will run, by the name of its spark-core jar.

    Raises `ApportionError` when there is no Spark, or no such jar in it.
    """
    folder = spark_home() / "jars"
    if not folder.exists() and not os.environ.get("SPARK_HOME"):
        raise ApportionError(
            f"the Python package pyspark in {folder.parent} has no Spark in it, as that of "
            "pyspark-client: it talks to a Spark Connect server, SparkSession.builder.remote("
            "'sc://host'). To run Spark here, pip install 'apportion[spark]' in its place, or set "
            "SPARK_HOME"
        )
    for core in sorted(folder.glob("spark-core_*.jar")):
        if match := _CORE.fullmatch(core.name):
            return SparkVersion(match["minor"], match["scala"])
    raise ApportionError(
        f"no spark-core_<scala>-<version>.jar in {folder}: set SPARK_HOME to a folder with Spark "
        "in it, or unset it to run the installed pyspark's"
    )


def oldest_java() -> int:
    """Return the oldest Java for the Spark that will run; for the newest where there is none."""
    try:
        return installed_spark().oldest_java
    except ApportionError:
        return _OLDEST_JAVA


def jar_folder() -> Path:
    """Return the folder of Apportion's jars: in the package, or sbt's own in a source checkout."""
    checkout = _PACKAGE.parent.parent
    is_checkout = (checkout / "build.sbt").is_file()
    return checkout / "target" / "jars" if is_checkout else _PACKAGE / "jars"


def parse_name(file: str) -> JarName | None:
    """Return what the name of a jar says, None for a jar that is not Apportion's."""
    match = _JAR.fullmatch(file)
    return match and JarName(SparkVersion(match["minor"], match["scala"]), match["version"])


def bundled(folder: Path) -> dict[SparkVersion, Path]:
    """Return the jars in `folder` by the Spark that they are for.

    Raises `ApportionError` when there is none, or more than one for a Spark.
    """
    jars: dict[SparkVersion, Path] = {}
    for jar in sorted(folder.glob("*.jar")):
        name = parse_name(jar.name)
        for version in name.runs_on if name else ():
            if version in jars:
                raise ApportionError(
                    f"two jars of Apportion for {version} in {folder}: {jars[version].name} and "
                    f"{jar.name}. Delete the old one"
                )
            jars[version] = jar
    if not jars:
        raise ApportionError(
            f"no jar of Apportion (apportion-spark-*.jar) in {folder}: in a source checkout, "
            "build it with: make jars. An installed package without it is broken: install it again"
        )
    return jars
