"""Environment of a benchmark."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
from typing import TYPE_CHECKING

from apportion._spark import jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclasses.dataclass(frozen=True)
class Environment:
    """Versions, master and cores of a benchmark run."""

    spark: str
    java: str
    apportion: str
    master: str
    cores: int
    """Number of cores of the driver's machine."""

    @classmethod
    def from_session(cls, spark: SparkSession) -> Environment:
        return cls(
            spark=spark.version,
            java=jvm.java_version(spark),
            apportion=importlib.metadata.version("apportion"),
            master=str(spark.sparkContext.master),
            cores=os.cpu_count() or 1,
        )
