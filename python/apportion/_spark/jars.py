"""Finds the extension's jar for the installed Spark."""

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

# Other Spark versions that run a jar: `SparkVersion.jar` in project/SparkVersion.scala, and 4.3,
# which is not in Maven. The classes that Apportion uses did not change in it.
_SAME_JAR = {"4.2": ("4.3", "4.1", "4.0")}


class SparkVersion(NamedTuple):
    """Minor version of Spark and its Scala version, such as `4.2` and `2.13`."""

    minor: str
    scala: str

    @property
    def oldest_java(self) -> int:
        """Oldest Java version that this Spark supports."""
        return 8 if self.minor == "3.5" else _OLDEST_JAVA

    def __str__(self) -> str:
        return f"Spark {self.minor} (Scala {self.scala})"


class JarName(NamedTuple):
    """Parsed file name of one of Apportion's jars."""

    spark: SparkVersion
    """Spark version that the jar was compiled against."""
    version: str

    @property
    def runs_on(self) -> list[SparkVersion]:
        """All Spark versions that the jar supports."""
        others = _SAME_JAR.get(self.spark.minor, ())
        return [self.spark, *(SparkVersion(minor, self.spark.scala) for minor in others)]


def find() -> Path:
    """Return the jar for the Spark that a new session would start.

    Raises `ApportionError` if there is no Spark, no jar, or no jar for that Spark.
    """
    spark, folder = installed_spark(), jar_folder()
    jars = bundled(folder)
    if spark not in jars:
        supported = ", ".join(str(version) for version in sorted(jars, reverse=True))
        raise ApportionError(
            f"no jar of Apportion fits {spark}, found in {spark_home()}. Supported: {supported}. "
            "Install one of these versions, for example with pip install 'apportion[spark]', or "
            "set SPARK_HOME to one"
        )
    return jars[spark]


def spark_home() -> Path:
    """Return the folder of the Spark that will run: SPARK_HOME, or else the pyspark package.

    Raises `ApportionError` if both are missing.
    """
    home = os.environ.get("SPARK_HOME")
    return Path(home) if home else pyspark_folder()


def pyspark_folder() -> Path:
    """Return the folder of the Python package pyspark, without importing it.

    Raises `ApportionError` if Python does not find it.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        home = os.environ.get("SPARK_HOME")
        own = f"{home}/python and {home}/python/lib/py4j-*.zip" if home else "your platform's copy"
        raise ApportionError(
            "the Python package pyspark is not installed: run pip install 'apportion[spark]', or "
            f"put {own} on PYTHONPATH, as spark-submit does"
        )
    return Path(package.submodule_search_locations[0])


def installed_spark() -> SparkVersion:
    """Return the version of the Spark that will run, from the file name of its spark-core jar.

    Raises `ApportionError` if there is no Spark, or if it has no spark-core jar.
    """
    folder = spark_home() / "jars"
    if not folder.exists() and not os.environ.get("SPARK_HOME"):
        raise ApportionError(
            f"the Python package pyspark in {folder.parent} has no Spark in it. It is probably "
            "pyspark-client, which only connects to a Spark Connect server: "
            "SparkSession.builder.remote('sc://host'). To run Spark on this machine, replace it "
            "with pip install 'apportion[spark]', or set SPARK_HOME"
        )
    for core in sorted(folder.glob("spark-core_*.jar")):
        if match := _CORE.fullmatch(core.name):
            return SparkVersion(match["minor"], match["scala"])
    raise ApportionError(
        f"no spark-core_<scala>-<version>.jar in {folder}: set SPARK_HOME to a folder with Spark "
        "in it, or unset it to use the Spark of the installed pyspark"
    )


def oldest_java() -> int:
    """Return the oldest supported Java version, for the newest Spark if none is installed."""
    try:
        return installed_spark().oldest_java
    except ApportionError:
        return _OLDEST_JAVA


def jar_folder() -> Path:
    """Return the folder of Apportion's jars: in the package, or `target/jars` in a checkout."""
    checkout = _PACKAGE.parent.parent
    is_checkout = (checkout / "build.sbt").is_file()
    return checkout / "target" / "jars" if is_checkout else _PACKAGE / "jars"


def parse_name(file: str) -> JarName | None:
    """Return the parsed name of a jar, or None if the jar is not Apportion's."""
    match = _JAR.fullmatch(file)
    return match and JarName(SparkVersion(match["minor"], match["scala"]), match["version"])


def bundled(folder: Path) -> dict[SparkVersion, Path]:
    """Return the jars in `folder` by the Spark version that they support.

    Raises `ApportionError` if there is no jar, or two jars for the same Spark version.
    """
    jars: dict[SparkVersion, Path] = {}
    for jar in sorted(folder.glob("*.jar")):
        name = parse_name(jar.name)
        for version in name.runs_on if name else ():
            if version in jars:
                raise ApportionError(
                    f"two jars of Apportion for {version} in {folder}: {jars[version].name} and "
                    f"{jar.name}. Delete the older one"
                )
            jars[version] = jar
    if not jars:
        raise ApportionError(
            f"no jar of Apportion (apportion-spark-*.jar) in {folder}: in a source checkout, "
            "build it with: make jars. If you installed the package, it is broken: reinstall it"
        )
    return jars
