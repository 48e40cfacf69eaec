"""Benchmark results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.text import Text

from apportion._util.tables import FittedTable
from apportion._util.units import size_text
from apportion.bench.plans import FIELDS, is_worse
from apportion.bench.results import QueryResult, Results
from apportion.bench.summary import VariantSummary, ratio, summarise, typical

_FASTER, _SLOWER = "green", "red"
_FAILED = "failed"


def title(results: Results) -> str:
    """Return one line with the suite, the rounds and the environment."""
    of, on = results.conditions, results.environment
    scale = f" at scale {of.scale:g}" if of.scale is not None else ""
    where = f"Spark {on.spark}, {on.master}, {on.cores} cores"
    rounds = "1 round" if of.rounds == 1 else f"median of {of.rounds} rounds"
    return f"{of.suite}{scale}: time of {of.variants[0].name} / of each variant, {rounds} ({where})"


def queries_table(results: Results) -> FittedTable:
    """Return a table with a row for each query: the baseline's time, and each variant's ratio."""
    baseline, *others = [variant.name for variant in results.conditions.variants]
    tasks = f"Tasks: {baseline} → {', '.join(others)}"
    columns = ["Query", f"{baseline}, s", *others, tasks]
    table = FittedTable(title(results), columns, right=range(len(columns)))
    for name, result in results.queries.items():
        table.add_row(
            name,
            _seconds(result, baseline),
            *(_ratio(results, name, variant) for variant in others),
            f"{_tasks(result, baseline)} → "
            + ", ".join(_tasks(result, variant) for variant in others),
        )
    return table


def variants_table(summaries: Iterable[VariantSummary]) -> FittedTable:
    """Return a table with a row for each variant over all queries, the baseline first."""
    columns = (
        "Variant", "Times faster (95 %)", "Worst query", "Time, s", "Tasks, s", "Tasks",
        "Reduce tasks", "Blocks written", "Largest / mean", "Spilled", "Failed", "Limited",
    )  # fmt: skip
    title = "All queries that ran under every variant"
    table = FittedTable(title, columns, right=range(1, len(columns)))
    for number, summary in enumerate(summaries):
        skew = summary.largest_to_mean
        table.add_row(
            summary.variant,
            str(summary.faster) if number else "baseline",
            f"{summary.worst_ratio:.2f} ({summary.worst_query})" if number else "",
            f"{summary.seconds:.1f}",
            f"{summary.task_seconds:.1f}",
            f"{summary.tasks:,}",
            f"{summary.reduce_tasks:,}",
            f"{summary.blocks_written:,}",
            f"{skew:.2f}" if skew is not None else "no shuffle",
            size_text(summary.spilled_bytes),
            str(summary.failed),
            _limited(summary),
        )
    return table


def plans_table(results: Results) -> FittedTable:
    """Return a table of plan counts, with a row for each query and variant.

    A cell has the baseline's count too if it is different.
    """
    baseline, *others = [variant.name for variant in results.conditions.variants]
    columns = ["Query", "Variant", *FIELDS.values()]
    right = {0, *range(2, len(columns))}
    table = FittedTable(f"Plans: {baseline} → variant", columns, right)
    for name, result in results.queries.items():
        for variant in others:
            if baseline in result.plans and variant in result.plans:
                before, after = result.plans[baseline], result.plans[variant]
                cells = [_change(getattr(before, key), getattr(after, key), key) for key in FIELDS]
                table.add_row(name, variant, *cells)
    return table


def memory_table(results: Mapping[str, Results]) -> FittedTable:
    """Return a table with a row for each size of memory and each variant.

    Sums are over the queries that ran under all variants, and ratios are of the same memory.
    """
    columns = (
        "Memory", "Variant", "Spilled to disk", "Failed", "Times faster (95 %)", "Time, s", "Tasks",
    )  # fmt: skip
    title = "Memory of an executor, and what fits in it"
    table = FittedTable(title, columns, right=range(2, len(columns)))
    for memory, measured in results.items():
        for place, summary in enumerate(summarise(measured)):
            if not place and table.rows:
                table.add_section()
            table.add_row(
                "" if place else memory,
                summary.variant,
                size_text(summary.spilled_bytes),
                str(summary.failed),
                str(summary.faster) if place else "baseline",
                f"{summary.seconds:.1f}",
                f"{summary.tasks:,}",
            )
    return table


def _change(before: int, after: int, key: str) -> Text:
    text = f"{before:,}" if before == after else f"{before:,} → {after:,}"
    return Text(text, _SLOWER if is_worse(key, before, after) else "")


def _limited(summary: VariantSummary) -> str:
    if summary.limit_factor is None:
        return "0"
    return f"{summary.limited_decisions:,} (up to {summary.limit_factor:.1f})"


def problems(results: Results) -> Iterator[str]:
    """Yield a line for each query and variant that failed or returned a different result."""
    for name, result in results.queries.items():
        for variant, error in result.failures.items():
            yield f"query {name} failed under {variant}: {error}"
        for variant in result.different:
            yield f"query {name} returns a different result under {variant}"


def _ratio(results: Results, query: str, variant: str) -> Text:
    estimate = ratio(results, query, variant)
    if estimate is None:
        return Text(_FAILED if variant in results.queries[query].failures else "-")
    style = _FASTER if estimate.is_faster else _SLOWER if estimate.is_slower else ""
    return Text(str(estimate), style)


def _seconds(result: QueryResult, variant: str) -> str:
    if variant in result.failures:
        return _FAILED
    if variant not in result.runs:
        return "-"
    return f"{typical(result, variant, lambda run: run.seconds):.2f}"


def _tasks(result: QueryResult, variant: str) -> str:
    if variant in result.failures:
        return _FAILED
    if variant not in result.runs:
        return "-"
    return f"{typical(result, variant, lambda run: run.tasks):,}"
