"""Checks of Apportion's jars in the conf and in Spark's jar folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlparse

from apportion._spark import jars
from apportion.doctor.finding import Finding, Setup
from apportion.errors import ApportionError

# Confs with lists of jars, and their separators.
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": ":",
    "spark.executor.extraClassPath": ":",
}
_PACKAGES = "spark.jars.packages"


class GivenJar(NamedTuple):
    """Jar of Apportion that Spark would load."""

    path: str
    name: jars.JarName
    where: str

    def __str__(self) -> str:
        return f"{self.path} ({self.where})"


def given(setup: Setup) -> Iterator[GivenJar]:
    """Yield the jars of Apportion in the conf and in Spark's jar folder."""
    for key, separator in _LISTS.items():
        for path in setup.conf.listed(key, separator):
            if name := jars.parse_name(path.rpartition("/")[2]):
                yield GivenJar(path, name, key)
    for coordinates in setup.conf.listed(_PACKAGES):
        if name := jars.parse_name("-".join(coordinates.split(":")[1:]) + ".jar"):
            yield GivenJar(coordinates, name, _PACKAGES)
    try:
        folder = jars.spark_home() / "jars"
    except ApportionError:
        return
    for file in sorted(folder.glob("apportion-*.jar")):
        if name := jars.parse_name(file.name):
            yield GivenJar(str(file), name, "Spark's own jars")


def fits(setup: Setup) -> Iterator[Finding]:
    """Check that each jar exists and is for the installed Spark."""
    try:
        spark = jars.installed_spark()
    except ApportionError:
        return
    for jar in given(setup):
        file = _local_file(jar)
        if spark not in jar.name.runs_on:
            advice = f"this jar is for {jar.name.spark}, but {spark} would run: use {_right_jar()}"
            yield Finding("Jar given", str(jar), "problem", advice)
        elif file and not file.is_file():
            advice = f"this file does not exist: use {_right_jar()}"
            yield Finding("Jar given", str(jar), "problem", advice)
        else:
            yield Finding("Jar given", str(jar))


def copies(setup: Setup) -> Iterator[Finding]:
    """Check that all jars have the version of this package."""
    versions = {str(jar): jar.name.version for jar in given(setup)}
    if not versions:
        return
    try:
        own = jars.find()
    except ApportionError:
        return
    if name := jars.parse_name(own.name):
        versions[f"{own} (this package)"] = name.version
    if len(set(versions.values())) > 1:
        yield Finding(
            "Versions of the jar",
            "; ".join(f"{version}: {jar}" for jar, version in versions.items()),
            "problem",
            "the JVM loads classes from the first jar that it finds: keep one version, and remove "
            "the others",
        )


def _local_file(jar: GivenJar) -> Path | None:
    if jar.where == _PACKAGES:
        return None
    try:
        url = urlparse(jar.path)
    except ValueError:
        return Path(jar.path)
    return Path(unquote(url.path)) if url.scheme in ("", "file") else None


def _right_jar() -> str:
    try:
        return str(jars.find())
    except ApportionError:
        return "the path that `apportion jar` prints"
