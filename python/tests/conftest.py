from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

# pytest-xdist sets it for its workers, and tables would be folded to that width.
os.environ.pop("COLUMNS", None)


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
    for package in ("grpc", "pandas", "pyarrow"):
        pytest.importorskip(package, reason="pyspark[connect] is not installed")
