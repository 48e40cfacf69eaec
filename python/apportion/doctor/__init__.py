"""What keeps Apportion from deciding: `apportion doctor`.

    from apportion import doctor

    for finding in doctor.examine_session(spark):
        print(finding.verdict, finding.check, finding.advice)

A check looks at one thing and yields what it finds. The modules, by what their checks look at:
`installation` (Python, Java, Spark, the jar), `jar_files` (jars that Spark is given),
`configuration` (Spark's conf), `neighbours` (other extensions), `session` (a session that runs).
`conf` reads the conf that Spark would start with, `server` finds a Spark Connect server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion.doctor import (
    conf,
    configuration,
    installation,
    jar_files,
    other_extensions,
    server,
    session,
)
from apportion.doctor.finding import Check, Finding, Setup, Verdict
from apportion.errors import ApportionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Finding", "Verdict", "examine", "examine_server", "examine_session", "prove"]

_INSTALLATION: tuple[Check, ...] = (
    installation.python,
    installation.java,
    installation.spark,
    installation.jar,
    jar_files.fits,
    jar_files.copies,
)
_CONFIGURATION: tuple[Check, ...] = (
    configuration.arguments,
    configuration.extension,
    configuration.adaptive,
    configuration.coalescing,
    configuration.settings,
    other_extensions.neighbours,
)
_SESSION: tuple[Check, ...] = (session.decides, session.loaded_from)


def examine(given: Mapping[str, str] | None = None) -> list[Finding]:
    """Examine what a program started from here would find, without starting Spark.

    `given` is conf that it is started with, beside PYSPARK_SUBMIT_ARGS and spark-defaults.conf.
    """
    return _run((*_INSTALLATION, *_CONFIGURATION), Setup(conf.read(given or {})))


def examine_session(spark: SparkSession) -> list[Finding]:
    """Examine a session that runs, also a Spark Connect client's: its conf, and what it decides."""
    return [*_run(_CONFIGURATION, Setup(conf.of_session(spark), spark)), *prove(spark)]


def examine_server(url: str) -> list[Finding]:
    """Examine a Spark Connect server, `sc://host`; raises `ApportionError` for another URL."""
    server.address(url)
    try:
        with jvm.short_errors():
            return examine_session(server.connect(url))
    except ApportionError as error:
        return [Finding("Server", url, "problem", str(error))]


def prove(spark: SparkSession) -> list[Finding]:
    """Run a query in a session, and look whether it is decided."""
    return _run(_SESSION, Setup(conf.of_session(spark), spark))


def _run(checks: Iterable[Check], setup: Setup) -> list[Finding]:
    return [finding for check in checks for finding in check(setup)]
