"""Comparison of the members that a jar uses with the classes of Spark."""

from __future__ import annotations

import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from apportion.doctor.java_files.class_file import ClassFile, Member, parse, used_members

_SPARK = "org/apache/spark/"


class Comparison(NamedTuple):
    """Classes of Spark that a jar uses, and the members that they lack."""

    classes: list[str]
    """All classes of Spark that the jar uses, such as `org.apache.spark.SparkConf`."""
    missing: dict[str, list[str]]
    """Missing members by class; the list is empty if the class itself is missing."""


def compare(jar: Path, spark_jars: Path) -> Comparison | None:
    """Return the members of Spark that `jar` uses and the jars in a folder lack.

    Returns None if the jar or the folder has no classes to compare.
    """
    with ExitStack() as stack:
        own = _open([jar], stack)
        spark = _Classes(_open(sorted(spark_jars.glob("*.jar")), stack))
        if not own or not spark.has_spark:
            return None
        used: dict[str, set[Member]] = {}
        for archive in own:
            for name in archive.namelist():
                if name.endswith(".class"):
                    for member in used_members(archive.read(name), _SPARK):
                        used.setdefault(member.owner, set()).add(member)
        own_names = {name for archive in own for name in archive.namelist()}
        # Apportion has classes in Spark's packages.
        checked = sorted(name for name in used if f"{name}.class" not in own_names)
        missing = {}
        for name in checked:
            lacking = sorted(member.name for member in used[name] if not spark.has(member))
            if lacking or spark.find(name) is None:
                is_missing = spark.find(name) is None
                missing[_dotted(name)] = [] if is_missing else lacking
        return Comparison(list(map(_dotted, checked)), missing)


class _Classes:
    """The classes in jars, parsed when they are needed."""

    def __init__(self, archives: list[zipfile.ZipFile]) -> None:
        self._places = {
            name: archive for archive in reversed(archives) for name in archive.namelist()
        }
        self._parsed: dict[str, ClassFile | None] = {}
        self.has_spark = f"{_SPARK}SparkConf.class" in self._places

    def find(self, name: str) -> ClassFile | None:
        if name not in self._parsed:
            file = f"{name}.class"
            archive = self._places.get(file)
            self._parsed[name] = parse(archive.read(file)) if archive else None
        return self._parsed[name]

    def has(self, member: Member) -> bool:
        """Return whether a class or one of its parents has a member.

        Parents outside the jars, such as those of Java, have every member.
        """
        waiting, seen = [member.owner], set()
        while waiting:
            name = waiting.pop()
            if name in seen or name == "java/lang/Object":
                continue
            seen.add(name)
            found = self.find(name)
            if found is None:
                return name != member.owner
            if (member.name, member.type) in found.members:
                return True
            waiting += found.parents
        return member.name in _OF_EVERY_OBJECT


_OF_EVERY_OBJECT = ("getClass", "hashCode", "equals", "toString", "notify", "notifyAll", "wait",
                    "clone", "finalize")  # fmt: skip


def _open(jars: list[Path], stack: ExitStack) -> list[zipfile.ZipFile]:
    archives = []
    for jar in jars:
        try:
            archives.append(stack.enter_context(zipfile.ZipFile(jar)))
        except (OSError, zipfile.BadZipFile):
            continue
    return archives


def _dotted(name: str) -> str:
    return name.replace("/", ".")
