"""Benchmark suites: queries, and the confs that they need."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from apportion.bench.suites import skew, tpc
from apportion.errors import ApportionError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GENERATED = ("tpch", "tpcds", "skew")

# With Spark's default of 1 GB, queries at scale 1 run out of memory or spend most time in GC.
_MEMORY = {"spark.driver.memory": "4g"}


@dataclasses.dataclass(frozen=True)
class Suite:
    """Queries by name, in the order of execution."""

    name: str
    queries: dict[str, str]
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    """Default confs of the session. The user can override them."""
    scale: float | None = None
    """Size of the generated tables; None if the queries run on the user's tables."""

    def only(self, names: str) -> Suite:
        """Return the suite with only the queries in `names`: names or numbers, comma-separated.

        Numbers start from 1. Raises `ApportionError` for an unknown query.
        """
        chosen = [self._find(name.strip()) for name in names.split(",")]
        queries = {name: sql for name, sql in self.queries.items() if name in chosen}
        return dataclasses.replace(self, queries=queries)

    def _find(self, name: str) -> str:
        known = list(self.queries)
        if name in known:
            return name
        if name.isdecimal() and 1 <= int(name) <= len(known):
            return known[int(name) - 1]
        raise ApportionError(
            f"{self.name} has no query {name!r}.{did_you_mean(name, known)} "
            f"Queries: {', '.join(known)}, or numbers 1 to {len(known)}"
        )


def generated(name: str, scale: float) -> Suite:
    """Return the suite with a name from `GENERATED`.

    Raises `ApportionError` unless the scale is above 0, and if DuckDB is needed for the TPC queries
    but not installed.
    """
    tpc.check_scale(scale)
    match name:
        case "tpch" | "tpcds":
            texts = tpc.queries(name)
            return Suite(name, {str(number): sql for number, sql in texts.items()}, _MEMORY, scale)
        case "skew":
            return Suite(name, skew.queries(), _MEMORY | skew.CONF, scale)
    raise ApportionError(f"unknown suite {name!r}: allowed are {', '.join(GENERATED)}")


def generate_tables(spark: SparkSession, suite: Suite, directory: Path) -> Path:
    """Return the folder of a suite's tables in `directory`. Generate them if they do not exist."""
    if suite.scale is not None:
        match suite.name:
            case "tpch" | "tpcds" as benchmark:
                return tpc.generate(benchmark, suite.scale, directory)
            case "skew":
                return skew.generate(spark, suite.scale, directory)
    raise ApportionError(f"the tables of {suite.name} are not generated")
