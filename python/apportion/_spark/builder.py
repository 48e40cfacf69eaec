"""The session builder that puts Apportion's jar and extension beside what the user set.

Apart from `session`, because it imports pyspark.
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
    """What `configure` turns a builder into; its options stay as the user sets them."""

    def getOrCreate(self) -> SparkSession:  # noqa: N802
        return self._with_extension(super().getOrCreate)

    def create(self) -> SparkSession:
        return self._with_extension(super().create)

    def _with_extension(self, make_session: Callable[[], SparkSession]) -> SparkSession:
        if is_client(self._options):
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
        # Spark starts with the user's options alone and tells what else it was given; an option
        # set here would hide that.
        jvm.start(options)
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
    """Whether a session with the extension runs already.

    Raises `ApportionError` when one without it does: Spark takes extensions only when it starts.
    """
    context = jvm.active_context()
    if context is None:
        return False
    extensions = context.getConf().get(_EXTENSIONS, "").split(",")
    if jvm.EXTENSION not in map(str.strip, extensions):
        raise jvm.missing_extension()
    return True


def is_client(options: dict[str, str]) -> bool:
    """Whether a session with these options is a client of a Spark Connect server elsewhere."""
    remote = options.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")
    return remote.startswith("sc://")


def merged(ours: str, values: str) -> str:
    """Return comma-separated `values` with `ours` among them: in front, if it is not there yet.

    Some extensions replace exchanges; in front of them ours still sees Spark's.

    >>> merged("c.jar", "a.jar, b.jar")
    'c.jar,a.jar,b.jar'
    """
    entries = [value.strip() for value in values.split(",") if value.strip()]
    return ",".join(entries if ours in entries else [ours, *entries])
