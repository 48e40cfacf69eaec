"""Task slots: what queries need, what the executors have, and what is requested.

A slot runs one task at a time. Stages with the same resource profile share slots.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any

from apportion._spark import jvm
from apportion._util import checks
from apportion.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


@dataclasses.dataclass(frozen=True)
class Requirement:
    """Number of slots that a stage, a group of stages or a query declares."""

    min: int
    """Slots needed to start."""
    target: int
    """Slots wanted."""
    max: int
    """Most slots that can be used."""

    def __str__(self) -> str:
        return f"{self.min} / {self.target} / {self.max}"


@dataclasses.dataclass(frozen=True)
class Spec:
    """Resources of one slot: its share of an executor."""

    cores: float
    memory_bytes: int
    overhead_bytes: int
    custom: dict[str, float]
    """Amounts of other resources, such as gpu."""


@dataclasses.dataclass(frozen=True)
class PlannedStage:
    """Stage of a query that has not run yet."""

    number: int
    kind: str
    """Destination of the stage's rows: shuffle, broadcast, subquery or result."""
    operator: str
    """Operator that reads the shuffles or scans the files."""
    reads: list[int]
    """Numbers of the stages that this stage reads."""
    depth: int
    """Number of stages in a row that must end first. Stages of equal depth can run together."""
    profile: int
    """Id of the resource profile."""
    bytes: int | None
    """Estimated input size; None if it cannot be estimated."""
    tasks: int
    """Estimated number of tasks."""
    requirement: Requirement
    spec: Spec
    slots: int | None
    """Share of the slots when all stages of this depth run together; None if their minimums do not
    fit."""
    why: str
    """Reason for the number of tasks and the requirement."""


@dataclasses.dataclass(frozen=True)
class Group:
    """Stages that share slots because they have the same resource profile."""

    profile: int
    requirement: Requirement
    """Largest min, target and max of the stages."""
    spec: Spec
    """Sum of the stages' specs."""
    slots: int | None
    """Share of the slots; None if there are fewer slots than the groups' minimums."""


@dataclasses.dataclass(frozen=True)
class TimedStage:
    """Stage of a plan to end in time. Times are seconds from the start of the query."""

    stage: int
    reads: list[int]
    """Stages that must end before."""
    tasks: int
    slots: int
    """Most slots that the stage uses."""
    start: float
    seconds: float
    """Time from its first task to its last."""


@dataclasses.dataclass(frozen=True)
class TimedPlan:
    """Smallest number of slots with which a query ends in time, and when its stages run."""

    finish_within: float
    """Seconds within which the query must end."""
    source: str
    """Source of the stages' times: earlier runs, bytes or unknown."""
    slots: int | None
    """Number of slots; None if the times are unknown."""
    seconds: float | None
    """Expected time of the query with these slots."""
    in_time: bool | None
    """Whether that is early enough. Otherwise, more slots do not help."""
    stages: list[TimedStage]


@dataclasses.dataclass(frozen=True)
class QuerySlots:
    """Slots that a query needs, estimated before it runs."""

    stages: list[PlannedStage]
    """Stages in an order in which each stage follows the stages that it reads."""
    groups: list[Group]
    requirement: Requirement
    """Sum of the groups' requirements."""
    at_once: int
    """Peak concurrency: the most tasks that can run at the same time. More slots stay idle."""
    slots: int
    """Number of slots that were distributed to the stages."""
    timed: TimedPlan | None = None
    """Plan to end in time; None if no time was given."""


@dataclasses.dataclass(frozen=True)
class Change:
    """Change of a query's slots, or of the application's slots if there is no query."""

    at: datetime.datetime
    query: int | None
    """Spark's SQL execution id."""
    phase: str | None
    """Phase of the query: waiting, stabilizing, running, rescaling, failed or ended."""
    requirement: Requirement | None
    slots: int
    """Slots of the registered executors."""
    slots_lost: int
    """Slots that the query had before and has lost."""
    declared: int | None
    """Slots requested from the cluster; None if none are requested."""
    finish_within: float | None = None
    """Seconds within which the query must end; None if it has no deadline."""
    planned: float | None = None
    """Seconds that the query is expected to take in all; None if they are unknown."""
    elapsed: float | None = None
    """Seconds since the query began; None if it has no deadline."""


@dataclasses.dataclass(frozen=True)
class State:
    """Current slots of an application."""

    slots: int | None
    """Slots of the registered executors; None before the first query."""
    declared: int | None
    queries: dict[int, Change]
    """Last change of each query that has not ended, by query id."""


def plan(
    spark: SparkSession, sql: str, slots: int | None = None, *, finish_within: str | None = None
) -> QuerySlots:
    """Return the slots that a query needs, without running it. Works on Spark Connect too.

    `slots` is the number to distribute to the stages that can run together; None means the slots of
    the registered executors. With `finish_within`, such as "10 min", the result has the smallest
    number of slots with which the query ends in time.

    Raises `InputError` if `sql` is not text, `slots` is below 1 or `finish_within` is not a time.
    Raises `ApportionError` if the session runs without Apportion, and Spark's own error if Spark
    cannot plan the query.
    """
    if not isinstance(sql, str):
        raise InputError(f"sql is {sql!r}: allowed is text with a query")
    if slots is not None:
        slots = checks.check("slots", slots)
    if finish_within is not None:
        _check_time(finish_within)
    given = [sql, slots, finish_within]
    while given[-1] is None:
        given.pop()
    rows = jvm.table(spark, "apportion_slots", *given)
    query = next(row for row in rows if row["kind"] == "query")
    return QuerySlots(
        stages=[
            PlannedStage(**_fields(PlannedStage, row)) for row in rows if row["stage"] is not None
        ],
        groups=[Group(**_fields(Group, row)) for row in rows if row["kind"] == "group"],
        requirement=Requirement(**query["requirement"].asDict()),
        at_once=query["tasks"],
        slots=query["slots"],
        timed=None if query["plan"] is None else _timed(query["plan"]),
    )


def history(spark: SparkSession) -> list[Change]:
    """Return the last changes of the application's slots, oldest first.

    Works on Spark Connect too.
    """
    rows = jvm.table(spark, "apportion_resources")
    return [Change(**_fields(Change, row)) for row in rows]


def state(spark: SparkSession) -> State:
    """Return the current slots, the requested slots, and the phase of each running query."""
    changes = history(spark)
    last: dict[int, Change] = {
        change.query: change for change in changes if change.query is not None
    }
    return State(
        slots=changes[-1].slots if changes else None,
        declared=changes[-1].declared if changes else None,
        queries={query: change for query, change in last.items() if change.phase != "ended"},
    )


def _check_time(finish_within: str) -> None:
    # `import apportion` does not load sqlglot.
    from apportion.hints.grammar import is_allowed_time, read_time

    seconds = read_time(finish_within) if isinstance(finish_within, str) else None
    if seconds is None or not is_allowed_time(seconds):
        raise InputError(
            f"finish_within is {finish_within!r}: allowed is a time from 1 second to 365 days, "
            "such as '10 min'"
        )


def _timed(row: Row) -> TimedPlan:
    fields = row.asDict()
    stages = [TimedStage(**stage.asDict()) for stage in fields.pop("stages") or []]
    return TimedPlan(**fields, stages=stages)


def _fields(kind: type[Change | Group | PlannedStage], row: Row) -> dict[str, Any]:
    """Return the fields of a class. A newer extension may have more columns."""
    columns = {each.name: each.name for each in dataclasses.fields(kind)}
    if kind is PlannedStage:
        columns["number"] = "stage"
    values = {name: row[column] for name, column in columns.items()}
    for name, inner in (("requirement", Requirement), ("spec", Spec)):
        if values.get(name) is not None:
            values[name] = inner(**values[name].asDict())
    return values
