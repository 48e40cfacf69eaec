"""Session builder that adds Apportion's jar and extension to the user's options.

This module imports pyspark, so it is separate from `session`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from pyspark.sql import SparkSession

from apportion._spark import jars, jvm
from apportion.settings import check_static

_EXTENSIONS = "spark.sql.extensions"
_JARS = "spark.jars"


class ApportionBuilder(SparkSession.Builder):
    """Builder that `configure` returns. Its options stay as the user sets them."""

    def getOrCreate(self) -> SparkSession:  # noqa: N802
        return self._with_extension(super().getOrCreate)

    def create(self) -> SparkSession:
        return self._with_extension(super().create)

    def _with_extension(self, make_session: Callable[[], SparkSession]) -> SparkSession:
        if is_client(self):
            check_static(self._options, {})
            session = make_session()
            # Raises an error if the server was started without the extension.
            jvm.table(session, "apportion_decisions")
            return session
        if is_running():
            check_static(self._options, jvm.running_conf())
            return make_session()
        jar = jars.find()
        options = self._options
        # Start the JVM with the user's options only: an option set here would hide the values from
        # the command line and spark-defaults.conf, which are merged below.
        jvm.start(self)
        jvm.load(jar)
        ours = {_EXTENSIONS: jvm.EXTENSION, _JARS: jar.as_uri()}
        self._options = options | {
            key: merged(value, options.get(key) or jvm.submitted(key))
            for key, value in ours.items()
        }
        try:
            return make_session()
        finally:
            self._options = options


def is_running() -> bool:
    """Return whether Spark already runs with the extension in this process.

    Raises `ApportionError` if Spark runs without it: Spark loads extensions only when it starts.
    """
    conf = jvm.running_conf()
    if not conf:
        return False
    extensions = conf.get(_EXTENSIONS, "").split(",")
    if jvm.EXTENSION not in map(str.strip, extensions):
        raise jvm.missing_extension()
    return True


def is_client(builder: SparkSession.Builder) -> bool:
    """Return whether a builder connects to a remote Spark Connect server."""
    remote = builder._options.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")
    return remote.startswith("sc://")


def merged(ours: str, values: str) -> str:
    """Return the comma-separated `values` with `ours` added in front, unless it is already there.

    Some extensions replace exchanges. In front of them, ours still sees Spark's own exchanges.

    >>> merged("c.jar", "a.jar, b.jar")
    'c.jar,a.jar,b.jar'
    """
    entries = [value.strip() for value in values.split(",") if value.strip()]
    return ",".join(entries if ours in entries else [ours, *entries])
