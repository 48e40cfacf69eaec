"""Numbers of matched queries before and after, with ratios and totals."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from apportion._util import ratios
from apportion._util.ratios import Estimate
from apportion._util.units import first_line
from apportion.logs.eventlog import Unread
from apportion.logs.plain import plain
from apportion.logs.report.matching import Match, matches
from apportion.logs.report.runs import LogRuns, QueryRun

SLOWER = 1.05
"""Wall time after, in proportion to before, above which a query is slower."""
MIN_SECONDS = 1.0
"""Smallest increase of the wall time of a slower query."""
MORE_DATA = 1.1
"""Bytes of the data after, in proportion to before, above which times are not comparable."""

# Numbers with medians and means, and numbers that most runs do not have, with means only.
_LARGE = ("seconds", "core_seconds", "file_bytes", "scanned_bytes", "shuffled_bytes")
_RARE = ("spilled_bytes", "failed_tasks", "memory_failures")

Verdict = Literal["regression", "more data", "few runs", "no regression"]
_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Numbers of one run: medians of times, tasks and moved bytes, and means of the others."""

    runs: int
    """Runs that succeeded. All other numbers are about them."""
    failed_runs: int
    """Runs that failed or did not end."""
    seconds: float
    core_seconds: float
    tasks: float
    file_bytes: float
    scanned_bytes: float
    shuffled_bytes: float
    spilled_bytes: float
    failed_tasks: float
    memory_failures: float
    mean_seconds: float
    mean_core_seconds: float
    mean_file_bytes: float
    mean_scanned_bytes: float
    mean_shuffled_bytes: float


@dataclasses.dataclass(frozen=True)
class QueryComparison:
    """A query with runs on both sides."""

    application: str
    title: str
    query: int
    """Number of its first run after, in Spark's UI."""
    before: Numbers
    after: Numbers
    wall_ratio: Estimate | None
    """Time before divided by the time after. None if a side has no time."""
    wall_ratio_per_byte: Estimate | None
    """The same of the times per byte of the data. None if a side scanned nothing."""
    core_ratio: Estimate | None
    saved_core_seconds: float
    """Mean core-seconds before minus after, times the runs after."""
    verdict: Verdict
    """`regression` if the query is slower and the interval of its wall ratio is below 1; `few runs`
    if it is slower and has no interval; `more data` in place of both if it scanned over 10 % more
    bytes."""


@dataclasses.dataclass(frozen=True)
class UnmatchedQuery:
    """A query of one side only."""

    application: str
    title: str
    runs: int


@dataclasses.dataclass(frozen=True)
class Side:
    """The logs of one side."""

    logs: list[str]
    applications: list[str]
    spark_versions: list[str]
    logs_with_decisions: int
    """Logs in which Apportion decided tasks."""
    failed_runs: int
    unmatched: list[UnmatchedQuery]
    """Queries that the other side does not have, with the most runs first."""
    unread: list[Unread]
    notes: list[str]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The comparison of two sets of logs."""

    before: Side
    after: Side
    totals: dict[str, float]
    """Sums over all compared queries: the mean of one run, times the number of runs after. Their
    names are `seconds_before`, `seconds_after` and so on, for the numbers that have means."""
    queries: list[QueryComparison]
    """Regressions, then other slower queries with more data or few runs, each with the largest
    increase first; then all others by saved core-seconds."""
    not_compared: list[QueryComparison]
    """Matched queries without a run that succeeded on one of the sides."""

    def with_verdict(self, verdict: Verdict) -> list[QueryComparison]:
        """Return the compared queries with a verdict."""
        return [query for query in self.queries if query.verdict == verdict]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as data for JSON."""
        content: dict[str, Any] = plain(self)
        return content


def compare(before: Sequence[LogRuns | Unread], after: Sequence[LogRuns | Unread]) -> Comparison:
    """Compare the queries of two sets of logs."""
    old = [each for each in before if isinstance(each, LogRuns)]
    new = [each for each in after if isinstance(each, LogRuns)]
    found = matches(old, new)
    compared = [_compared(each) for each in found if each.is_complete]
    succeeded = [each for each in compared if each.before.runs and each.after.runs]
    succeeded.sort(key=_rank)
    return Comparison(
        before=_side(before, old, [(each, each.before) for each in found if not each.after]),
        after=_side(after, new, [(each, each.after) for each in found if not each.before]),
        totals=_totals(succeeded),
        queries=succeeded,
        not_compared=[each for each in compared if not (each.before.runs and each.after.runs)],
    )


def _rank(query: QueryComparison) -> tuple[int, float]:
    if query.verdict == "no regression":
        return len(_VERDICTS), -query.saved_core_seconds
    return _VERDICTS.index(query.verdict), query.before.seconds - query.after.seconds


def _compared(match: Match) -> QueryComparison:
    old = [run for run in match.before if run.has_succeeded]
    new = [run for run in match.after if run.has_succeeded]
    before, after = _numbers(match.before, old), _numbers(match.after, new)
    wall_ratio = _ratio([run.seconds for run in old], [run.seconds for run in new])
    first = (new or match.after)[0]
    return QueryComparison(
        application=match.application,
        title=title(first),
        query=first.id,
        before=before,
        after=after,
        wall_ratio=wall_ratio,
        wall_ratio_per_byte=_ratio_per_byte(old, new, before, after),
        core_ratio=_ratio([run.core_seconds for run in old], [run.core_seconds for run in new]),
        saved_core_seconds=(before.mean_core_seconds - after.mean_core_seconds) * after.runs
        if old
        else 0.0,
        verdict=_verdict(before, after, wall_ratio),
    )


def _verdict(before: Numbers, after: Numbers, wall_ratio: Estimate | None) -> Verdict:
    increase = after.seconds - before.seconds
    is_slower = increase >= MIN_SECONDS and after.seconds > before.seconds * SLOWER
    if not (is_slower and before.runs and after.runs):
        return "no regression"
    interval = wall_ratio.interval if wall_ratio else None
    if interval and interval[1] >= 1:
        return "no regression"
    if has_more_data(before, after):
        return "more data"
    return "regression" if interval else "few runs"


def data_name(before: Numbers, after: Numbers) -> str:
    """Return the name of the number that measures the data of a query on both sides.

    Spark's metric of scanned bytes leaves out much, so the files count if the log has them.
    """
    return "file_bytes" if before.file_bytes and after.file_bytes else "scanned_bytes"


def data_bytes(before: Numbers, after: Numbers) -> tuple[float, float]:
    """Return the bytes of the data of a query before and after."""
    name = data_name(before, after)
    return getattr(before, name), getattr(after, name)


def has_more_data(before: Numbers, after: Numbers) -> bool:
    """Return whether a query scanned over 10 % more bytes after."""
    old, new = data_bytes(before, after)
    return new > old * MORE_DATA


def title(run: QueryRun) -> str:
    """Return the first line of a description, which can be a long SQL text."""
    return first_line(run.description) or "without a description"


def _numbers(runs: Sequence[QueryRun], succeeded: Sequence[QueryRun]) -> Numbers:
    def of(function: Callable[[list[float]], float], name: str) -> float:
        values = [float(getattr(run, name)) for run in succeeded]
        return function(values) if values else 0.0

    return Numbers(
        runs=len(succeeded),
        failed_runs=len(runs) - len(succeeded),
        **{name: of(statistics.median, name) for name in (*_LARGE, "tasks")},
        **{name: of(statistics.fmean, name) for name in _RARE},
        **{f"mean_{name}": of(statistics.fmean, name) for name in _LARGE},
    )


def _ratio_per_byte(
    old: Sequence[QueryRun], new: Sequence[QueryRun], before: Numbers, after: Numbers
) -> Estimate | None:
    name = data_name(before, after)

    def per_byte(runs: Sequence[QueryRun]) -> list[float]:
        return [run.seconds / size for run in runs if (size := getattr(run, name))]

    return _ratio(per_byte(old), per_byte(new))


def _ratio(before: Sequence[float], after: Sequence[float]) -> Estimate | None:
    old, new = list(filter(None, before)), list(filter(None, after))
    return ratios.of_runs(old, new) if old and new else None


def _totals(queries: Sequence[QueryComparison]) -> dict[str, float]:
    means = {name: f"mean_{name}" for name in _LARGE} | {name: name for name in _RARE}
    return {
        f"{name}_{side}": float(
            sum(getattr(getattr(query, side), mean) * query.after.runs for query in queries)
        )
        for name, mean in means.items()
        for side in ("before", "after")
    }


def _side(
    results: Sequence[LogRuns | Unread],
    logs: Sequence[LogRuns],
    unmatched: Sequence[tuple[Match, list[QueryRun]]],
) -> Side:
    rows = [
        UnmatchedQuery(match.application, title(runs[0]), len(runs)) for match, runs in unmatched
    ]
    rows.sort(key=lambda row: row.runs, reverse=True)
    return Side(
        logs=[log.log for log in logs],
        applications=sorted({log.name for log in logs}),
        spark_versions=sorted({log.spark_version for log in logs if log.spark_version}),
        logs_with_decisions=sum(log.has_decisions for log in logs),
        failed_runs=sum(not run.has_succeeded for log in logs for run in log.runs),
        unmatched=rows,
        unread=[each for each in results if isinstance(each, Unread)],
        notes=[f"{log.log}: left out {note}" for log in logs for note in log.notes],
    )
