"""Checks of a running session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion.decision import decisions_taken
from apportion.doctor.finding import Finding
from apportion.errors import ApportionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY = "SELECT id % 7 AS key, count(*) AS rows FROM range(0, 1000, 1, 2) GROUP BY id % 7"


def decides(spark: SparkSession) -> Iterator[Finding]:
    """Run a small query with a shuffle, and check that Apportion makes a decision."""
    looked_at = f"a query on Spark {spark.version}"
    try:
        reason = _decided(spark)
    except ApportionError as error:
        yield Finding("Session", looked_at, "problem", str(error))
        return
    if reason:
        yield Finding("Session", f"{looked_at}: {reason}")
        return
    yield Finding(
        "Session",
        f"{looked_at}: no decision",
        "problem",
        "Apportion is loaded but made no decision. Search Spark's log for 'which goes on with "
        "Spark's own plan' to find the reason",
    )


def loaded_from(spark: SparkSession) -> Iterator[Finding]:
    """Check that only one jar has the classes of Apportion."""
    if not jvm.is_classic(spark):
        return
    places = jvm.extension_places(spark)
    if len(places) > 1:
        yield Finding(
            "Loaded from",
            "; ".join(places),
            "problem",
            "several jars contain Apportion, and the JVM loads classes from the first jar that it "
            "finds: keep one jar, and remove the others",
        )
    elif places:
        yield Finding("Loaded from", places[0])


def _decided(spark: SparkSession) -> str | None:
    """Return the reason of a decision on a new query, or None if there is no decision."""
    with decisions_taken(spark) as taken, jvm.short_errors():
        spark.sql(_QUERY).collect()
    return f"{taken[-1].operator}: {taken[-1].reason}" if taken else None
