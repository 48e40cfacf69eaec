"""Findings with their evidence and gains, the advice for queries and logs, and gains as text."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping
from typing import Any

from apportion._util.units import core_unit, count_text, number_text, seconds_text
from apportion.logs.eventlog import Unread
from apportion.logs.plain import plain

Number = int | float


class Kind(enum.Enum):
    """Kind of a finding: its name for programs, and its title for people."""

    TINY_TASKS = "tiny-tasks", "Too many tiny tasks"
    LARGE_TASKS = "large-tasks", "Too few, large tasks"
    SPILL = "spill", "Spill to disk"
    OUT_OF_MEMORY = "out-of-memory", "Tasks out of memory"
    GARBAGE_COLLECTION = "garbage-collection", "Garbage collection"
    SKEW = "skew", "Skewed tasks"
    IDLE_CORES = "idle-cores", "Idle cores"
    LAST_WAVE = "last-wave", "Last wave"
    FETCH_WAIT = "fetch-wait", "Waiting for shuffle data"
    FAILED_TASKS = "failed-tasks", "Failed tasks"
    SMALL_FILES = "small-files", "Small output files"
    SMALL_SCAN_TASKS = "small-scan-tasks", "Small scan tasks"
    LARGE_SCAN_TASKS = "large-scan-tasks", "Large scan tasks"
    ADAPTIVE_EXECUTION_OFF = "adaptive-execution-off", "Adaptive execution is off"
    FIXED_PARTITIONS = "fixed-partitions", "Fixed number of shuffle partitions"
    REPEATED_SCANS = "repeated-scans", "Files that are scanned again and again"
    OUTSIDE_OF_SQL = "outside-of-sql", "Work outside of SQL"
    FAILED_QUERY = "failed-query", "Failed query"

    title: str

    def __new__(cls, name: str, title: str) -> Kind:
        kind = object.__new__(cls)
        kind._value_ = name
        kind.title = title
        return kind


@dataclasses.dataclass(frozen=True)
class Gain:
    """Bounds of the time that a fix can save.

    Core-hours are the saved seconds times the task slots of the application, because idle slots
    cost as much as busy ones. For failed tasks, they are the time of the failed attempts.
    """

    seconds_low: float = 0.0
    seconds_high: float = 0.0
    core_hours_low: float = 0.0
    core_hours_high: float = 0.0

    @property
    def rank(self) -> tuple[float, float]:
        """Order of gains: the means of the bounds, in core-hours and in seconds."""
        return (
            (self.core_hours_low + self.core_hours_high) / 2,
            (self.seconds_low + self.seconds_high) / 2,
        )

    @property
    def is_known(self) -> bool:
        """Whether the log shows any gain."""
        return self.seconds_high > 0 or self.core_hours_high > 0


NO_GAIN = Gain()
NO_SQL = "no SQL in this log"


def largest(gains: Iterable[Gain]) -> Gain:
    """Return the largest value of each bound. Gains of one stage overlap, so they do not add up."""
    rows = [dataclasses.astuple(gain) for gain in gains]
    return Gain(*map(max, zip(*rows, strict=True))) if rows else NO_GAIN


def total(
    gains: Iterable[Gain], most_seconds: float = math.inf, most_core_hours: float = math.inf
) -> Gain:
    """Return the sum of gains, where each bound is limited by the time that was used."""
    rows = [dataclasses.astuple(gain) for gain in gains]
    low, high, core_low, core_high = map(sum, zip(*rows, strict=True)) if rows else (0.0,) * 4
    return Gain(
        min(low, most_seconds),
        min(high, most_seconds),
        min(core_low, most_core_hours),
        min(core_high, most_core_hours),
    )


def gain_text(gain: Gain) -> str:
    """Return a gain with its bounds, in seconds and core time.

    >>> gain_text(Gain(1, 2, 0.5, 1))
    '1.0 s to 2.0 s (0.5 to 1.0 core-hours)'
    >>> gain_text(Gain(0, 2, 0, 1))
    'up to 2.0 s, or 1.0 core-hours'
    """
    if not gain.is_known:
        return "not known from this log"
    low, high = seconds_text(gain.seconds_low), seconds_text(gain.seconds_high)
    core_time, unit = core_time_bounds(gain)
    if low == "0 ms" and core_time.startswith("up to "):
        return f"up to {high}, or {core_time.removeprefix('up to ')} core-{unit}"
    return f"{_bounds(low, high)} ({core_time} core-{unit})"


def _bounds(low: str, high: str) -> str:
    if low == high:
        return high
    return f"up to {high}" if low in ("0", "0 ms") else f"{low} to {high}"


def core_time_bounds(gain: Gain) -> tuple[str, str]:
    """Return the bounds of the saved core time, and their unit: `seconds`, `minutes` or `hours`.

    >>> core_time_bounds(Gain(1, 2, 0, 0.05))
    ('up to 3.0', 'minutes')
    """
    divisor, unit = core_unit(gain.core_hours_high * 3600)
    low = number_text(gain.core_hours_low * 3600 / divisor)
    high = number_text(gain.core_hours_high * 3600 / divisor)
    return _bounds(low, high), unit


def percent_text(share: float) -> str:
    """Return a share as a percentage.

    >>> percent_text(0.123)
    '12 %'
    """
    return f"{share * 100:.0f} %"


@dataclasses.dataclass(frozen=True)
class Decided:
    """Number of tasks that Apportion decides by the bytes of the shuffles or files."""

    tasks: int
    """Number for the bytes that the tasks read."""
    tasks_high: int
    """Number for the largest bytes that Spark can have recorded for the shuffles."""
    target_bytes: int
    """Target size per task."""
    total_bytes: int
    largest_task_low: int
    """Lower bound of the bytes of the largest task."""
    largest_task_high: int | None
    """Upper bound for the same shuffle partitions; None if the log does not show one."""
    uses_slots: int | None = None
    """Task slots that raised the number; None if the bytes alone set it."""

    @property
    def why(self) -> str:
        """What sets the number, in words."""
        return f"to use {self.uses_slots} task slots" if self.uses_slots else "by bytes"

    @property
    def text(self) -> str:
        """The number of tasks in words."""
        if self.tasks == self.tasks_high:
            return count_text(self.tasks, "task")
        return f"{self.tasks} to {self.tasks_high} tasks"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """A problem that costs time, and how to fix it."""

    kind: Kind
    short: str
    """The problem in a few words, such as `200 tasks where 4 would do`."""
    text: str
    """What was measured, in words."""
    apportion: str
    """What Apportion does about it, in words."""
    without: list[str]
    """Settings or hints that help without Apportion."""
    helps: bool = False
    """Whether Apportion decides differently from the logged run."""
    gain: Gain = NO_GAIN
    evidence: dict[str, Number]
    """The measured numbers by name."""
    decided: Decided | None = None
    query: int | None = None
    """None for a finding about the whole application, and about work outside of SQL."""
    stage: int | None = None
    """Id of the stage in Spark's UI; None for a finding about a query or an application."""
    operators: list[str] = dataclasses.field(default_factory=list)
    """Operators of the stage, from the top of the plan."""
    tables: list[str] = dataclasses.field(default_factory=list)
    """Tables or paths that the stage scans."""
    failure_reasons: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Failed attempts of tasks by the class of their error, or by Spark's name of the reason."""
    settings: dict[str, str] = dataclasses.field(default_factory=dict)
    """Settings of Apportion that help, by name; they are not its defaults."""
    cause: str | None = None
    """What other findings have as their cause too; None if the kind and the fix are the cause."""


@dataclasses.dataclass(frozen=True)
class QueryAdvice:
    """Findings of a query, with the largest gain first."""

    id: int
    title: str
    seconds: float | None
    """Duration; None if the query has not ended."""
    stage_seconds: float
    """Time in which at least one of its stages ran."""
    task_seconds: float
    gain: Gain
    with_apportion: Gain
    """The part of the gain in findings where Apportion decides differently."""
    findings: list[Finding]
    fingerprint: str | None = None
    """Identity of the query in policy files; None if the log does not have it."""
    failure: str | None = None
    """First line of the error; None if the query did not fail."""


@dataclasses.dataclass(frozen=True)
class ApplicationAdvice:
    """Advice for the application of one log."""

    log: str
    id: str
    name: str
    spark_version: str
    slots: int
    """Largest number of task slots."""
    stage_seconds: float
    """Time in which at least one stage of a query ran."""
    task_seconds: float
    """Task time of all queries: the time from the launch to the end of each task that succeeded,
    as Spark's page on executors shows it."""
    other_task_seconds: float
    """Task time of stages outside of SQL."""
    gain: Gain
    with_apportion: Gain
    findings: list[Finding]
    """Findings about the configuration, and about stages outside of SQL."""
    queries: list[QueryAdvice]
    """All queries, with the largest gain first."""
    notes: list[str]
    """Remarks, such as omitted parts of the log."""
    is_supported: bool = True
    """Whether Apportion supports this version and distribution of Spark."""

    @property
    def count(self) -> int:
        """Number of findings."""
        return len(self.all_findings)

    @property
    def all_findings(self) -> list[Finding]:
        """The findings of the application and of its queries."""
        return [*self.findings, *(each for query in self.queries for each in query.findings)]


@dataclasses.dataclass(frozen=True)
class Job:
    """The applications with one name, which are runs of the same job."""

    name: str
    logs: int
    findings: int
    gain: Gain
    with_apportion: Gain


@dataclasses.dataclass(frozen=True)
class Advice:
    """Advice for one or more logs, with the largest gain first."""

    applications: list[ApplicationAdvice]
    unread: list[Unread]

    @property
    def gain(self) -> Gain:
        """Sum of the gains of all applications."""
        return total(application.gain for application in self.applications)

    @property
    def with_apportion(self) -> Gain:
        """The part of the gain in findings where Apportion decides differently."""
        return total(application.with_apportion for application in self.applications)

    @property
    def jobs(self) -> list[Job]:
        """The jobs with findings, with the largest gain first."""
        names = dict.fromkeys(each.name for each in self.applications if each.count)
        jobs = [self._job(name) for name in names]
        return sorted(jobs, key=lambda job: job.gain.rank, reverse=True)

    def _job(self, name: str) -> Job:
        runs = [each for each in self.applications if each.name == name]
        return Job(
            name=name,
            logs=len(runs),
            findings=sum(run.count for run in runs),
            gain=total(run.gain for run in runs),
            with_apportion=total(run.with_apportion for run in runs),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the advice as data for JSON."""
        return {
            "gain": dataclasses.asdict(self.gain),
            "with_apportion": dataclasses.asdict(self.with_apportion),
            "jobs": [plain(each) for each in self.jobs],
            "applications": [plain(each) for each in self.applications],
            "unread": [plain(each) for each in self.unread],
        }
