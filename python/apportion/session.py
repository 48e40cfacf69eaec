"""Sessions with Apportion in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from apportion._spark import jars
from apportion.settings import Settings, check_static

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def configure(
    builder: SparkSession.Builder, settings: Settings | None = None, **keywords: Any
) -> SparkSession.Builder:
    """Make the sessions of `builder` run with Apportion, and return the same builder.

    Settings are given as `Settings`, as keywords (`data_volume_per_task="64MB"`), or both, where
    keywords win. What the user sets for `spark.jars` and `spark.sql.extensions` is kept, wherever
    it comes from: the builder, before or after this call, submit arguments, spark-defaults.conf.

    Raises `ApportionError` when no jar fits the Spark that will run or a session without the
    extension runs already, and `SettingError` for a setting that is not allowed.
    `builder.getOrCreate()` raises `ApportionError` for such a session too, and for a Spark Connect
    server without the extension. It raises `SettingError` for a setting that is fixed when Spark
    starts, if Spark runs already.
    """
    from apportion._spark.builder import ApportionBuilder, is_client, is_running

    conf = (settings or Settings()).merged(**keywords).to_conf()
    if not is_client(builder._options):
        jars.find()
        is_running()
    for key, value in conf.items():
        builder.config(key, value)
    builder.__class__ = ApportionBuilder
    return builder


def get_or_create(**settings: Any) -> SparkSession:
    """Return the running session, or a new one, with Apportion and these settings.

    Raises as `configure` and its builder do, and `ApportionError` when there is no pyspark.
    """
    jars.pyspark_folder()
    from pyspark.sql import SparkSession

    return configure(SparkSession.builder, **settings).getOrCreate()


@contextmanager
def confs(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set confs of the session for the block, and put back what was there before.

    Raises what Spark raises for a conf that it refuses, and `SettingError` for a setting that is
    fixed when Spark starts; then none of them is set.
    """
    check_static(values, {})
    before: dict[str, str | None] = {}
    try:
        for key, value in values.items():
            old = spark.conf.get(key, None)
            spark.conf.set(key, value)
            before[key] = old
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
