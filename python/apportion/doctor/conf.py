"""Conf that Spark would start with, from files and variables, and the source of each entry."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from apportion._spark import jars, jvm
from apportion.doctor import properties
from apportion.errors import ApportionError
from apportion.redaction import REDACTION, shown_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"

# Options of spark-submit that set a conf.
_OPTIONS = {
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--driver-class-path": "spark.driver.extraClassPath",
}


class Entry(NamedTuple):
    """Entry of Spark's conf, and the place that sets it."""

    key: str
    value: str
    source: str


class Conf:
    """Entries by key. If a key has several entries, the first one counts.

    Spark's sources come in order of precedence, so the first entry is the value that Spark uses.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            self._entries.setdefault(entry.key, entry)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def find(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def listed(self, key: str, separator: str = ",") -> list[str]:
        """Return the parts of a value that is a list, or an empty list if the key is not set."""
        entry = self.find(key)
        parts = entry.value.split(separator) if entry else []
        return [part.strip() for part in parts if part.strip()]

    def shown(self, key: str) -> str:
        """Return the entry of a key for a finding, without the value of a secret."""
        entry = self.find(key)
        if entry is None:
            return f"{key} is not set"
        pattern = self.find(REDACTION)
        value = shown_value(key, entry.value, pattern.value if pattern else None)
        return f"{key}={value} ({entry.source})"

    def is_false(self, key: str) -> bool:
        entry = self.find(key)
        return entry is not None and entry.value.strip().lower() == "false"


def from_session(spark: SparkSession) -> Conf:
    """Return the conf of a session. On Spark Connect, it is the server's conf."""
    return Conf(Entry(key, value, "the session") for key, value in jvm.session_conf(spark).items())


def read(given: Mapping[str, str]) -> Conf:
    """Return the conf of a program started here: `given`, then Spark's own sources.

    Spark's sources are PYSPARK_SUBMIT_ARGS, then its properties file, or else spark-defaults.conf.

    Raises `ApportionError` if PYSPARK_SUBMIT_ARGS is not a valid command line.
    """
    entries = [Entry(key, value, "--conf") for key, value in given.items()]
    arguments = submit_arguments()
    # Spark uses the last value of an option, and these two rather than --conf.
    lists = ("--jars", "--packages")
    submitted = reversed([*_submitted(arguments)])
    entries += sorted(submitted, key=lambda entry: not entry.source.endswith(lists))
    file = _properties_file(arguments)
    if file and file.is_file():
        # Java uses the last entry of a repeated key.
        for key, value, line in reversed(properties.read(file)):
            entries.append(Entry(key, value, f"{file}, line {line}"))
    return Conf(entries)


def submit_arguments() -> list[str]:
    """Return the words of PYSPARK_SUBMIT_ARGS, or an empty list if it is not set."""
    try:
        return shlex.split(os.environ.get(SUBMIT_ARGS, ""))
    except ValueError as error:
        raise ApportionError(f"{SUBMIT_ARGS} is not a valid command line: {error}") from None


def _options(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the spark-submit options with a value: `--option value` or `--option=value`."""
    option = ""
    for argument in arguments:
        if option:
            yield option, argument
            option = ""
        elif argument.startswith("--") and "=" in argument:
            name, _, value = argument.partition("=")
            yield name, value
        elif argument in (*_OPTIONS, "--conf", "-c", "--properties-file"):
            option = argument


def _submitted(arguments: Iterable[str]) -> Iterator[Entry]:
    for option, value in _options(arguments):
        if option in ("--conf", "-c"):
            key, _, value = value.partition("=")
            yield Entry(key, value, f"{SUBMIT_ARGS}, {option}")
        elif option in _OPTIONS:
            yield Entry(_OPTIONS[option], value, f"{SUBMIT_ARGS}, {option}")


def _properties_file(arguments: Iterable[str]) -> Path | None:
    if named := dict(_options(arguments)).get("--properties-file"):
        return Path(named)
    if folder := os.environ.get("SPARK_CONF_DIR"):
        return Path(folder, "spark-defaults.conf")
    try:
        return jars.spark_home() / "conf" / "spark-defaults.conf"
    except ApportionError:
        return None
