"""Starts Spark for a command, without log output and with the settings of the command line."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apportion._spark import jars, jvm
from apportion.cli.support.progress import waiting
from apportion.errors import ApportionError, QueryError
from apportion.session import configure
from apportion.settings import parse_assignments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAST_LINES = 5

Master = Annotated[
    str | None,
    typer.Option(help="Where Spark runs, such as local[4]. Default: by its conf."),
]


def set_option(help: str) -> Any:
    """Return the option for settings, which can be given more than once."""
    return typer.Option("--set", "--conf", metavar="NAME=VALUE", help=f"{help} Repeatable.")


Assignments = Annotated[
    list[str] | None,
    set_option("Setting, such as data_volume_per_task=16MB or spark.sql.shuffle.partitions=64."),
]


def start(master: str | None, assignments: Iterable[str]) -> SparkSession:
    """Start Spark with Apportion.

    Raises `SettingError` for an assignment that is not allowed. If Spark does not start, raises
    `ApportionError` with the last lines of Spark's output.
    """
    conf = parse_assignments(assignments)
    jars.find()
    jars.pyspark_folder()  # Raises a helpful error if pyspark is not installed.
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    from apportion._spark.builder import is_client

    builder = SparkSession.builder.appName("apportion").config("spark.ui.enabled", "false")
    if master:
        builder.master(master)
    for key, value in conf.items():
        builder.config(key, value)
    configure(builder)
    if is_client(builder):
        raise ApportionError(
            "SPARK_REMOTE names a Spark Connect server, but the commands start their own Spark: "
            "unset SPARK_REMOTE"
        )
    # Spark's log goes to a temporary file. Its last lines are shown if Spark does not start.
    with tempfile.TemporaryFile() as log, waiting("Starting Spark"):
        try:
            with jvm.short_errors():
                jvm.start(builder, log)
                return builder.getOrCreate()
        except QueryError as error:
            # pyspark raises PySparkRuntimeError if no JVM came up. Any other cause is an error that
            # Java reports, for example about a conf.
            if not isinstance(error.__cause__, PySparkRuntimeError):
                raise ApportionError(f"Spark did not start: {error}") from error
            log.seek(0)
            lines = log.read().decode(errors="replace").splitlines()
            shown = [line for line in lines if not line.lstrip().startswith("at ")][-_LAST_LINES:]
            needs = f"It needs Java {jars.oldest_java()} or later"
            raise ApportionError(
                "\n".join([f"Spark did not start. {needs}. Last lines of its output:", *shown])
            ) from error
