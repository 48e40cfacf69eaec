"""A comparison as text of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from apportion._util.ratios import FEWEST_RUNS, Estimate
from apportion._util.units import (
    WIDTH,
    core_time_text,
    count_text,
    number_text,
    seconds_text,
    size_text,
    wrapped,
)
from apportion.logs.report.comparison import (
    MORE_DATA,
    Comparison,
    Numbers,
    QueryComparison,
    Side,
    Verdict,
    data_bytes,
    has_more_data,
)

_RULE = "-" * WIDTH
_MOST_LETTERS = 200
_LEGEND = (
    "A ratio is the time before divided by the time after: above 1 is less time. The numbers of a "
    "query are for one run: medians of times, tasks and moved bytes, and means of the others. "
    "Totals use the mean of one run, times the number of runs after. Core time is the time of all "
    "attempts of tasks, times the cores of a task. Spark does not count vectored reads of local "
    "files as scanned."
)
_INTERVAL = (
    "Brackets are 95 % intervals. If 1 is in an interval, the difference is not significant. Of 20 "
    "queries without a change, up to one seems different by chance."
)
_TOO_FEW = (
    f"A query without brackets has fewer than {FEWEST_RUNS} runs on a side. These are too few to "
    "tell whether the difference is significant."
)
_SLOWER = (
    "A slower query takes at least 1 s and over 5 % longer. It is a regression if the difference "
    "is significant, and if its data did not grow by over 10 %."
)
_LISTS: tuple[tuple[Verdict, str, str], ...] = (
    ("regression", "regression", ":"),
    ("more data", "slower query", " with more data:"),
    ("few runs", "slower query", " with too few runs to tell:"),
    ("no regression", "other query", ", by saved task time:"),
)


def text(comparison: Comparison, top: int) -> str:
    """Return the comparison as lines of text, with at most `top` queries in each list."""
    return "\n".join(_lines(comparison, top)).rstrip() + "\n"


def _lines(comparison: Comparison, top: int) -> Iterator[str]:
    yield from wrapped(f"Before: {_side(comparison.before)}.")
    yield from wrapped(f"After: {_side(comparison.after)}.")
    yield ""
    if comparison.queries:
        files, scanned = _total(comparison, "file_bytes"), _total(comparison, "scanned_bytes")
        if changed := _change_of_data(*(files if all(files) else scanned)):
            yield from (*wrapped(changed), "")
        yield from _totals(comparison)
    failed = comparison.before.failed_runs, comparison.after.failed_runs
    if any(failed):
        yield from wrapped(
            f"Failed or unfinished queries, not compared: {failed[0]} before, {failed[1]} after."
        )
        yield ""
    if comparison.queries:
        yield from wrapped(_LEGEND)
        ratios = [query.wall_ratio for query in comparison.queries if query.wall_ratio]
        if any(ratio.interval for ratio in ratios):
            yield from wrapped(_INTERVAL)
        if not all(ratio.interval for ratio in ratios):
            yield from wrapped(_TOO_FEW)
        yield from wrapped(_SLOWER)
        yield ""
        yield from _queries(comparison, top)
    outcomes = [
        f"{_short(query.title)}: {_outcomes(query.before)} before, {_outcomes(query.after)} after"
        for query in comparison.not_compared
    ]
    yield from _list(outcomes, "query", "without a successful run on one side", top)
    for when, side in (("before", comparison.before), ("after", comparison.after)):
        runs = [
            f"{row.application}: {_short(row.title)}, {count_text(row.runs, 'run')}"
            for row in side.unmatched
        ]
        yield from _list(runs, "query", f"only {when}", top)
    unread = [
        f"{each.log}: {each.reason}"
        for side in (comparison.before, comparison.after)
        for each in side.unread
    ]
    yield from _list(unread, "log", "could not be read")
    for note in [*comparison.before.notes, *comparison.after.notes]:
        yield from wrapped(f"Note: {note}.")


_SIZES = {"Files": "file", "Scanned": "scanned", "Shuffled": "shuffled", "Spilled": "spilled"}


def _side(side: Side) -> str:
    logs, decided = len(side.logs), side.logs_with_decisions
    if decided in (0, logs):
        apportion = "with decisions of Apportion" if decided else "without decisions of Apportion"
    else:
        apportion = f"{decided} of them with decisions of Apportion"
    applications = (
        f" of {side.applications[0]}"
        if len(side.applications) == 1
        else f" of {len(side.applications)} applications"
    )
    versions = f", Spark {', '.join(side.spark_versions)}" if side.spark_versions else ""
    return f"{count_text(logs, 'log')}{applications}{versions}, {apportion}"


def _totals(comparison: Comparison) -> Iterator[str]:
    yield _header(f"{count_text(len(comparison.queries), 'query')} compared")
    yield from _rows(
        lambda name: _total(comparison, name),
        wall_ratio=_quotient(*_total(comparison, "seconds")),
        core_ratio=_quotient(*_total(comparison, "core_seconds")),
    )
    yield ""


def _total(comparison: Comparison, name: str) -> tuple[float, float]:
    return comparison.totals[f"{name}_before"], comparison.totals[f"{name}_after"]


def _queries(comparison: Comparison, top: int) -> Iterator[str]:
    is_single = len({query.application for query in comparison.queries}) == 1
    for verdict, noun, rest in _LISTS:
        queries = comparison.with_verdict(verdict)
        if queries:
            yield _RULE
            yield f"{count_text(len(queries), noun)}{rest}"
            yield ""
        elif verdict == "regression":
            yield from (_RULE, "No regressions.", "")
        for query in queries[:top]:
            yield from _query(query, is_single)
        yield from _more(len(queries) - top)


def _query(query: QueryComparison, is_single: bool) -> Iterator[str]:
    application = "" if is_single else f"{query.application}, "
    before, after = query.before, query.after
    runs = "" if before.runs == after.runs == 1 else f" ({before.runs} and {after.runs} runs)"
    yield from wrapped(f"{application}query {query.query}: {_short(query.title)}{runs}")
    if changed := _change_of_data(*data_bytes(before, after)):
        yield from wrapped(changed)
    has_other_data = has_more_data(before, after) or has_more_data(after, before)
    yield _header("")
    yield from _rows(
        lambda name: (getattr(before, name), getattr(after, name)),
        has_tasks=True,
        wall_ratio=_ratio(query.wall_ratio),
        wall_ratio_per_byte=_ratio(query.wall_ratio_per_byte) if has_other_data else "",
        core_ratio=_ratio(query.core_ratio),
    )
    if before.failed_runs or after.failed_runs:
        yield _row("Failed runs", (before.failed_runs, after.failed_runs))
    saved = query.saved_core_seconds
    word = "Saved" if saved >= 0 else "Lost"
    yield f"  {word} in all runs after: {core_time_text(abs(saved))}"
    yield ""


def _change_of_data(before: float, after: float) -> str:
    """Return a sentence about data that changed by over 10 %; empty without such a change."""
    if not before or not after or before / MORE_DATA <= after <= before * MORE_DATA:
        return ""
    changed = "grew" if after > before else "shrank"
    old, new = size_text(round(before)), size_text(round(after))
    return f"The data {changed} from {old} to {new}. Compare the time per byte."


def _rows(
    of: Callable[[str], tuple[float, float]],
    *,
    has_tasks: bool = False,
    wall_ratio: str,
    wall_ratio_per_byte: str = "",
    core_ratio: str,
) -> Iterator[str]:
    """Yield a row for each number. `of` returns a number before and after by its name."""
    yield _row("Wall time", of("seconds"), seconds_text, wall_ratio)
    if wall_ratio_per_byte:
        yield f"  {'Wall time per byte':<57}{wall_ratio_per_byte}"
    yield _row("Core time", of("core_seconds"), core_time_text, core_ratio)
    if has_tasks:
        yield _row("Tasks", of("tasks"))
    for word, kind in _SIZES.items():
        if any(sizes := of(f"{kind}_bytes")):
            yield _row(word, sizes, lambda size: size_text(round(size)))
    for word, name in (("Failed tasks", "failed_tasks"), ("Out of memory", "memory_failures")):
        if any(numbers := of(name)):
            yield _row(word, numbers)


def _header(title: str) -> str:
    return f"{title:<22}{'before':>17} {'after':>17}  ratio"


def _number(number: float) -> str:
    return f"{number:.0f}" if number == round(number) else number_text(number)


def _row(
    name: str,
    numbers: tuple[float, float],
    shown: Callable[[float], str] = _number,
    ratio: str = "",
) -> str:
    before, after = map(shown, numbers)
    return f"  {name:<20}{before:>17} {after:>17}  {ratio}".rstrip()


def _ratio(ratio: Estimate | None) -> str:
    return str(ratio) if ratio else ""


def _quotient(before: float, after: float) -> str:
    return str(Estimate(before / after)) if before and after else ""


def _outcomes(numbers: Numbers) -> str:
    return f"{numbers.runs} succeeded and {numbers.failed_runs} failed"


def _list(items: Sequence[str], noun: str, rest: str, top: int | None = None) -> Iterator[str]:
    """Yield a list of at most `top` items below their number; nothing without items."""
    if not items:
        return
    yield _RULE
    yield f"{count_text(len(items), noun)} {rest}:"
    for item in items[:top]:
        yield from wrapped(item, "  ", first="- ")
    yield from _more(len(items) - len(items[:top]))
    yield ""


def _more(hidden: int) -> Iterator[str]:
    if hidden > 0:
        noun = "more query"
        yield f"{count_text(hidden, noun)}: show them with --top."
        yield ""


def _short(title: str) -> str:
    return textwrap.shorten(title, _MOST_LETTERS, placeholder=" ...")
