"""Advice for the queries of an application."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from apportion._util.units import first_line
from apportion.logs import eventlog
from apportion.logs.advise.cards import combined
from apportion.logs.advise.model.findings import (
    NO_SQL,
    Advice,
    ApplicationAdvice,
    Finding,
    Kind,
    QueryAdvice,
)
from apportion.logs.advise.model.plan_facts import query_facts
from apportion.logs.advise.model.stages import (
    MeasuredStage,
    SparkConfs,
    measured,
    measured_outside,
    most_slots,
    seconds_alone,
)
from apportion.logs.advise.rules import (
    balance,
    files,
    limits,
    pressure,
    task_counts,
    whole_application,
)
from apportion.logs.advise.rules.task_counts import UnadaptedStage
from apportion.logs.advise.rules.whole_application import Scan
from apportion.logs.eventlog import Application, Query, Unread
from apportion.logs.eventlog.model import ESTIMATED_SLOTS
from apportion.logs.eventlog.tasks import busy_millis, spans

_OLDEST_SPARK = (3, 5)
# Confs of each cluster of Databricks. Delta Lake has other confs below `spark.databricks`.
_DATABRICKS = "spark.databricks.clusterUsageTags."


def advise(application: Application, log: str, numbers: Sequence[int] = ()) -> ApplicationAdvice:
    """Return the advice for an application, or for the queries with these numbers only.

    `log` names the log in messages. Raises `ApportionError` for an unknown number.
    """
    application.numbered(numbers, log)
    confs = SparkConfs(application)
    spans_of = {query.id: spans(query.stages) for query in application.queries.values()}
    all_spans = [*spans(application.other_stages), *itertools.chain(*spans_of.values())]
    alone = seconds_alone(all_spans)
    chosen = dict.fromkeys(numbers) or application.queries
    queries: list[QueryAdvice] = []
    unadapted: list[UnadaptedStage] = []
    scans: list[Scan] = []
    engines: set[str] = set()
    has_decisions = False
    is_databricks = any(name.startswith(_DATABRICKS) for name in application.conf)
    # Only one query of a large log is unpacked at a time.
    for number in chosen:
        query = application.queries[number]
        stages = measured(application, query, alone)
        queries.append(_query(query, stages, is_databricks))
        found = (task_counts.unadapted(stage, confs) for stage in stages)
        unadapted += [stage for stage in found if stage]
        scans += [scan for stage in stages if (scan := whole_application.scan_of(stage))]
        if replacing := query_facts(query.plan).engine:
            engines.add(replacing)
        has_decisions = has_decisions or bool(query.decisions)
    queries.sort(key=_rank, reverse=True)
    seconds = busy_millis(span for number in chosen for span in spans_of[number]) / 1000
    task_seconds = sum(query.task_seconds for query in queries)
    # Without its start, a log does not tell which stages belong to a query.
    is_partial = application.started is None
    outside = [] if numbers or is_partial else measured_outside(application, alone)
    findings = [
        *task_counts.adaptive_execution_off(unadapted, confs),
        *task_counts.fixed_partitions(unadapted, confs, seconds),
        *whole_application.repeated_scans(scans, task_seconds),
        *whole_application.outside_of_sql(outside, task_seconds),
        # Their fix is to read no schemas.
        *_of_stages([stage for stage in outside if not whole_application.reads_schema(stage.name)]),
    ]
    findings = _on_databricks(findings) if is_databricks else findings
    findings.sort(key=_rank, reverse=True)
    is_supported = confs.is_since(*_OLDEST_SPARK) and not is_databricks
    every = [*findings, *(finding for query in queries for finding in query.findings)]
    limit = (busy_millis(all_spans) / 1000 if outside else seconds, most_slots(application))
    return ApplicationAdvice(
        log=log,
        id=application.id,
        name=application.name or application.id or log,
        spark_version=application.spark_version,
        slots=most_slots(application),
        stage_seconds=seconds,
        task_seconds=task_seconds,
        other_task_seconds=sum(sum(stage.task_millis) for stage in application.other_stages) / 1000,
        gain=combined(every, *limit),
        with_apportion=combined([each for each in every if each.helps], *limit),
        findings=findings,
        queries=queries,
        notes=[
            *_notes(application, is_supported, is_databricks, engines, has_decisions),
            *(f"left out: {skipped}" for skipped in application.skipped),
        ],
        is_supported=is_supported,
    )


def read(log: str, numbers: Sequence[int] = ()) -> ApplicationAdvice | Unread:
    """Return the advice for a log, or the reason why it cannot be read."""
    return eventlog.read_with(log, lambda application: advise(application, log, numbers))


def collected(results: Sequence[ApplicationAdvice | Unread]) -> Advice:
    """Return the advice for several logs, with the largest gain first."""
    applications = [each for each in results if isinstance(each, ApplicationAdvice)]
    applications.sort(key=_rank, reverse=True)
    return Advice(applications, [each for each in results if isinstance(each, Unread)])


def _query(query: Query, stages: Sequence[MeasuredStage], is_databricks: bool) -> QueryAdvice:
    busy = busy_millis(spans(query.stages)) / 1000
    findings = [*whole_application.failed(query, busy), *_of_stages(stages)]
    findings = _on_databricks(findings) if is_databricks else findings
    findings.sort(key=_rank, reverse=True)
    slots = max((stage.slots for stage in stages), default=1)
    start, end = query.submitted, query.completed
    return QueryAdvice(
        id=query.id,
        title=first_line(query.description) or "without a description",
        seconds=max(end - start, 0) / 1000 if start is not None and end is not None else None,
        stage_seconds=busy,
        task_seconds=sum(stage.task_seconds for stage in stages),
        gain=combined(findings, busy, slots),
        with_apportion=combined([each for each in findings if each.helps], busy, slots),
        findings=findings,
        fingerprint=query.fingerprint,
        failure=first_line(query.failure) if query.failure else None,
    )


def _of_stages(stages: Sequence[MeasuredStage]) -> list[Finding]:
    return [
        dataclasses.replace(
            finding,
            query=stage.query,
            stage=stage.id,
            operators=stage.facts.operators,
            tables=stage.facts.tables,
        )
        for stage in stages
        if stage.task_seconds >= limits.MIN_TASK_SECONDS
        for finding in _findings(stage)
    ]


def _on_databricks(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without what Apportion would do, as it does not run there."""
    return [
        dataclasses.replace(
            each, helps=False, decided=None, settings={}, apportion="does not support Databricks."
        )
        for each in findings
    ]


def _findings(stage: MeasuredStage) -> Iterator[Finding]:
    layout = task_counts.decided(stage, stage.confs)
    yield from pressure.spill(stage, layout)
    yield from pressure.garbage_collection(stage)
    yield from pressure.fetch_wait(stage)
    yield from pressure.failures(stage, layout)
    yield from files.small_files(stage, layout)
    # The rules below look at one cause of idle slots after the other, and report the first one.
    about_tasks = [
        *task_counts.tiny_tasks(stage, layout),
        *task_counts.large_tasks(stage, layout),
        *files.small_scan_tasks(stage),
        *files.large_scan_tasks(stage),
    ]
    about_tasks = [
        each for each in about_tasks if each.gain.seconds_high >= limits.MIN_GAIN_SECONDS
    ]
    skewed = list(balance.skew(stage, layout))
    yield from about_tasks
    yield from skewed
    if not skewed and not stage.facts.engine:
        if not any(each.kind in _FEW_TASKS for each in about_tasks):
            yield from balance.idle_cores(stage, layout)
        if not about_tasks:
            yield from balance.last_wave(stage, layout)


_FEW_TASKS = {Kind.LARGE_TASKS, Kind.LARGE_SCAN_TASKS}


def _rank(advice: ApplicationAdvice | QueryAdvice | Finding) -> tuple[float, float]:
    return advice.gain.rank


def _notes(
    application: Application,
    is_supported: bool,
    is_databricks: bool,
    engines: set[str],
    has_decisions: bool,
) -> Iterator[str]:
    if not application.queries:
        yield NO_SQL
    if is_databricks:
        yield "Apportion does not support Databricks"
    elif not is_supported:
        yield f"Apportion needs Spark 3.5 or later; this is Spark {application.spark_version}"
    for name in sorted(engines):
        yield f"{name} replaces Spark's operators, so Apportion does not decide their tasks"
    if application.has_estimated_slots:
        yield ESTIMATED_SLOTS
    if has_decisions:
        yield "Apportion already decided tasks in this log"
