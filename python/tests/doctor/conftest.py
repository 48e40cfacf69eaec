"""A machine of a test's own: all that `apportion doctor` looks at is made up."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from apportion._spark import jars
from apportion.doctor import Finding, examine

JAR = "apportion-spark-4.2_2.13-0.1.0.jar"


class Machine:
    """Has Java 17, Spark 4.2 with its pyspark, and jars for Spark 4 and 3.5, until changed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._patch = monkeypatch
        for variable in ("JAVA_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("PATH", str(folder / "bin"))
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
        monkeypatch.setattr(jars, "jar_folder", lambda: folder / "ours")
        monkeypatch.setattr("importlib.util.find_spec", lambda _: self._package())
        self.java("17.0.15")
        self.spark("4.2.1")
        self.jars(JAR, "apportion-spark-3.5_2.13-0.1.0.jar")

    def java(self, version: str | None, folder: str = "bin") -> None:
        """Put a `java` into a folder, or take it away."""
        program = self.folder / folder / "java"
        if version is None:
            program.unlink()
            return
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
        program.chmod(0o755)

    def spark(self, version: str, scala: str = "2.13", pyspark: str | None = None) -> None:
        """Put a Spark into SPARK_HOME, with a pyspark of its version or another."""
        for old in self.folder.glob("spark/jars/spark-core_*.jar"):
            old.unlink()
        self.file(f"spark/jars/spark-core_{scala}-{version}.jar")
        self.file("pyspark/version.py", f'__version__: str = "{pyspark or version}"\n')
        self.set("SPARK_HOME", str(self.folder / "spark"))

    def jars(self, *names: str) -> None:
        """Have these jars come with Apportion, and no other."""
        for old in self.folder.glob("ours/*.jar"):
            old.unlink()
        for name in names:
            self.file(f"ours/{name}")

    def file(self, name: str, text: str = "") -> str:
        """Write a file, and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def defaults(self, *lines: str) -> None:
        """Write spark-defaults.conf."""
        self.file("spark/conf/spark-defaults.conf", "\n".join(lines))

    def set(self, variable: str, value: str) -> None:
        self._patch.setenv(variable, value)

    def submit(self, arguments: str) -> None:
        self.set("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")

    def without_pyspark(self) -> None:
        self._patch.delenv("SPARK_HOME")
        self._patch.setattr("importlib.util.find_spec", lambda _: None)

    def examine(self, **conf: str) -> list[Finding]:
        return examine(conf)

    def _package(self) -> SimpleNamespace:
        return SimpleNamespace(submodule_search_locations=[str(self.folder / "pyspark")])


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)
