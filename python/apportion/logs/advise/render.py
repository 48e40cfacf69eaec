"""Advice as text of 80 columns, and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apportion._util import pages
from apportion._util.units import WIDTH, count_text, seconds_text, wrapped
from apportion.logs.advise.findings import (
    NO_SQL,
    Advice,
    ApplicationAdvice,
    Finding,
    Gain,
    QueryAdvice,
    core_time_bounds,
    gain_text,
)

_RULE = "-" * WIDTH
# Queries in the page before the findings. The others are behind a click.
_MOST_BARS = 5
_UNITS = {"seconds": "s", "minutes": "min", "hours": "h"}
_SWITCHES = [
    '--jars "$(apportion jar)"',
    "--conf spark.sql.extensions=io.apportion.ApportionExtension",
]


def text(advice: Advice, top: int) -> str:
    """Return the advice as lines of text, with at most `top` findings per log and `top` jobs."""
    return "\n".join(_lines(advice, top)) + "\n"


def html(advice: Advice, top: int) -> str:
    """Return the advice as one self-contained HTML page, with the same limits."""
    names = [application.name for application in advice.applications]
    return pages.render(
        "advice.html",
        title=f"Advice for {names[0]}" if len(names) == 1 else "Advice from event logs",
        advice=advice,
        top=top,
        most_bars=_MOST_BARS,
        switches=_switches(advice),
        gain_text=gain_text,
        seconds_text=seconds_text,
        shown=_shown,
        summary=_summary,
        place=_place,
        with_apportion_text=_with_apportion,
        with_sections=_with_sections,
        without_sections=_without_sections,
        unsupported=_unsupported,
        remark=_remark,
    )


def _lines(advice: Advice, top: int) -> Iterator[str]:
    if len(advice.applications) > 1:
        yield from _jobs(advice, top)
    for application in _with_sections(advice):
        yield from _application(application, top)
    if others := _without_sections(advice):
        yield _RULE
        yield f"{count_text(len(others), 'log')} without findings:"
        for application in others:
            yield from wrapped(f"{application.log}{_remark(application)}", "  ", first="- ")
        yield ""
    if advice.unread:
        yield _RULE
        yield f"{count_text(len(advice.unread), 'log')} could not be read:"
        for unread in advice.unread:
            yield from wrapped(f"{unread.log}: {unread.reason}", "  ", first="- ")


def _with_sections(advice: Advice) -> list[ApplicationAdvice]:
    """Return the applications with findings. A single application always has a section."""
    if len(advice.applications) == 1:
        return advice.applications
    return [application for application in advice.applications if application.count]


def _without_sections(advice: Advice) -> list[ApplicationAdvice]:
    shown = {id(application) for application in _with_sections(advice)}
    return [application for application in advice.applications if id(application) not in shown]


def _remark(application: ApplicationAdvice) -> str:
    """Return what a log without findings has instead, in words."""
    failed = sum(query.failure is not None for query in application.queries)
    failures = f": {count_text(failed, 'query')} failed" if failed else ""
    return f": {NO_SQL}" if NO_SQL in application.notes else failures


def _unsupported(advice: Advice) -> str:
    count = sum(not application.is_supported for application in advice.applications)
    return f"Apportion does not support the Spark of {count_text(count, 'log')}." if count else ""


def _with_apportion(application: ApplicationAdvice) -> str:
    if not application.with_apportion.is_known:
        return "With Apportion: no gain that this log shows."
    needs = "" if application.is_supported else ", on a supported Spark"
    return f"With Apportion{needs}: {gain_text(application.with_apportion)}."


def _switches(advice: Advice) -> list[str]:
    """Return the lines that add Apportion to `spark-submit`, if it helps an application."""
    helps = any(each.is_supported and each.with_apportion.is_known for each in advice.applications)
    return _SWITCHES if helps else []


def _jobs(advice: Advice, top: int) -> Iterator[str]:
    yield f"{count_text(len(advice.applications), 'log')}, at stake:"
    yield from wrapped(f"- all findings: {gain_text(advice.gain)}", "  ", first="")
    yield from wrapped(
        f"- findings where Apportion decides differently: {gain_text(advice.with_apportion)}",
        "  ",
        first="",
    )
    if unsupported := _unsupported(advice):
        yield unsupported
    yield ""
    if not advice.jobs:
        return
    yield "Core time        With Apportion   Logs  Findings  Job"
    for job in advice.jobs[:top]:
        columns = f"{_core_time(job.gain):<16} {_core_time(job.with_apportion):<16} "
        columns += f"{job.logs:>4}  {job.findings:>8}  "
        yield from wrapped(job.name, " " * len(columns), first=columns)
    yield ""
    if switches := _switches(advice):
        yield "These two lines add Apportion to spark-submit:"
        yield ""
        yield from (f"    {line}" for line in switches)
        yield ""


def _core_time(gain: Gain) -> str:
    core_time, unit = core_time_bounds(gain)
    return f"{core_time} {_UNITS[unit]}"


def _application(application: ApplicationAdvice, top: int) -> Iterator[str]:
    yield _RULE
    yield from wrapped(f"{application.name} ({application.log})")
    yield from wrapped(_summary(application))
    for note in application.notes:
        yield from wrapped(f"Note: {note}.")
    if application.count:
        yield from wrapped(f"At stake: {gain_text(application.gain)}.")
        yield from wrapped(_with_apportion(application))
    left = _shown(application, top)
    for finding in application.findings:
        yield ""
        yield from _finding(finding)
    for query in application.queries:
        findings = query.findings[: left.get(query.id, 0)]
        if findings:
            yield ""
            yield from wrapped(_query_title(query))
        for finding in findings:
            yield ""
            yield from _finding(finding)
    hidden = application.count - len(application.findings) - sum(left.values())
    if hidden:
        yield ""
        yield f"{count_text(hidden, 'more finding')}: show them with --top."
    without = sorted(query.id for query in application.queries if not query.findings)
    if without:
        yield ""
        yield from wrapped(f"Queries without findings: {_ranges(without)}.", "  ", first="")
    yield ""


def _finding(finding: Finding) -> Iterator[str]:
    yield from wrapped(f"{finding.kind.title}{_place(finding)}", "    ", first="  * ")
    yield from wrapped(finding.text, "    ")
    yield from wrapped(f"Gain: {gain_text(finding.gain)}.", "    ")
    yield from wrapped(f"Apportion {finding.apportion}", "    ")
    if finding.without:
        yield "    Without Apportion, one of:"
        for setting in finding.without:
            yield from wrapped(setting, "        ", first="      - ")


def _place(finding: Finding) -> str:
    """Return the stage of a finding, with its operators and tables."""
    if finding.stage is None:
        return ""
    operators = f": {', '.join(finding.operators)}" if finding.operators else ""
    tables = f" of {', '.join(finding.tables)}" if finding.tables else ""
    return f", stage {finding.stage}{operators}{tables}"


def _query_title(query: QueryAdvice) -> str:
    took = "not ended" if query.seconds is None else seconds_text(query.seconds)
    return f"Query {query.id}: {query.title} ({took}). At stake: {gain_text(query.gain)}."


def _summary(application: ApplicationAdvice) -> str:
    """Return the time of an application's stages in words."""
    version = f"Spark {application.spark_version}, " if application.spark_version else ""
    queries = count_text(len(application.queries), "query")
    outside = application.other_task_seconds
    other = f" Stages outside of SQL: {seconds_text(outside)} of task time." if outside >= 1 else ""
    return (
        f"{version}{count_text(application.slots, 'task slot')}, {queries}. Stages of queries ran "
        f"for {seconds_text(application.stage_seconds)}, with "
        f"{seconds_text(application.task_seconds)} of task time.{other}"
    )


def _shown(application: ApplicationAdvice, top: int) -> dict[int, int]:
    """Return the number of findings to show for each query: the `top` largest ones."""
    ranked = sorted(
        (
            (finding.gain.rank, query.id)
            for query in application.queries
            for finding in query.findings
        ),
        reverse=True,
    )
    shown: dict[int, int] = {}
    for _, id in ranked[:top]:
        shown[id] = shown.get(id, 0) + 1
    return shown


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in order as text, such as `0 to 3, 7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts
    )
