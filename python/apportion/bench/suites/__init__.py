"""What can be measured: queries, and the confs that they are made for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from apportion.bench.suites import skew, tpc
from apportion.errors import ApportionError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GENERATED = ("tpch", "tpcds", "skew")

# With Spark's 1 GB, queries of scale 1 fail for want of memory, or mostly collect garbage.
_MEMORY = {"spark.driver.memory": "4g"}


@dataclasses.dataclass(frozen=True)
class Suite:
    """Queries by name, in the order in which they run."""

    name: str
    queries: dict[str, str]
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    """Confs of the session, unless the user sets them."""
    scale: float | None = None
    """The size of generated tables; None where the queries run on tables of the user's."""

    def only(self, names: str) -> Suite:
        """Return the suite with only the queries of these names or numbers, comma-separated.

        Numbers count the suite's queries from 1. Raises `ApportionError` for an unknown query.
        """
        found = [self._find(name.strip()) for name in names.split(",")]
        queries = {name: sql for name, sql in self.queries.items() if name in found}
        return dataclasses.replace(self, queries=queries)

    def _find(self, name: str) -> str:
        known = list(self.queries)
        if name in known:
            return name
        if name.isdecimal() and 1 <= int(name) <= len(known):
            return known[int(name) - 1]
        raise ApportionError(
            f"{self.name} has no query {name!r}.{did_you_mean(name, known)} "
            f"It has {', '.join(known)}, or by number 1 to {len(known)}"
        )


def generated(name: str, scale: float) -> Suite:
    """Return the suite of one of the names in `GENERATED`.

    Raises `ApportionError` for a scale that is not above 0, and when DuckDB, which has the TPC
    queries, is not installed.
    """
    tpc.check_scale(scale)
    match name:
        case "tpch" | "tpcds":
            texts = tpc.queries(name)
            return Suite(name, {str(number): sql for number, sql in texts.items()}, _MEMORY, scale)
        case "skew":
            return Suite(name, skew.queries(), _MEMORY | skew.CONF, scale)
    raise ApportionError(f"unknown suite {name!r}: {', '.join(GENERATED)} are known")


def generate_tables(spark: SparkSession, suite: Suite, directory: Path) -> Path:
    """Return the folder in `directory` with a generated suite's tables, made if not there yet."""
    if suite.scale is not None:
        match suite.name:
            case "tpch" | "tpcds" as benchmark:
                return tpc.generate(benchmark, suite.scale, directory)
            case "skew":
                return skew.generate(spark, suite.scale, directory)
    raise ApportionError(f"the tables of {suite.name} are not generated")
