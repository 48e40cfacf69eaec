"""Advice as text of 80 columns, and as one HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from apportion._util import pages
from apportion._util.units import WIDTH, count_text, seconds_text, wrapped
from apportion.logs.advise.cards import Card, cards
from apportion.logs.advise.model.findings import (
    NO_SQL,
    Advice,
    ApplicationAdvice,
    Gain,
    core_time_bounds,
    gain_text,
)

_RULE = "-" * WIDTH
# Queries in the page before the findings. The others are behind a click.
_MOST_BARS = 5
# Places and measurements of a finding that several stages share.
_MOST_PLACES = 4
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
        cards=cards,
        places=_places,
        measured=_measured,
        summary=_summary,
        saving=_saving,
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
    if len(advice.applications) > 1 and (switches := _switches(advice)):
        yield _RULE
        yield "These two lines add Apportion to spark-submit:"
        yield ""
        yield from (f"    {line}" for line in switches)
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


def _saving(application: ApplicationAdvice) -> str:
    """Return the possible savings in all findings, in words; empty if the log shows none."""
    if not application.gain.is_known:
        return ""
    helped = application.with_apportion
    saving = f"Possible saving: {gain_text(application.gain)}."
    if not helped.is_known:
        # Notes name what Apportion does not support.
        without = " Apportion would not speed this up, as far as this log shows."
        return saving + (without if application.is_supported else "")
    needs = "" if application.is_supported else ", on a supported Spark"
    return f"{saving} With Apportion{needs}: {gain_text(helped)}."


def _switches(advice: Advice) -> list[str]:
    """Return the lines that add Apportion to `spark-submit`, if it helps an application."""
    helps = any(each.is_supported and each.with_apportion.is_known for each in advice.applications)
    return _SWITCHES if helps else []


def _jobs(advice: Advice, top: int) -> Iterator[str]:
    logs = count_text(len(advice.applications), "log")
    yield from wrapped(f"{logs}. Possible saving in all findings: {gain_text(advice.gain)}.")
    if advice.with_apportion.is_known:
        yield from wrapped(
            f"In findings where Apportion decides differently: {gain_text(advice.with_apportion)}."
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


def _core_time(gain: Gain) -> str:
    if not gain.is_known:
        return "-"
    core_time, unit = core_time_bounds(gain)
    return f"{core_time} {_UNITS[unit]}"


def _application(application: ApplicationAdvice, top: int) -> Iterator[str]:
    yield _RULE
    yield from wrapped(f"{application.name} ({application.log})")
    yield from wrapped(_summary(application))
    for note in application.notes:
        yield from wrapped(f"Note: {note}.")
    if saving := _saving(application):
        yield from wrapped(saving)
    found = cards(application)
    for card in found[:top]:
        yield ""
        yield from _card(application, card)
    if len(found) > top:
        yield ""
        yield f"{count_text(len(found) - top, 'more finding')}: show them with --top."
    without = sorted(query.id for query in application.queries if not query.findings)
    if without and found:
        yield ""
        yield from wrapped(f"Nothing found in {_queries_text(without)}.", "  ", first="")
    if not found:
        yield "Nothing found."
    if application.queries and found:
        query = next((each.query for each in found[0].findings if each.query is not None), None)
        chosen = f" --query {query}" if query is not None else ""
        yield ""
        yield f"See the stages: apportion explain {shlex.quote(application.log)}{chosen}"
    yield ""


def _card(application: ApplicationAdvice, card: Card) -> Iterator[str]:
    yield from wrapped(card.title, "    ", first="  * ")
    for place in _places(application, card):
        yield from wrapped(place, "    ")
    if card.fixes:
        yield "    Fix:" if len(card.fixes) == 1 else "    Fix, one of:"
        for fix in card.fixes:
            yield from wrapped(fix, "        ", first="      - ")
    for measured in _measured(card):
        yield from wrapped(measured, "    ")
    if card.gain.is_known:
        yield from wrapped(f"Possible saving: {gain_text(card.gain)}.", "    ")
    for text in card.apportion:
        yield from wrapped(f"Apportion {text}", "    ")


def _places(application: ApplicationAdvice, card: Card) -> list[str]:
    """Return the query, stages, operators and tables of the findings, a line for each query."""
    titles = {query.id: query for query in application.queries}
    lines: list[str] = []
    for query in dict.fromkeys(each.query for each in card.findings):
        own = [each for each in card.findings if each.query == query]
        stages = sorted({each.stage for each in own if each.stage is not None})
        names = [f"query {query}: {titles[query].title}"] if query is not None else []
        if stages:
            numbers = ", ".join(map(str, stages))
            names.append(f"{'stage' if len(stages) == 1 else 'stages'} {numbers}")
        line = ", ".join(names)
        if len(card.findings) == 1 and own[0].operators:
            tables = f" of {', '.join(own[0].tables)}" if own[0].tables else ""
            line += f": {', '.join(own[0].operators)}{tables}"
        if line:
            lines.append(line[0].upper() + line[1:])
    hidden = len(lines) - _MOST_PLACES
    return [*lines[:_MOST_PLACES], *([f"and {hidden} more"] if hidden > 0 else [])]


def _measured(card: Card) -> list[str]:
    """Return the measured numbers of the findings, in words."""
    shown = card.findings[:_MOST_PLACES]
    if len(card.findings) == 1:
        return [shown[0].text]
    lines = [
        f"{f'Stage {each.stage}: ' if each.stage is not None else ''}{each.text}" for each in shown
    ]
    hidden = len(card.findings) - len(shown)
    return [*lines, *([f"and {count_text(hidden, 'more finding')}"] if hidden > 0 else [])]


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


def _queries_text(numbers: Sequence[int]) -> str:
    """Return the numbers of queries in order as text, such as `queries 0 to 3, 7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    ranges = [str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts]
    return f"{'query' if len(numbers) == 1 else 'queries'} {', '.join(ranges)}"
