"""Spark sessions with Apportion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from apportion._spark import jars
from apportion.errors import SettingError
from apportion.settings import Settings, check_static

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typing_extensions import Unpack

    from apportion.keywords import SettingsKeywords


def configure(
    builder: SparkSession.Builder,
    settings: Settings | None = None,
    **keywords: Unpack[SettingsKeywords],
) -> SparkSession.Builder:
    """Add Apportion to the sessions of `builder`, and return the same builder.

    Pass settings as `Settings`, as keywords (`data_volume_per_task="64MB"`), or both; keywords take
    precedence. Your own values of `spark.jars` and `spark.sql.extensions` are kept. They can come
    from the builder (before or after this call), submit arguments or spark-defaults.conf.

    Raises `ApportionError` if no jar fits the installed Spark, or if a session runs already without
    the extension. Raises `SettingError` for a setting or value that is not allowed.
    `builder.getOrCreate()` raises `ApportionError` for a running session or a Spark Connect server
    without the extension. It raises `SettingError` if Spark runs already and a setting can only be
    set when Spark starts.
    """
    from apportion._spark.builder import ApportionBuilder, is_client, is_running

    if settings is not None and not isinstance(settings, Settings):
        raise SettingError(
            f"settings is {settings!r}: allowed is apportion.Settings(...), or settings as keywords"
        )
    conf = (settings or Settings()).merged(**keywords).to_conf()
    if not is_client(builder):
        jars.find()
        is_running()
    for key, value in conf.items():
        builder.config(key, value)
    builder.__class__ = ApportionBuilder
    return builder


def get_or_create(**settings: Unpack[SettingsKeywords]) -> SparkSession:
    """Return the running session or a new one, with Apportion and these settings.

    Raises the errors of `configure` and its builder, and `ApportionError` if pyspark is not
    installed.
    """
    jars.pyspark_folder()
    from pyspark.sql import SparkSession

    return configure(SparkSession.builder, **settings).getOrCreate()


@contextmanager
def confs(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Set confs of the session for the block, then restore the previous values.

    Raises `SettingError` for a setting that can only be set when Spark starts, and Spark's own
    error for a conf that Spark rejects. In both cases no conf stays set.
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
