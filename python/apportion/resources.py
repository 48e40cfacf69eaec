"""Slots: what a query needs of them, what is there, and what is asked for.

A slot runs one task at a time; stages of the same resource profile share slots.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import TYPE_CHECKING, Any

from apportion._spark import jvm
from apportion._util import checks

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


@dataclasses.dataclass(frozen=True)
class Requirement:
    """Slots that a stage, a group of stages or a query declares."""

    min: int
    """Without these it does not start."""
    target: int
    """As many as it would like."""
    max: int
    """It can use no more."""

    def __str__(self) -> str:
        return f"{self.min} / {self.target} / {self.max}"


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a slot is made of: its share of an executor."""

    cores: float
    memory_bytes: int
    overhead_bytes: int
    custom: dict[str, float]
    """Amounts of other resources, such as gpu."""


@dataclasses.dataclass(frozen=True)
class PlannedStage:
    """A stage of a query that has not run."""

    number: int
    kind: str
    """What becomes of its rows: shuffle, broadcast, subquery or result."""
    operator: str
    """What reads its shuffles or scans its files."""
    reads: list[int]
    """Numbers of the stages that it reads."""
    depth: int
    """Stages that run before it, one after the other: those of equal depth can run at once."""
    profile: int
    """Id of its resource profile."""
    bytes: int | None
    """That it is likely to read; None if these cannot be estimated."""
    tasks: int
    """That it is likely to have."""
    requirement: Requirement
    spec: Spec
    slots: int | None
    """Its share when all stages of its depth run at once; None where these need more at least."""
    why: str
    """What its tasks and requirement come from."""


@dataclasses.dataclass(frozen=True)
class Group:
    """The stages that share slots, together."""

    profile: int
    requirement: Requirement
    """The largest of each bound of its stages."""
    spec: Spec
    """The sum of its stages'."""
    slots: int | None
    """Its share of the slots; None if these are fewer than the groups need at least."""


@dataclasses.dataclass(frozen=True)
class QuerySlots:
    """The slots that a query would need, as far as it is known before it runs."""

    stages: list[PlannedStage]
    """Each after those that it reads."""
    groups: list[Group]
    requirement: Requirement
    """The sum over the groups."""
    at_once: int
    """Tasks of all stages that can run at once, where these are most: more slots are idle."""
    slots: int
    """The slots that were dealt."""


@dataclasses.dataclass(frozen=True)
class Change:
    """What changed, for a query or, without one, for the application."""

    at: datetime.datetime
    query: int | None
    """Spark's SQL execution id."""
    phase: str | None
    """Where the query stands: waiting, stabilizing, running, rescaling, failed or ended."""
    requirement: Requirement | None
    slots: int
    """Of the registered executors."""
    slots_lost: int
    """That the query had before and are gone."""
    declared: int | None
    """Slots that the cluster is asked for; None if it is not."""


@dataclasses.dataclass(frozen=True)
class State:
    """Where an application stands with its slots."""

    slots: int | None
    """Of the registered executors; None before the first query."""
    declared: int | None
    queries: dict[int, Change]
    """The last change of each query that has not ended, by its id."""


def plan(spark: SparkSession, sql: str, slots: int | None = None) -> QuerySlots:
    """Return the slots that a query would need, without running it; on Spark Connect too.

    `slots` are dealt to the stages that can run at once, as many as there are now if it is None.
    Raises `InputError` for a number that is not 1 or more, `ApportionError` when the session has no
    Apportion in it, and what Spark raises for a query that it cannot plan.
    """
    if slots is not None:
        checks.check("slots", slots)
    rows = jvm.table(spark, "apportion_slots", *([sql] if slots is None else [sql, slots]))
    query = next(row for row in rows if row["kind"] == "query")
    return QuerySlots(
        stages=[_stage(row) for row in rows if row["stage"] is not None],
        groups=[_group(row) for row in rows if row["kind"] == "group"],
        requirement=_requirement(query),
        at_once=query["tasks"],
        slots=query["slots"],
    )


def history(spark: SparkSession) -> list[Change]:
    """Return the last changes of the application's slots, oldest first; on Spark Connect too."""
    return [
        Change(
            row["at"],
            row["query"],
            row["phase"],
            _requirement(row) if row["requirement"] is not None else None,
            row["slots"],
            row["slots_lost"],
            row["declared"],
        )
        for row in jvm.table(spark, "apportion_resources")
    ]


def state(spark: SparkSession) -> State:
    """Return the slots that are there now, those that are asked for, and where queries stand."""
    changes = history(spark)
    last: dict[int, Change] = {each.query: each for each in changes if each.query is not None}
    return State(
        slots=changes[-1].slots if changes else None,
        declared=changes[-1].declared if changes else None,
        queries={query: each for query, each in last.items() if each.phase != "ended"},
    )


def requirement_from_row(record: dict[str, Any] | None) -> Requirement | None:
    """Return the requirement that a record has, None for a record of a log that has none."""
    return Requirement(**record) if record else None


def _stage(row: Row) -> PlannedStage:
    return PlannedStage(
        number=row["stage"],
        kind=row["kind"],
        operator=row["operator"],
        reads=list(row["reads"]),
        depth=row["depth"],
        profile=row["profile"],
        bytes=row["bytes"],
        tasks=row["tasks"],
        requirement=_requirement(row),
        spec=_spec(row),
        slots=row["slots"],
        why=row["why"],
    )


def _group(row: Row) -> Group:
    return Group(row["profile"], _requirement(row), _spec(row), row["slots"])


def _requirement(row: Row) -> Requirement:
    return Requirement(**row["requirement"].asDict())


def _spec(row: Row) -> Spec:
    return Spec(**row["spec"].asDict())
