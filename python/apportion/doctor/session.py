"""A session that runs: whether Apportion decides its queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion.decision import decisions_taken
from apportion.doctor.finding import Finding, Setup
from apportion.errors import ApportionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUERY = "SELECT id % 7 AS key, count(*) AS rows FROM range(0, 1000, 1, 2) GROUP BY id % 7"


def decides(setup: Setup) -> Iterator[Finding]:
    """Runs a small query that shuffles, and looks for its decision."""
    if setup.session is None:
        return
    looked_at = f"a query on Spark {setup.session.version}"
    try:
        reason = _decided(setup.session)
    except ApportionError as error:
        yield Finding("Session", looked_at, "problem", str(error))
        return
    if reason:
        yield Finding("Session", f"{looked_at}: {reason}")
        return
    yield Finding(
        "Session",
        f"{looked_at}: nothing was decided",
        "problem",
        "Apportion is loaded and did nothing. Spark's log may say why: look for 'which goes on "
        "with Spark's own plan'",
    )


def loaded_from(setup: Setup) -> Iterator[Finding]:
    """Whether the classes of Apportion are in one jar only."""
    if setup.session is None or not jvm.is_classic(setup.session):
        return
    places = jvm.extension_places(setup.session)
    if len(places) > 1:
        yield Finding(
            "Loaded from",
            "; ".join(places),
            "problem",
            "Apportion is there more than once, and the JVM takes classes from whichever comes "
            "first: keep one, and remove the others",
        )
    elif places:
        yield Finding("Loaded from", places[0])


def _decided(spark: SparkSession) -> str | None:
    """Return the reason of a decision that is taken now, None where none is."""
    with decisions_taken(spark) as taken, jvm.short_errors():
        spark.sql(_QUERY).collect()
    return f"{taken[-1].operator}: {taken[-1].reason}" if taken else None
