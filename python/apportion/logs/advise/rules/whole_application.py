"""Findings about an application: failed queries, repeated scans, and work outside of SQL."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from apportion._util.units import count_text, first_line, seconds_text, size_text
from apportion.logs.advise.model.findings import Finding, Gain, Kind, percent_text
from apportion.logs.advise.model.plan_facts import ScannedFiles
from apportion.logs.advise.model.stages import MeasuredStage
from apportion.logs.advise.rules import limits
from apportion.logs.eventlog import Query

FAILED = "failed-query"
_MOST_NAMES = 3
# Calls of a reader, which lists files and reads their schemas.
_READS = {"csv", "json", "load", "orc", "parquet", "text"}
_LONGEST_FAILURE = 300
# Formats that Spark reads from the first to the last byte, for any number of columns.
_ROWS = ("csv", "json", "text", "xml", "avro")


def failed(query: Query, seconds: float) -> Iterator[Finding]:
    """Find a query that failed, so that its time is lost. `seconds` is the time of its stages."""
    if not query.failure:
        return
    lost = sum(
        sum(stage.task_millis) + stage.wasted_millis + stage.killed_millis for stage in query.stages
    )
    error = first_line(query.failure)[:_LONGEST_FAILURE] or "without a message"
    yield Finding(
        kind=Kind.FAILED_QUERY,
        cause=FAILED,
        short="failed",
        text=f"It failed after {seconds_text(lost / 1000)} of task time: {error}",
        apportion="does not change failures.",
        without=["read the whole error on the query's page in Spark's UI"],
        gain=Gain(0, seconds, 0, lost / 3_600_000),
        evidence={"lost_task_seconds": lost / 1000, "stage_seconds": seconds},
        query=query.id,
    )


def outside_of_sql(stages: Sequence[MeasuredStage], sql_seconds: float) -> Iterator[Finding]:
    """Find applications that work outside of SQL. `sql_seconds` is the task time of queries."""
    seconds = sum(stage.task_seconds for stage in stages)
    every = seconds + sql_seconds
    if seconds < max(limits.MIN_SHUFFLE_TASK_SECONDS, every * limits.MIN_OUTSIDE_SHARE):
        return
    by_name: dict[str, list[MeasuredStage]] = {}
    for stage in stages:
        by_name.setdefault(stage.name, []).append(stage)
    longest = sorted(by_name.items(), key=lambda named: -_seconds(named[1]))[:_MOST_NAMES]
    calls = "; ".join(
        f"{name} ({count_text(len(own), 'stage')}, {seconds_text(_seconds(own))})"
        for name, own in longest
    )
    scanned = sum(sum(stage.input_bytes) for stage in stages)
    yield Finding(
        kind=Kind.OUTSIDE_OF_SQL,
        short=f"{percent_text(seconds / every)} of the task time is outside of SQL",
        text=f"{count_text(len(stages), 'stage')} outside of SQL took {seconds_text(seconds)} of "
        f"{seconds_text(every)} of task time. The longest calls: {calls}."
        f"{f' They scanned {size_text(scanned)}.' if scanned else ''}",
        apportion="does not change stages outside of SQL.",
        without=_fixes_outside([name for name, _ in longest]),
        evidence={
            "stages": len(stages),
            "task_seconds": seconds,
            "all_task_seconds": every,
            "scanned_bytes": scanned,
        },
    )


def reads_schema(name: str) -> bool:
    """Return whether a call lists files and reads their schemas: `load at report.py:7`."""
    return name.partition(" at ")[0] in _READS


def _fixes_outside(names: Sequence[str]) -> list[str]:
    """Return what to do about stages with these names."""
    reads = set(map(reads_schema, names))
    schemas = "a schema for each read, or tables of a catalog, so that Spark reads no file for it"
    code = "tune these calls in their code, as settings of Spark SQL do not change their tasks"
    return [
        *([schemas] if True in reads else []),
        *([code] if False in reads else []),
    ]


def _seconds(stages: Sequence[MeasuredStage]) -> float:
    return sum(stage.task_seconds for stage in stages)


@dataclasses.dataclass(frozen=True)
class Scan:
    """A stage that scans files of one source."""

    source: ScannedFiles
    files: int
    file_bytes: int
    bytes: int
    """Bytes that its tasks read."""
    task_seconds: float
    query: int | None


def scan_of(stage: MeasuredStage) -> Scan | None:
    """Return the scan of a stage; None without files, and for several scans in one stage."""
    facts, size = stage.facts, sum(stage.input_bytes)
    # The bytes of several scans cannot be told apart.
    if len(facts.sources) != 1 or not (facts.files and size):
        return None
    (source,) = facts.sources
    return Scan(source, facts.files, facts.file_bytes, size, stage.task_seconds, stage.query)


def repeated_scans(scans: Sequence[Scan], all_task_seconds: float) -> Iterator[Finding]:
    """Find files that several stages scan. `all_task_seconds` is the task time of all queries."""
    same: dict[tuple[ScannedFiles, int, int], list[Scan]] = {}
    for scan in scans:
        # Scans of other partitions of a table have other files.
        same.setdefault((scan.source, scan.files, scan.file_bytes), []).append(scan)
    enough = max(limits.MIN_SHUFFLE_TASK_SECONDS, all_task_seconds * limits.MIN_OUTSIDE_SHARE)
    for (source, files, file_bytes), own in same.items():
        seconds = sum(scan.task_seconds for scan in own)
        again = seconds - max(scan.task_seconds for scan in own)
        if len(own) < limits.MIN_SCANS or again < enough:
            continue
        size, queries = sum(scan.bytes for scan in own), len({scan.query for scan in own})
        has_columns = source.format not in _ROWS
        yield Finding(
            kind=Kind.REPEATED_SCANS,
            short=f"{source.name} is scanned {len(own)} times",
            text=f"{count_text(len(own), 'stage')} of {count_text(queries, 'query')} scanned the "
            f"{count_text(files, 'file')} of {source.name}, which have {size_text(file_bytes)}. "
            f"These stages took {seconds_text(seconds)} of task time.",
            apportion="does not change how often files are scanned.",
            without=[
                "cache() after the scan, if the rows fit the memory",
                "a smaller table with the rows and columns that the queries need"
                if has_columns
                else "the same rows in Parquet files, which Spark reads by column",
            ],
            evidence={
                "scans": len(own),
                "queries": queries,
                "files": files,
                "file_bytes": file_bytes,
                "scanned_bytes": size,
                "task_seconds": seconds,
                "repeated_task_seconds": again,
            },
            tables=[source.name],
        )
