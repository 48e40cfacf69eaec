"""Checks that find problems with an installation or a session, for `apportion doctor`.

    from apportion import doctor

    for finding in doctor.examine_session(spark):
        print(finding.verdict, finding.check, finding.advice)

A check examines one thing and yields findings. The checks are in the modules `installation`
(Python, Java, Spark, the jar), `jar_files` (jars in the conf), `configuration`
(Spark's conf), `other_extensions`, `shuffle_services`, and `session` (a running session). `conf`
reads the conf that Spark would start with. `server` connects to a Spark Connect server.
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
    shuffle_services,
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
    other_extensions.compatibility,
    shuffle_services.restrictions,
)


def examine(given: Mapping[str, str] | None = None) -> list[Finding]:
    """Examine the installation and the conf of a program started here, without starting Spark.

    `given` is the program's own conf. PYSPARK_SUBMIT_ARGS and spark-defaults.conf are read too.
    """
    return _run((*_INSTALLATION, *_CONFIGURATION), Setup(conf.read(given or {})))


def examine_session(spark: SparkSession) -> list[Finding]:
    """Examine the conf of a running session, and whether Apportion makes decisions in it.

    Works on Spark Connect too.
    """
    return [*_run(_CONFIGURATION, Setup(conf.from_session(spark), spark)), *prove(spark)]


def examine_server(url: str) -> list[Finding]:
    """Examine a Spark Connect server, such as `sc://host`.

    Raises `ApportionError` if `url` is not a Spark Connect URL.
    """
    server.address(url)
    try:
        with jvm.short_errors():
            return examine_session(server.connect(url))
    except ApportionError as error:
        return [Finding("Server", url, "problem", str(error))]


def prove(spark: SparkSession) -> list[Finding]:
    """Run a query in a session, and check that Apportion makes a decision for it."""
    return [*session.decides(spark), *session.loaded_from(spark)]


def _run(checks: Iterable[Check], setup: Setup) -> list[Finding]:
    return [finding for check in checks for finding in check(setup)]
