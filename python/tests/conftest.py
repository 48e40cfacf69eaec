from __future__ import annotations

import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pyspark import SparkContext
from pyspark.sql import SparkSession

from apportion._spark import jars

# pytest-xdist sets it for its workers, and tables would be folded to that width.
os.environ.pop("COLUMNS", None)

# A shuffle of Spark's 200 partitions opens hundreds of files, which is faster in memory.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= 4 << 30:
    _local_dir = tempfile.TemporaryDirectory(dir=_MEMORY, prefix="apportion-")
    os.environ.setdefault("SPARK_LOCAL_DIRS", _local_dir.name)

# For a change of code that properties describe: pytest --hypothesis-profile=many.
settings.register_profile("many", max_examples=10_000)


@pytest.fixture(scope="session")
def spark(apportion_spark: SparkSession) -> SparkSession:
    """The session with Apportion that the SQL golden tests use too: two cores, no UI, UTC.

    A test that sets or reads what belongs to a session (confs, views, decisions) works in
    `spark.newSession()`.
    """
    return apportion_spark


@pytest.fixture(autouse=True)
def no_rule_fails() -> Iterator[None]:
    """Fail a test in which a rule failed, although its query went on with Spark's plan."""
    context = SparkContext._active_spark_context
    counter = failures_in(context)
    before = counter and counter.getCount()
    yield
    if counter and context is SparkContext._active_spark_context:
        assert counter.getCount() == before, "a rule failed, and Spark's log says which"


@functools.lru_cache(maxsize=1)
def failures_in(context: SparkContext | None) -> Any:
    """Return the counter of failed rules; None for an application without Apportion."""
    if context is None or "apportion" not in (context.getConf().get("spark.sql.extensions") or ""):
        return None
    jvm: Any = context._jvm
    metrics = jvm.org.apache.spark.apportion.DecisionMetrics.ofActive(context._jsc.sc()).get()
    return metrics.metricRegistry().counter("rules.failures")


@pytest.fixture
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For a test that starts a Spark Connect server; skipped where its packages are missing."""
    if not list(jars.spark_home().glob("jars/spark-connect_*.jar")):
        pytest.skip("Spark 3.5 has the server in a package of its own")
    for package in ("grpc", "pandas", "pyarrow"):
        pytest.importorskip(package, reason="pyspark[connect] is not installed")
    # All of them listen on one port: one at a time, whatever worker of pytest-xdist it is of.
    with (tmp_path_factory.getbasetemp().parent / "connect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
