from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(apportion_spark: SparkSession) -> SparkSession:
    """The session with Apportion that the SQL golden tests use too: two cores, no UI, UTC.

    A test that sets or reads what belongs to a session (confs, views, decisions) works in
    `spark.newSession()`.
    """
    return apportion_spark
