"""Statistics of each variant over all queries."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable
from typing import Any

from apportion._util import ratios
from apportion._util.ratios import Estimate
from apportion.bench.results import QueryResult, Results, Run


@dataclasses.dataclass(frozen=True)
class VariantSummary:
    """Statistics of a variant, over the queries that ran under every variant.

    Totals are sums of the queries' medians over rounds.
    """

    variant: str
    failed: int
    """Number of all queries that failed."""
    faster: Estimate
    """Geometric mean of the queries' ratios; 1 for the baseline."""
    worst_query: str
    worst_ratio: float
    seconds: float
    task_seconds: float
    tasks: int
    reduce_tasks: int
    blocks_written: int
    largest_to_mean: float | None
    """Bytes of the largest reduce task divided by the mean: geometric mean over queries."""
    spilled_bytes: int
    limited_decisions: int
    """Number of decisions that wanted more tasks than the shuffle has partitions."""
    limit_factor: float | None
    """Most tasks wanted per partition in any run; None if no decision was limited."""


def ratio(results: Results, query: str, variant: str) -> Estimate | None:
    """Return a query's speedup over the baseline, or None if one of the two failed."""
    paired = _paired(results, results.queries[query], variant)
    return ratios.median(paired) if paired else None


def typical(result: QueryResult, variant: str, value: Callable[[Run], float]) -> float:
    """Return the median over rounds. Of two middle values it is the lower, so counts stay whole."""
    return statistics.median_low(value(run) for run in result.runs[variant])


def summarise(results: Results) -> list[VariantSummary]:
    """Return a summary for each variant, or none if no query ran under every variant."""
    if not _compared(results):
        return []
    return [_summary(results, variant.name) for variant in results.conditions.variants]


def as_json(results: Results, summaries: Iterable[VariantSummary]) -> dict[str, Any]:
    """Return the ratios of each query and the summaries as JSON data."""
    names = [variant.name for variant in results.conditions.variants]
    return {
        "queries": {
            query: {name: _as_dict(ratio(results, query, name)) for name in names}
            for query in results.queries
        },
        "variants": [dataclasses.asdict(summary) for summary in summaries],
    }


def _compared(results: Results) -> dict[str, QueryResult]:
    """Return the queries that ran under every variant."""
    return {name: query for name, query in results.queries.items() if not query.failures}


def _paired(results: Results, result: QueryResult, variant: str) -> list[float]:
    baseline = results.conditions.variants[0].name
    # After Spark has ended, variants can be without runs.
    if (
        result.failures.keys() & {baseline, variant}
        or not {baseline, variant} <= result.runs.keys()
    ):
        return []
    ours, theirs = ([run.seconds for run in result.runs[name]] for name in (baseline, variant))
    return ratios.of_rounds(ours, theirs)


def _summary(results: Results, variant: str) -> VariantSummary:
    queries = _compared(results)
    rounds = {name: _paired(results, query, variant) for name, query in queries.items()}
    medians = {name: statistics.median(paired) for name, paired in rounds.items()}
    worst = min(medians, key=medians.__getitem__)

    def total(value: Callable[[Run], float]) -> float:
        return sum(typical(query, variant, value) for query in queries.values())

    return VariantSummary(
        variant=variant,
        failed=sum(variant in query.failures for query in results.queries.values()),
        faster=ratios.geometric_mean(list(rounds.values())),
        worst_query=worst,
        worst_ratio=medians[worst],
        seconds=total(lambda run: run.seconds),
        task_seconds=total(lambda run: run.task_millis) / 1000,
        tasks=int(total(lambda run: run.tasks)),
        reduce_tasks=int(total(lambda run: run.reduce_tasks)),
        blocks_written=int(total(lambda run: run.blocks_written)),
        largest_to_mean=_largest_to_mean(query.runs[variant] for query in queries.values()),
        spilled_bytes=int(total(lambda run: run.spilled_bytes)),
        limited_decisions=int(total(lambda run: run.limited_decisions)),
        limit_factor=max(
            (
                run.limit_factor
                for query in queries.values()
                for run in query.runs[variant]
                if run.limit_factor is not None
            ),
            default=None,
        ),
    )


def _largest_to_mean(runs: Iterable[list[Run]]) -> float | None:
    medians = [
        statistics.median(run.largest_task_bytes / run.mean_task_bytes for run in rounds)
        for rounds in runs
        if all(run.reduce_tasks for run in rounds)
    ]
    return statistics.geometric_mean(medians) if medians else None


def _as_dict(estimate: Estimate | None) -> dict[str, Any] | None:
    return dataclasses.asdict(estimate) if estimate else None
