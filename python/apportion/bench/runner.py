"""Runs a query under each variant, alternating."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from apportion._spark import jvm
from apportion.bench.measure import job_group
from apportion.bench.plans import PlanCounts, count_plan
from apportion.bench.results import Conditions, QueryResult, Run
from apportion.bench.rows.digest import Digest, digest
from apportion.bench.rows.ties import without_ties
from apportion.bench.variants import Variant
from apportion.errors import ApportionError, QueryError, SparkEndedError
from apportion.session import confs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = TypeVar("_T")


def try_variants(spark: SparkSession, variants: Sequence[Variant]) -> None:
    """Raise `ApportionError` for a variant with a conf that cannot be set while Spark runs."""
    for variant in variants:
        for key, value in variant.conf.items():
            # Spark accepts unknown keys, and some keys that it reads only when it starts.
            if not key.startswith("spark.sql.") and not spark.conf.isModifiable(key):
                raise ApportionError(
                    f"variant {variant.name}: {key} cannot be set while Spark runs. Set it for all "
                    f"variants with --conf {key}={value}"
                )
        try:
            with jvm.short_errors(), confs(spark, variant.conf):
                pass
        except QueryError as error:
            raise ApportionError(f"variant {variant.name}: {error}") from error


def run_query(
    spark: SparkSession,
    sql: str,
    conditions: Conditions,
    failures: Mapping[str, str] | None = None,
) -> QueryResult:
    """Run the warm-ups and the measured rounds of a query under each variant.

    Each round starts with another variant. All rows are discarded. With `check`, an additional run
    before the warm-ups compares digests, and with `plans` another one counts operators. After a
    failure, the variant is skipped.
    Variants in `failures` have failed before. If the JVM ends, the result says so.
    """
    result = QueryResult(sql, failures=dict(failures or {}))
    try:
        _run_rounds(spark, result, conditions)
    except SparkEndedError:
        return dataclasses.replace(result, spark_ended=True)
    return result


def _run_rounds(spark: SparkSession, result: QueryResult, conditions: Conditions) -> None:
    sql, variants = result.sql, conditions.variants
    with jvm.short_errors():
        jvm.watch_stages(spark)
    if conditions.check or conditions.plans:
        _look(spark, result, conditions)
    for _ in range(conditions.warmups):
        for variant in variants:
            _attempt(spark, result, variant, lambda: _time(spark, sql))
    for number in range(conditions.rounds):
        for variant in rotated(variants, number):
            if run := _attempt(spark, result, variant, lambda: _measure(spark, sql)):
                result.runs.setdefault(variant.name, []).append(run)


def warm_up(spark: SparkSession, sql: Sequence[str], conditions: Conditions) -> None:
    """Run queries once under each variant, because a newly started JVM is slower.

    Failures are ignored here, also if the JVM ends. They are reported when a query is measured.
    """
    with suppress(SparkEndedError):
        for query in sql:
            result = QueryResult(query)
            for variant in conditions.variants:
                _attempt(spark, result, variant, partial(_time, spark, query))


def rotated(variants: Sequence[Variant], number: int) -> list[Variant]:
    """Return the variants in the order of round `number`, starting from 0."""
    first = number % len(variants)
    return [*variants[first:], *variants[:first]]


def _look(spark: SparkSession, result: QueryResult, conditions: Conditions) -> None:
    """Run the query under each variant to compare results, and to count plan operators."""

    def look() -> tuple[Digest | None, PlanCounts | None]:
        plan = None
        if conditions.plans:
            with job_group(spark) as group:
                frame = spark.sql(result.sql)
                jvm.execute(frame)
            plan = count_plan(spark, frame, group)
        sql = without_ties(spark, result.sql) if conditions.check else ""
        return digest(spark.sql(sql)) if sql else None, plan

    looks = {
        variant.name: digest_and_plan
        for variant in conditions.variants
        if (digest_and_plan := _attempt(spark, result, variant, look)) is not None
    }
    result.plans.update({name: plan for name, (_, plan) in looks.items() if plan is not None})
    expected, _ = looks.get(conditions.variants[0].name, (None, None))
    if expected is not None:
        result.different.extend(
            name for name, (found, _) in looks.items() if found and not expected.equals(found)
        )


def _attempt(
    spark: SparkSession, result: QueryResult, variant: Variant, action: Callable[[], _T]
) -> _T | None:
    """Return the result of `action` under the variant, or None if the query has failed."""
    if variant.name in result.failures:
        return None
    try:
        with jvm.short_errors(), confs(spark, variant.conf):
            return action()
    except (QueryError, SparkEndedError) as error:
        result.failures[variant.name] = str(error).splitlines()[0]
        if isinstance(error, SparkEndedError):
            raise
        return None


def _measure(spark: SparkSession, sql: str) -> Run:
    start = time.time()
    with job_group(spark) as group:
        seconds = _time(spark, sql)
    limited = limits(spark, start)
    stages = jvm.stage_metrics(spark, group)
    reduces = [stage for stage in stages if stage["readsShuffle"]]
    return Run(
        seconds=seconds,
        task_millis=sum(stage["taskMillis"] for stage in stages),
        tasks=sum(stage["tasks"] for stage in stages),
        reduce_tasks=sum(stage["tasks"] for stage in reduces),
        shuffle_bytes=sum(stage["shuffleReadBytes"] for stage in reduces),
        largest_task_bytes=max((stage["largestTaskBytes"] for stage in reduces), default=0),
        blocks_written=sum(stage["blocksWritten"] for stage in stages),
        spilled_bytes=sum(stage["spilledBytes"] for stage in stages),
        limited_decisions=len(limited),
        limit_factor=max(limited, default=None),
    )


def limits(spark: SparkSession, since: float) -> list[float]:
    """Return the tasks wanted per partition, for each decision limited by the partitions.

    Only decisions after `since`, in seconds since the epoch, count.
    """
    limited = spark.sql(
        "SELECT limited_by_partitions FROM apportion_decisions() "
        "WHERE decided_at >= timestamp_millis(:since) AND limited_by_partitions IS NOT NULL",
        {"since": int(since * 1000)},
    )
    return [row["limited_by_partitions"] for row in limited.collect()]


def _time(spark: SparkSession, sql: str) -> float:
    start = time.perf_counter()
    jvm.discard(spark.sql(sql))
    return time.perf_counter() - start
