"""Advice for the queries of an application."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from apportion import eventlog
from apportion.advise import balance, files, limits, pressure, task_counts
from apportion.advise.findings import (
    NO_SQL,
    Advice,
    ApplicationAdvice,
    Finding,
    Gain,
    Kind,
    QueryAdvice,
    largest,
    total,
)
from apportion.advise.plan_facts import engine
from apportion.advise.stages import MeasuredStage, busy_seconds, measured, most_slots
from apportion.eventlog import Application, Query, Unread
from apportion.simulate.arithmetic.policy import Confs

_VERSION = re.compile(r"(\d+)\.(\d+)")
_OLDEST_SPARK = (3, 5)
# Spark switches adaptive execution on by default since this version.
_ADAPTIVE_SINCE = (3, 2)


def advise(application: Application, log: str, numbers: Sequence[int] = ()) -> ApplicationAdvice:
    """Return the advice for an application, or for the queries with these numbers only.

    `log` names the log in messages. Raises `ApportionError` for an unknown number.
    """
    chosen = application.numbered(numbers, log) or list(application.queries.values())
    version = _version(application)
    stages = measured(application)
    by_query: dict[int, list[MeasuredStage]] = {}
    for stage in stages:
        by_query.setdefault(stage.query, []).append(stage)
    queries = [_query(application, query, by_query.get(query.id, [])) for query in chosen]
    queries.sort(key=_rank, reverse=True)
    chosen_stages = [stage for query in chosen for stage in by_query.get(query.id, ())]
    seconds = busy_seconds(stage for query in chosen for stage in query.stages)
    core_hours = seconds * most_slots(application) / 3600
    confs = _confs(application, None)
    # An engine with other operators decides the tasks of its stages itself.
    configured = [stage for stage in chosen_stages if not stage.facts.engine]
    findings = [
        *task_counts.adaptive_execution_off(configured, confs),
        *task_counts.fixed_partitions(configured, confs, seconds),
    ]
    found = [total([query.gain for query in queries], seconds, core_hours)]
    helped = [total([query.with_apportion for query in queries], seconds, core_hours)]
    return ApplicationAdvice(
        log=log,
        id=application.id,
        name=application.name or application.id or log,
        spark_version=application.spark_version,
        slots=most_slots(application),
        stage_seconds=seconds,
        task_seconds=sum(stage.task_seconds for stage in chosen_stages),
        other_task_seconds=sum(
            sum(stage.run_millis) for stage in application.stages if stage.query is None
        )
        / 1000,
        # The stages of a finding about the configuration can have findings too.
        gain=largest([*found, *(finding.gain for finding in findings)]),
        with_apportion=largest([*helped, *(each.gain for each in findings if each.helps)]),
        findings=findings,
        queries=queries,
        notes=[*_notes(application, chosen, version), *application.skipped],
        is_supported=version is None or version >= _OLDEST_SPARK,
    )


def read(log: str, numbers: Sequence[int] = ()) -> ApplicationAdvice | Unread:
    """Return the advice for a log, or the reason why it cannot be read."""
    return eventlog.read_with(log, lambda application: advise(application, log, numbers))


def collected(results: Sequence[ApplicationAdvice | Unread]) -> Advice:
    """Return the advice for several logs, with the largest gain first."""
    applications = [each for each in results if isinstance(each, ApplicationAdvice)]
    applications.sort(key=_rank, reverse=True)
    return Advice(applications, [each for each in results if isinstance(each, Unread)])


def _query(application: Application, query: Query, stages: Sequence[MeasuredStage]) -> QueryAdvice:
    confs = _confs(application, query)
    is_plain = engine(query.plan) is None
    findings = [
        task_counts.with_place(finding, stage)
        for stage in stages
        if stage.task_seconds >= limits.MIN_TASK_SECONDS
        for finding in _findings(stage, confs, is_plain)
    ]
    findings.sort(key=_rank, reverse=True)
    busy = busy_seconds(query.stages)
    slots = max((stage.slots for stage in stages), default=1)
    start, end = query.submitted, query.completed
    return QueryAdvice(
        id=query.id,
        title=_title(query),
        seconds=max(end - start, 0) / 1000 if start is not None and end is not None else None,
        stage_seconds=busy,
        task_seconds=sum(stage.task_seconds for stage in stages),
        gain=_gain(findings, busy, slots),
        with_apportion=_gain([each for each in findings if each.helps], busy, slots),
        findings=findings,
    )


def _findings(stage: MeasuredStage, confs: Confs, is_plain: bool) -> Iterator[Finding]:
    yield from pressure.spill(stage, confs)
    yield from pressure.garbage_collection(stage)
    yield from pressure.fetch_wait(stage)
    yield from pressure.failures(stage, confs)
    yield from files.small_files(stage, confs)
    # The rules below look at one cause of idle slots after the other, and report the first one.
    about_tasks = [
        *task_counts.tiny_tasks(stage, confs),
        *task_counts.large_tasks(stage, confs),
        *files.small_scan_tasks(stage, confs),
        *files.large_scan_tasks(stage, confs),
    ]
    skewed = list(balance.skew(stage, confs))
    yield from about_tasks
    yield from skewed
    if not skewed and is_plain:
        if not any(each.kind in _FEW_TASKS for each in about_tasks):
            yield from balance.idle_cores(stage, confs)
        if not about_tasks:
            yield from balance.last_wave(stage, confs)


_FEW_TASKS = {Kind.LARGE_TASKS, Kind.LARGE_SCAN_TASKS}


def _gain(findings: Sequence[Finding], seconds: float, slots: float) -> Gain:
    stages = {finding.stage for finding in findings}
    gains = [
        largest(finding.gain for finding in findings if finding.stage == stage) for stage in stages
    ]
    wasted = sum(finding.evidence.get("wasted_seconds", 0) for finding in findings)
    return total(gains, seconds, (seconds * slots + wasted) / 3600)


def _rank(advice: ApplicationAdvice | QueryAdvice | Finding) -> tuple[float, float]:
    return advice.gain.rank


def _confs(application: Application, query: Query | None) -> Confs:
    """Return the confs of a query, or of the application, with Spark's default for adaptivity."""
    version = _version(application)
    # Distributions without a version in the log have it switched on.
    default = "false" if version and version < _ADAPTIVE_SINCE else "true"
    return Confs(
        {
            task_counts.ADAPTIVE: default,
            **application.conf,
            **(query.conf if query else {}),
        }
    )


def _version(application: Application) -> tuple[int, int] | None:
    match = _VERSION.match(application.spark_version)
    return (int(match[1]), int(match[2])) if match else None


def _title(query: Query) -> str:
    """Return the first line of the description, which can be a long SQL text."""
    lines = query.description.strip().splitlines()
    return " ".join(lines[0].split()) if lines else "without a description"


def _notes(
    application: Application, chosen: Sequence[Query], version: tuple[int, int] | None
) -> Iterator[str]:
    if not application.queries:
        yield NO_SQL
    if version and version < _OLDEST_SPARK:
        yield f"Apportion needs Spark 3.5 or later; this is Spark {application.spark_version}"
    for name in sorted({name for query in chosen if (name := engine(query.plan))}):
        yield f"{name} replaces Spark's operators, so Apportion does not decide their tasks"
    if any(query.decisions for query in chosen):
        yield "Apportion already decided tasks in this log"
