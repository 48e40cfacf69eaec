"""Views of queries for the renderers: stages with their inputs, decisions and measured work."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from apportion._util.units import count_text, size_text
from apportion.decision import Decision
from apportion.eventlog import Application, LoggedDecision, Operator, Query, Stage
from apportion.eventlog.fragments import Fragment, fragments
from apportion.eventlog.placement import place
from apportion.explanation.views.origins import Origins, SqlBlock
from apportion.explanation.views.pipelines import Pipelines, find_pipelines

_LONGEST_TITLE = 100


@dataclasses.dataclass(frozen=True)
class Ran:
    """Measured work of a stage, summed over all attempts."""

    stages: list[int]
    """Ids of Spark's stages."""
    tasks: int
    most_tasks: int
    """Number of tasks of the largest of these stages. A stage that samples rows for a sort runs
    twice."""
    failed_tasks: int
    profile: int
    """Id of the resource profile. Stages with the same profile share slots."""
    started: int | None
    """Launch of the first task, in milliseconds since 1970."""
    ended: int | None
    """End of the last task, in milliseconds since 1970."""
    run_millis: int
    """Total time of the tasks."""
    input_bytes: int
    shuffle_read_bytes: int
    shuffle_written_bytes: int

    def moved(self) -> list[tuple[str, int]]:
        """Return the kinds of bytes that the tasks moved, with their numbers above 0."""
        sizes = [
            ("scanned", self.input_bytes),
            ("read from shuffles", self.shuffle_read_bytes),
            ("written to a shuffle", self.shuffle_written_bytes),
        ]
        return [(kind, size) for kind, size in sizes if size]

    def text(self) -> str:
        """Return a sentence about the stages, tasks and bytes."""
        parts = [
            f"{'stage' if len(self.stages) == 1 else 'stages'} {', '.join(map(str, self.stages))}",
            count_text(self.tasks, "task"),
            f"{self.run_millis / 1000:.1f} s of task time",
            *(f"{size_text(size)} {kind}" for kind, size in self.moved()),
        ]
        if self.failed_tasks:
            parts.append(f"{count_text(self.failed_tasks, 'task')} failed")
        return f"Ran as Spark {', '.join(parts)}."


@dataclasses.dataclass(frozen=True)
class StageView:
    """A stage of the plan."""

    name: str
    kind: str
    """Destination of its rows: shuffle, broadcast, cache, subquery or result."""
    reads: list[str]
    """Names of the stages that it reads."""
    depth: int
    """Number of stages in a row that must end before it. Stages of equal depth can overlap."""
    pipelines: Pipelines
    operators: list[int]
    """Operators that it was planned from, as places in `QueryView.operators`."""
    blocks: list[str]
    """Paths of the SQL blocks that these operators come from."""
    decisions: list[LoggedDecision]
    ran: Ran | None
    """None if the log has no task of this stage."""

    @property
    def slots(self) -> int | None:
        """Number of tasks, and so of task slots if all of them run at the same time."""
        decided = [logged.decision.tasks for logged in self.decisions if logged.decision.stages]
        measured = self.ran.most_tasks if self.ran else 0
        return measured or max(decided, default=None)


@dataclasses.dataclass(frozen=True)
class QueryView:
    """A query and its stages. Each stage follows the stages that it reads."""

    id: int
    description: str
    seconds: float | None
    """Duration; None if the query has not ended."""
    failure: str | None
    stages: list[StageView]
    sql: str | None
    blocks: list[SqlBlock]
    """The SELECTs of the text."""
    operators: list[Operator]
    """The optimized plan. Each operator follows its parent."""
    running: list[tuple[int, int]]
    """Number of running tasks over time: `(milliseconds since 1970, tasks)`, in order."""

    @property
    def title(self) -> str:
        """The description as one line of at most 100 characters."""
        line = " ".join(self.description.split()) or "without a description"
        return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"

    def anchor(self, stage: str) -> str:
        """Return the anchor of a stage, which is unique in a page of several queries."""
        return f"q{self.id}-{stage.replace(' ', '-')}"

    def block_anchor(self, place: int) -> str:
        """Return the anchor of a block, by its place in `blocks`."""
        return f"q{self.id}-block-{place}"

    def operator_anchor(self, place: int) -> str:
        """Return the anchor of an operator, by its place in `operators`."""
        return f"q{self.id}-operator-{place}"

    def place_of_block(self, path: str) -> int:
        """Return the place of a block in `blocks`."""
        return next(place for place, block in enumerate(self.blocks) if block.path == path)

    def stages_of_block(self, path: str) -> list[str]:
        """Return the names of the stages that were planned from a block."""
        return [stage.name for stage in self.stages if path in stage.blocks]

    def stages_of_operator(self, place: int) -> list[str]:
        """Return the names of the stages that were planned from an operator."""
        return [stage.name for stage in self.stages if place in stage.operators]

    @property
    def summary(self) -> str:
        """Duration, task slots and peak concurrency, in words."""
        took = "It has not ended." if self.seconds is None else f"It took {self.seconds:.1f} s."
        return f"{took} {self.slots_text} Peak concurrency: {count_text(self.peak_tasks, 'task')}."

    def line(self, block: str) -> int:
        """Return the line of the text in which a block starts, counted from 1."""
        start = next(known.start for known in self.blocks if known.path == block)
        return (self.sql or "").count("\n", 0, start) + 1

    @property
    def peak_tasks(self) -> int:
        """The most tasks that ran at the same time."""
        return max((tasks for _, tasks in self.running), default=0)

    @property
    def slots_by_group(self) -> dict[int, int]:
        """Slots for the largest stage of each resource profile, whose stages share slots."""
        groups: dict[int, int] = {}
        for stage in self.stages:
            group = stage.ran.profile if stage.ran else 0
            groups[group] = max(groups.get(group, 0), stage.slots or 0)
        return groups

    @property
    def slots(self) -> int:
        """Slots for the largest stages of all profiles. With fewer slots, tasks have to wait."""
        return sum(self.slots_by_group.values())

    @property
    def slots_text(self) -> str:
        """The slots that the query can use, in words."""
        profiles = sorted(self.slots_by_group.items())
        stages = "the largest stage"
        if len(profiles) > 1:
            slots = ", ".join(f"profile {profile}: {count}" for profile, count in profiles)
            stages = f"the largest stage of each resource profile ({slots})"
        return (
            f"Task slots: {self.slots} for {stages}, "
            f"{self.useful_slots} for all stages that can run together."
        )

    @property
    def useful_slots(self) -> int:
        """Slots for all stages of one depth together, for the depth with the most tasks."""
        by_depth: dict[int, int] = {}
        for stage in self.stages:
            by_depth[stage.depth] = by_depth.get(stage.depth, 0) + (stage.slots or 0)
        return max(by_depth.values(), default=0)

    def as_json(self) -> dict[str, Any]:
        """Return the view as data for JSON."""
        return {
            "id": self.id,
            "description": self.description,
            "seconds": self.seconds,
            "failure": self.failure,
            "slots": self.slots,
            "slots_by_group": self.slots_by_group,
            "useful_slots": self.useful_slots,
            "peak_tasks": self.peak_tasks,
            "sql": self.sql,
            "blocks": [dataclasses.asdict(block) for block in self.blocks],
            "operators": [dataclasses.asdict(operator) for operator in self.operators],
            "stages": [_stage_as_json(stage) for stage in self.stages],
        }


def view(application: Application, query: Query) -> QueryView:
    """Return the view of a query."""
    origins = Origins(query)
    stages: list[StageView] = []
    plan_fragments = fragments(query.plan) if query.plan else []
    placed = place(query, plan_fragments)
    depths: dict[int, int] = {}
    for number, fragment in enumerate(plan_fragments):
        depth = max((depths[id(read)] + 1 for read in fragment.inputs), default=0)
        depths[id(fragment)] = depth
        decided = placed.get(number, [])
        named = [place for logged in decided for place in logged.operators]
        operators = origins.operators_of(fragment, named)
        stages.append(
            StageView(
                name=fragment.name,
                kind=fragment.kind,
                reads=[read.name for read in fragment.inputs],
                depth=depth,
                pipelines=find_pipelines(fragment, application.conf),
                operators=operators,
                blocks=origins.paths(operators),
                decisions=decided,
                ran=ran(fragment, query.stages),
            )
        )
    start, end = query.submitted, query.completed
    return QueryView(
        query.id,
        query.description,
        (end - start) / 1000 if start is not None and end is not None else None,
        query.failure,
        stages,
        query.sql,
        origins.blocks,
        query.operators,
        _running(query.stages),
    )


def ran(fragment: Fragment, stages: Sequence[Stage]) -> Ran | None:
    """Return the measured work of a fragment; None if no task of it ran."""
    accumulators = fragment.accumulators()
    own = [stage for stage in stages if stage.accumulators.keys() & accumulators]
    if not own:
        return None
    return Ran(
        stages=sorted({stage.id for stage in own}),
        tasks=sum(len(stage.launched) for stage in own),
        most_tasks=max(len(stage.launched) for stage in own),
        failed_tasks=sum(stage.failed_tasks for stage in own),
        profile=own[-1].profile,
        started=min((min(stage.launched) for stage in own if stage.launched), default=None),
        ended=max((max(stage.finished) for stage in own if stage.finished), default=None),
        run_millis=sum(sum(stage.run_millis) for stage in own),
        input_bytes=sum(sum(stage.input_bytes) for stage in own),
        shuffle_read_bytes=sum(sum(stage.shuffle_read_bytes) for stage in own),
        shuffle_written_bytes=sum(sum(stage.shuffle_written_bytes) for stage in own),
    )


def _running(stages: list[Stage]) -> list[tuple[int, int]]:
    """Return the number of running tasks over time.

    Spark records the end of a task some milliseconds after it has given away the slot. So a task
    counts from its launch for the time that it ran.
    """
    changes: dict[int, int] = {}
    for stage in stages:
        for launched, millis in zip(stage.launched, stage.run_millis, strict=True):
            changes[launched] = changes.get(launched, 0) + 1
            changes[launched + millis] = changes.get(launched + millis, 0) - 1
    running = itertools.accumulate(change for _, change in sorted(changes.items()))
    return list(zip(sorted(changes), running, strict=True))


def memory_text(decision: Decision) -> str:
    """Return what the largest task needs of its memory, and what spilled; empty for nothing."""
    parts = []
    if decision.largest_task_memory and decision.task_memory:
        need, most = size_text(decision.largest_task_memory), size_text(decision.task_memory)
        parts.append(f"rows of the largest task need {need} of {most} memory")
    if outcome := decision.outcome:
        if outcome.spilled_bytes:
            parts.append(f"{size_text(outcome.spilled_bytes)} spilled to disk")
        if outcome.memory_failures:
            parts.append(f"{count_text(outcome.memory_failures, 'task')} ran out of memory")
    return ", ".join(parts)


def averages_text(logged: LoggedDecision) -> str:
    """Return a remark for a plot of averages; empty if the bytes of each partition are known."""
    width = logged.subpartitions_per_sum
    return f" (averages of {width} neighbours)" if width > 1 else ""


def _stage_as_json(stage: StageView) -> Mapping[str, Any]:
    return {
        "name": stage.name,
        "kind": stage.kind,
        "reads": stage.reads,
        "operators": stage.operators,
        "blocks": stage.blocks,
        "depth": stage.depth,
        "slots": stage.slots,
        "ran": dataclasses.asdict(stage.ran) if stage.ran else None,
        "pipelines": [
            {
                "codegen": pipeline.codegen,
                "operators": [
                    {"name": node.name, "text": node.text} for node in pipeline.operators
                ],
            }
            for pipeline in stage.pipelines.pipelines
        ],
        "breaks": [
            {"above": link.above.name, "below": link.below.name, "why": link.why.value}
            for link in stage.pipelines.links
        ],
        "decisions": [
            {
                **dataclasses.asdict(logged.decision),
                "decided_at": logged.decision.decided_at.isoformat(),
                "subpartition_bytes": logged.subpartition_bytes,
                "subpartitions_per_sum": logged.subpartitions_per_sum,
            }
            for logged in stage.decisions
        ],
    }
