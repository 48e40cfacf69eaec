"""Runs a query under each variant, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from apportion import _jvm
from apportion.bench.results import Conditions, QueryResult, Run
from apportion.bench.variants import Variant
from apportion.errors import ApportionError, QueryError
from apportion.measure import job_group, same_rows, without_ties
from apportion.session import confs

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_T = TypeVar("_T")


def try_variants(spark: SparkSession, variants: Sequence[Variant]) -> None:
    """Raise `ApportionError` for a variant with a conf that cannot be set while Spark runs."""
    for variant in variants:
        for key, value in variant.conf.items():
            # Spark takes keys that it does not know, and some that it reads only when it starts.
            if not key.startswith("spark.sql.") and not spark.conf.isModifiable(key):
                raise ApportionError(
                    f"variant {variant.name}: {key} cannot be set while Spark runs. Give it to all "
                    f"variants: --conf {key}={value}"
                )
        try:
            with _jvm.short_errors(), confs(spark, variant.conf):
                pass
        except QueryError as error:
            raise ApportionError(f"variant {variant.name}: {error}") from error


def run_query(spark: SparkSession, sql: str, conditions: Conditions) -> QueryResult:
    """Run a query under each variant, some times to warm up and then measured, once a round.

    Each round begins with another variant. What the query gives is thrown away; with `check` it is
    collected once before, and compared with what the baseline gives. A variant that the query
    fails under is left out from there on.
    """
    result, variants = QueryResult(sql), conditions.variants
    _jvm.watch_stages(spark)
    if conditions.check:
        _check(spark, result, variants)
    for _ in range(conditions.warmups):
        for variant in variants:
            _attempt(spark, result, variant, lambda: _time(spark, sql))
    for number in range(conditions.rounds):
        for variant in rotated(variants, number):
            if run := _attempt(spark, result, variant, lambda: _measure(spark, sql)):
                result.runs.setdefault(variant.name, []).append(run)
    return result


def warm_up(spark: SparkSession, sql: Sequence[str], conditions: Conditions) -> None:
    """Run queries once under each variant: a JVM that has just started is slower with all of them.

    Those that fail are left out; they are reported when they are measured.
    """
    for query in sql:
        result = QueryResult(query)
        for variant in conditions.variants:
            _attempt(spark, result, variant, partial(_time, spark, query))


def rotated(variants: Sequence[Variant], number: int) -> list[Variant]:
    """Return the variants in the order of round `number`, which counts from 0."""
    first = number % len(variants)
    return [*variants[first:], *variants[:first]]


def _check(spark: SparkSession, result: QueryResult, variants: Sequence[Variant]) -> None:
    def collect() -> list[Row]:
        return spark.sql(without_ties(spark, result.sql)).collect()

    expected = _attempt(spark, result, variants[0], collect)
    for variant in variants[1:]:
        rows = _attempt(spark, result, variant, collect)
        if expected is not None and rows is not None and not same_rows(expected, rows):
            result.different.append(variant.name)


def _attempt(
    spark: SparkSession, result: QueryResult, variant: Variant, action: Callable[[], _T]
) -> _T | None:
    """Return what `action` gives under the variant, or None where the query has failed."""
    if variant.name in result.failures:
        return None
    try:
        with _jvm.short_errors(), confs(spark, variant.conf):
            return action()
    except QueryError as error:
        result.failures[variant.name] = str(error).splitlines()[0]
        return None


def _measure(spark: SparkSession, sql: str) -> Run:
    with job_group(spark) as group:
        seconds = _time(spark, sql)
    stages = _jvm.stage_metrics(spark, group)
    reduces = [stage for stage in stages if stage["readsShuffle"]]
    return Run(
        seconds=seconds,
        task_millis=sum(stage["taskMillis"] for stage in stages),
        tasks=sum(stage["tasks"] for stage in stages),
        reduce_tasks=sum(stage["tasks"] for stage in reduces),
        shuffle_bytes=sum(stage["shuffleReadBytes"] for stage in reduces),
        largest_task_bytes=max((stage["largestTaskBytes"] for stage in reduces), default=0),
        blocks_written=sum(stage["blocksWritten"] for stage in stages),
    )


def _time(spark: SparkSession, sql: str) -> float:
    start = time.perf_counter()
    spark.sql(sql).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start
