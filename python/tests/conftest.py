from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from apportion import jars


@pytest.fixture(scope="session")
def spark(apportion_spark: SparkSession) -> SparkSession:
    """The session with Apportion that the SQL golden tests use too: two cores, no UI, UTC.

    A test that sets or reads what belongs to a session (confs, views, decisions) works in
    `spark.newSession()`.
    """
    return apportion_spark


@pytest.fixture
def connect() -> None:
    """Skips a test of Spark Connect where its packages are not installed."""
    if not list(jars.spark_home().glob("jars/spark-connect_*.jar")):
        pytest.skip("Spark 3.5 has the server in a package of its own")
    for package in ("grpc", "pandas", "pyarrow"):
        pytest.importorskip(package, reason="pyspark[connect] is not installed")
