"""What an event log tells of an application."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Iterable, Iterator

from apportion.decision import Decision
from apportion.errors import ApportionError


@dataclasses.dataclass(frozen=True)
class LoggedDecision:
    """A decision, and what it was made from."""

    decision: Decision
    subpartition_bytes: list[list[int]]
    """For each shuffle that is read, the bytes of its subpartitions as stored; empty for scans."""
    subpartitions_per_sum: int = 1
    """More than 1 if the log has sums over so many neighbours only. `subpartition_bytes` then has
    the same average for each of them."""
    operators: list[int] = dataclasses.field(default_factory=list)
    """What the stage was planned from: places in the query's operators."""


@dataclasses.dataclass(frozen=True)
class Operator:
    """An operator of an optimized plan."""

    depth: int
    """In its plan's tree; a plan of a subquery begins again at 0."""
    name: str
    text: str
    start: int | None = None
    """Where in the query's text it comes from, `sql[start:end]`; None where nobody knows."""
    end: int | None = None


@dataclasses.dataclass
class PlanNode:
    """An operator of a physical plan."""

    name: str
    text: str
    """The operator with its arguments, as EXPLAIN has it."""
    metrics: dict[str, int]
    """Ids of its accumulators, by the metrics' names."""
    children: list[PlanNode]

    def walk(self) -> Iterator[PlanNode]:
        """Yield this operator and all below it, from the top."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclasses.dataclass
class Stage:
    """A stage that ran, one attempt of it, with its tasks that succeeded."""

    id: int
    attempt: int
    name: str
    parents: list[int]
    tasks_planned: int
    query: int | None
    profile: int = 0
    """Of resources: stages with the same profile share slots."""
    submitted: int | None = None
    """When, in milliseconds since 1970; as all times here."""
    completed: int | None = None
    failure: str | None = None
    accumulators: set[int] = dataclasses.field(default_factory=set)
    """Ids of the metrics that its tasks have updated: these tell which operators it ran."""
    launched: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    """Of each task, when; the arrays below are in the same order."""
    finished: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    run_millis: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    input_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    shuffle_read_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    shuffle_written_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    failed_tasks: int = 0


@dataclasses.dataclass
class Query:
    """A SQL execution."""

    id: int
    description: str
    submitted: int | None = None
    completed: int | None = None
    failure: str | None = None
    plan: PlanNode | None = None
    """The plan it ended with, as far as the log goes."""
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    """Confs of its session that are not as the application's."""
    driver_metrics: dict[int, int] = dataclasses.field(default_factory=dict)
    """Values of metrics that the driver counts, such as files of a scan, by accumulator."""
    sql: str | None = None
    """The text, if it was one and Apportion was on."""
    operators: list[Operator] = dataclasses.field(default_factory=list)
    """Those of the optimized plan, each after its parent; empty without Apportion."""
    decisions: list[LoggedDecision] = dataclasses.field(default_factory=list)
    stages: list[Stage] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Application:
    """All that was read of a log."""

    id: str = ""
    name: str = ""
    spark_version: str = ""
    started: int | None = None
    ended: int | None = None
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    """Spark's properties when it started."""
    queries: dict[int, Query] = dataclasses.field(default_factory=dict)
    stages: list[Stage] = dataclasses.field(default_factory=list)
    """All stages, those of no query too."""
    slots: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """How many tasks could run at once, from a time on: `(milliseconds, cores)`."""
    executor_cores: int = 0
    """Cores of the executor that was added last; 0 if none was."""
    skipped: list[str] = dataclasses.field(default_factory=list)
    """What was left out, and why."""

    def numbered(self, numbers: Iterable[int], source: str) -> list[Query]:
        """Return the queries of these numbers, in their order; `source` is for messages.

        Raises `ApportionError` for a number that is not there.
        """
        known = self.queries
        found: list[Query] = []
        for number in numbers:
            if number not in known:
                there = f"{min(known)} to {max(known)}" if known else "none"
                raise ApportionError(f"{source} has no query {number}; there are {there}")
            found.append(known[number])
        return found
