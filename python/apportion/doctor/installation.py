"""Checks of Python, Java, Spark, and Apportion's jar."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from apportion._spark import jars
from apportion.doctor.finding import Finding, Setup
from apportion.errors import ApportionError

_SECONDS_TO_ANSWER = 60
_VERSION = re.compile(r"__version__(?:: str)? = [\"'](?P<full>(?P<minor>\d+\.\d+)[^\"']*)[\"']")


def python(setup: Setup) -> Iterator[Finding]:
    """Check that this Python and the Python of Spark's tasks have the same version."""
    version = ".".join(map(str, sys.version_info[:3]))
    here = f"Python {version} ({sys.executable})"
    named = setup.conf.find("spark.pyspark.python")
    worker = (named and named.value) or os.environ.get("PYSPARK_PYTHON") or "python3"
    path = shutil.which(worker)
    theirs = path and _answer(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    if theirs and theirs.strip() == version.rpartition(".")[0]:
        yield Finding("Python", here)
        return
    finding = f"is Python {theirs.strip()}" if theirs else "cannot be started"
    yield Finding(
        "Python",
        f"{here}; of tasks: {worker}",
        "warning",
        f"{worker} {finding}, so Python functions in queries fail: set PYSPARK_PYTHON to "
        f"{sys.executable}",
    )


def java(setup: Setup) -> Iterator[Finding]:
    """Check the Java that Spark's scripts would start, from JAVA_HOME or else from PATH."""
    oldest = jars.oldest_java()
    advice = (
        f"Spark and Apportion need Java {oldest} or newer: install it, and set JAVA_HOME to its "
        "folder"
    )
    home = os.environ.get("JAVA_HOME")
    where = f"JAVA_HOME={home}" if home else "java on PATH"
    path = shutil.which("java", path=Path(home, "bin")) if home else shutil.which("java")
    if path is None:
        missing = "has no bin/java" if home else "not found"
        yield Finding("Java", f"{where}: {missing}", "problem", advice)
        return
    printed = _answer(path, "-version")
    match = re.search(r'version "(?P<full>(?:1\.)?(?P<major>\d+)[^"]*)', printed)
    if match is None:
        looked_at = f"{path} does not print its version: {printed.strip() or 'no output'}"
        yield Finding("Java", looked_at, "problem", advice)
    elif int(match["major"]) < oldest:
        yield Finding("Java", f"{where}: Java {match['full']}", "problem", advice)
    else:
        yield Finding("Java", f"{where}: Java {match['full']}")


def spark(setup: Setup) -> Iterator[Finding]:
    """Check the Spark that would run, and that pyspark has the same version."""
    try:
        home, version = jars.spark_home(), jars.installed_spark()
    except ApportionError as error:
        where = os.environ.get("SPARK_HOME")
        looked_at = f"SPARK_HOME={where}" if where else "SPARK_HOME is not set; package pyspark"
        yield Finding("Spark", looked_at, "problem", str(error))
        return
    package = _pyspark_version()
    if package and package["minor"] != version.minor:
        yield Finding(
            "Spark",
            f"{version} in {home}; package pyspark: {package['full']}",
            "problem",
            f"the versions must be equal: pip install 'pyspark=={version.minor}.*', or unset "
            "SPARK_HOME to run the Spark of the package",
        )
        return
    yield Finding("Spark", f"{version} in {home}")


def jar(setup: Setup) -> Iterator[Finding]:
    """Check that this package has a jar for the installed Spark."""
    try:
        version = jars.installed_spark()
    except ApportionError:
        return
    try:
        yield Finding("Jar", f"{version}: {jars.find()}")
    except ApportionError as error:
        yield Finding("Jar", str(version), "problem", str(error))


def _pyspark_version() -> re.Match[str] | None:
    """Return the version of the package that `import pyspark` would find, without importing it."""
    package = importlib.util.find_spec("pyspark")
    folders = package.submodule_search_locations if package else None
    file = Path(folders[0], "version.py") if folders else None
    return _VERSION.search(file.read_text("utf-8")) if file and file.is_file() else None


def _answer(*command: str) -> str:
    """Return the standard output and error of a program."""
    try:
        run = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS_TO_ANSWER,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return run.stdout
