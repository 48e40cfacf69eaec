"""The content of an event log: an application with its queries, stages and decisions."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

from apportion.decision import NOTHING_HELD, Decision, HeldRows
from apportion.errors import ApportionError
from apportion.logs.stream_record import StreamRecord


@dataclasses.dataclass(frozen=True)
class LoggedShuffle:
    """A shuffle of a decision. Logs without these fields have the defaults."""

    bytes: list[int]
    """Stored bytes of each shuffle partition."""
    exchange_metric: int | None = None
    """Id of the metric `data size` of the exchange, which identifies it in the plan."""
    range_partitioned: bool = False
    """Whether partitions are ranges of keys, as for a global sort, instead of hashes."""
    splittable: bool = False
    """Whether tasks may read parts of a partition."""
    held: HeldRows = NOTHING_HELD
    """Execution memory of the reading stage for one stored byte."""
    partitions_set_by: str | None = None
    """`adaptive` if map tasks decided how finely they wrote, `spark` if Spark wrote the shuffle;
    None if the query or an operator set the number. Logs of older versions have other texts."""
    groups: list[int] = dataclasses.field(default_factory=list)
    """Number of groups of partitions of each level of the tree, in ascending order; empty if Spark
    wrote the shuffle."""
    bytes_by_level: list[int] = dataclasses.field(default_factory=list)
    """Stored bytes in the blocks of each level."""

    @property
    def levels(self) -> list[int]:
        """Numbers of groups of the levels that have bytes."""
        return [
            groups for groups, size in zip(self.groups, self.bytes_by_level, strict=True) if size
        ]


@dataclasses.dataclass(frozen=True)
class LoggedPolicy:
    """Values that a decision was made with; see `io.apportion.decision.Policy`. Sizes are bytes."""

    data_volume_per_task: int
    broadcast_ratio: float
    min_parallelism: int
    max_parallelism: int
    min_task_volume: int
    ranges: str
    rounding: str
    parallelism: int | None = None
    task_memory: int | None = None
    """Bytes of execution memory that the rows of a task may fill; None if memory sets no limit."""


@dataclasses.dataclass
class LoggedDecision:
    """A decision with its inputs."""

    decision: Decision
    shuffles: list[LoggedShuffle] = dataclasses.field(default_factory=list)
    """The shuffles that are read; empty for scans."""
    subpartitions_per_sum: int = 1
    """Number of neighbouring partitions that share one logged sum. If it is above 1, `bytes` of a
    shuffle has averages."""
    operators: list[int] = dataclasses.field(default_factory=list)
    """Operators that the stage was planned from, as places in `Query.operators`."""
    source_kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    """Kind of each entry of `Decision.sources`: `hint`, `session` or another one. Defaults may be
    missing."""
    policy: LoggedPolicy | None = None
    """None for a group that was left unchanged, and in older logs."""
    scan_metric: int | None = None
    """Id of the metric `number of output rows` of a scan, which identifies it in the plan."""

    @property
    def subpartition_bytes(self) -> list[list[int]]:
        """Stored bytes of the partitions of each shuffle."""
        return [shuffle.bytes for shuffle in self.shuffles]


@dataclasses.dataclass(frozen=True)
class Operator:
    """An operator of an optimized plan."""

    depth: int
    """Depth in the tree of the plan. The plan of a subquery starts again at 0."""
    name: str
    text: str
    start: int | None = None
    """Start of the SQL text that it comes from, `sql[start:end]`; None if it is not known."""
    end: int | None = None


@dataclasses.dataclass
class PlanNode:
    """An operator of a physical plan."""

    name: str
    text: str
    """The operator with its arguments, as in EXPLAIN."""
    metrics: dict[str, int]
    """Ids of its metrics (Spark's accumulators), by name."""
    children: list[PlanNode]

    def walk(self) -> Iterator[PlanNode]:
        """Yield this operator and all operators below it, from the top."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


_Flat = list[tuple[str, str, dict[str, int], int]]


def _flat(plan: PlanNode) -> _Flat:
    """Return the operators of a plan from the top, with the number of children of each."""
    return [(node.name, node.text, node.metrics, len(node.children)) for node in plan.walk()]


def _tree(flat: _Flat) -> PlanNode:
    """Return the plan of a list that `_flat` returned."""
    # From the end, the children of an operator are complete before the operator.
    complete: list[PlanNode] = []
    for name, text, metrics, count in reversed(flat):
        children = complete[len(complete) - count :]
        del complete[len(complete) - count :]
        complete.append(PlanNode(name, text, metrics, children[::-1]))
    return complete[0]


@dataclasses.dataclass
class Stage:
    """One attempt of a stage, with its successful tasks. Times are milliseconds since 1970."""

    id: int
    attempt: int
    name: str
    parents: list[int]
    tasks_planned: int
    query: int | None
    profile: int = 0
    """Id of the resource profile. Stages with the same profile share slots."""
    submitted: int | None = None
    completed: int | None = None
    failure: str | None = None
    accumulators: dict[int, int] = dataclasses.field(default_factory=dict)
    """Metrics that its tasks updated, by id. They show which operators the stage ran."""
    launched: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    """Launch time of each task. The arrays below have the same order."""
    finished: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    run_millis: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    """Time in the code of each task, as Spark's page on a stage shows it."""
    input_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    shuffle_read_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    shuffle_written_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    output_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    """Bytes that each task wrote to files."""
    spilled_bytes: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    """Bytes that each task spilled to disk."""
    gc_millis: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    fetch_wait_millis: array[int] = dataclasses.field(default_factory=lambda: array("q"))
    on_new_executors: list[int] = dataclasses.field(default_factory=list)
    """Places of tasks that were launched before any task of their executor had ended."""
    peak_memory: int = 0
    """Most bytes of execution memory of a task."""
    failed_tasks: int = 0
    """Attempts of tasks that failed. An attempt that Spark killed is no failure."""
    memory_failures: int = 0
    """Attempts of tasks that ran out of memory."""
    wasted_millis: int = 0
    """Run time of the attempts that failed."""
    failure_reasons: dict[str, int] = dataclasses.field(default_factory=dict)
    """Number of failed attempts by the class of their error, or by Spark's name of the reason."""
    killed_millis: int = 0
    """Run time of the attempts that Spark killed because it no longer needed them, such as the
    slower one of two."""

    @property
    def tasks(self) -> int:
        """Number of tasks that succeeded."""
        return len(self.launched)

    @property
    def task_millis(self) -> list[int]:
        """Time from the launch of each task to its end."""
        times = zip(self.launched, self.finished, strict=True)
        return [max(end - start, 0) for start, end in times]

    @property
    def collected_millis(self) -> int:
        """Time of garbage collection in all tasks."""
        # Each task counts the collections of its whole executor, also while its code is loaded.
        return sum(map(min, self.gc_millis, self.task_millis))


@dataclasses.dataclass
class Query:
    """A SQL execution."""

    id: int
    description: str
    submitted: int | None = None
    completed: int | None = None
    failure: str | None = None
    plan: PlanNode | None = None
    """The last plan in the log."""
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    """Confs of the session that differ from the application's confs."""
    driver_metrics: dict[int, int] = dataclasses.field(default_factory=dict)
    """Values of metrics that the driver counts, such as the files of a scan, by metric id."""
    sql: str | None = None
    """The SQL text; None for DataFrames and for queries that ran without Apportion."""
    fingerprint: str | None = None
    """Identity of the query in policy files; None without Apportion."""
    operators: list[Operator] = dataclasses.field(default_factory=list)
    """Operators of the optimized plan, each after its parent; empty without Apportion."""
    decisions: list[LoggedDecision] = dataclasses.field(default_factory=list)
    stages: list[Stage] = dataclasses.field(default_factory=list)

    def driver_metric(self, node: PlanNode, name: str) -> int:
        """Return a metric of an operator that the driver counts; 0 if it is not known."""
        return self.driver_metrics.get(node.metrics.get(name, -1), 0)

    def __getstate__(self) -> dict[str, Any]:
        # A plan can be too deep for the recursion of `pickle`.
        return {**self.__dict__, "plan": _flat(self.plan) if self.plan else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.plan = _tree(state["plan"]) if state["plan"] else None


@dataclasses.dataclass(frozen=True)
class Unread:
    """A log that could not be read."""

    log: str
    reason: str

    def __str__(self) -> str:
        return self.reason if self.log in self.reason else f"{self.log}: {self.reason}"

    @classmethod
    def killed(cls, log: str) -> Unread:
        """Return the entry of a log whose process was killed."""
        return cls(log, "its process was killed, probably because of its memory")


ESTIMATED_SLOTS = (
    "the log lacks executors, so the most tasks that ran at the same time count as task slots"
)


@dataclasses.dataclass
class Application:
    """The content of a log. Times are milliseconds since 1970."""

    id: str = ""
    name: str = ""
    spark_version: str = ""
    started: int | None = None
    ended: int | None = None
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    """Spark's properties at the start of the application."""
    queries: MutableMapping[int, Query] = dataclasses.field(default_factory=dict)
    """Queries by number. The queries of a large log are unpacked for each use, so change nothing,
    and do not hold all of them."""
    other_stages: list[Stage] = dataclasses.field(default_factory=list)
    """Stages without a query."""
    streams: dict[str, list[StreamRecord]] = dataclasses.field(default_factory=dict)
    """Records of each stream that Apportion controlled, by Spark's id of the query."""
    slots: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    """Number of cores over time: `(milliseconds, cores)`."""
    has_estimated_slots: bool = False
    """Whether `slots` is the most tasks that ran at the same time, as the log lacks executors."""
    executor_cores: int = 0
    """Cores of the executor that was added last; 0 if no executor was added."""
    skipped: list[str] = dataclasses.field(default_factory=list)
    """Omitted parts of the log, with the reasons."""

    @property
    def stages(self) -> Iterator[Stage]:
        """The stages of all queries, and then the stages without a query."""
        for query in self.queries.values():
            yield from query.stages
        yield from self.other_stages

    def numbered(self, numbers: Iterable[int], source: str) -> list[Query]:
        """Return the queries with these numbers, in this order, each once.

        `source` names the log in messages.

        Raises `ApportionError` for an unknown number.
        """
        queries: list[Query] = []
        for number in dict.fromkeys(numbers):
            if number not in self.queries:
                raise ApportionError(
                    f"{source} has no query {number}. Known queries: {self._numbers_text()}"
                )
            queries.append(self.queries[number])
        return queries

    def _numbers_text(self) -> str:
        if not self.queries:
            return "none"
        lowest, highest = min(self.queries), max(self.queries)
        return str(lowest) if lowest == highest else f"{lowest} to {highest}"
