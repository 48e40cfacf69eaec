"""A query as it is drawn: stages, what each reads, and why it has its tasks."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from apportion._util.units import count_text, size_text
from apportion.decision import Decision
from apportion.eventlog import Application, LoggedDecision, Operator, Query, Stage
from apportion.eventlog.fragments import Fragment, fragments
from apportion.explanation.views.origins import Origins, SqlBlock
from apportion.explanation.views.pipelines import Chains, chains

_LONGEST_TITLE = 100


@dataclasses.dataclass(frozen=True)
class Ran:
    """What the tasks of a stage did, all of its attempts together."""

    stages: list[int]
    """Ids of Spark's stages."""
    tasks: int
    most_tasks: int
    """Tasks of the largest of them; a stage that samples rows for a sort runs twice."""
    failed_tasks: int
    profile: int
    """The resource profile: stages with the same one share slots."""
    started: int | None
    """Milliseconds since 1970, when the first task was launched."""
    ended: int | None
    run_millis: int
    """What the tasks took together."""
    input_bytes: int
    shuffle_read_bytes: int
    shuffle_written_bytes: int

    def moved(self) -> list[tuple[str, int]]:
        """Return what bytes it moved, in words, and how many; nothing for none."""
        found = [
            ("scanned", self.input_bytes),
            ("read from shuffles", self.shuffle_read_bytes),
            ("written to a shuffle", self.shuffle_written_bytes),
        ]
        return [(what, count) for what, count in found if count]

    def text(self) -> str:
        """Return a sentence about the stages, tasks and bytes."""
        parts = [
            f"{'stage' if len(self.stages) == 1 else 'stages'} {', '.join(map(str, self.stages))}",
            count_text(self.tasks, "task"),
            f"{self.run_millis / 1000:.1f} s of task time",
            *(f"{size_text(count)} {what}" for what, count in self.moved()),
        ]
        if self.failed_tasks:
            parts.append(f"{count_text(self.failed_tasks, 'task')} failed")
        return f"Ran as Spark {', '.join(parts)}."


@dataclasses.dataclass(frozen=True)
class StageView:
    """A stage of the plan."""

    name: str
    kind: str
    """What becomes of its rows: shuffle, broadcast, cache, subquery or result."""
    reads: list[str]
    """Names of the stages it reads."""
    depth: int
    """Stages that have to run before it, one after the other: those of equal depth may overlap."""
    chains: Chains
    operators: list[int]
    """What it was planned from: places in the query's operators."""
    blocks: list[str]
    """Paths of the blocks of the query's text that these come from."""
    decisions: list[LoggedDecision]
    ran: Ran | None
    """None if no task of it ran, as far as the log goes."""

    @property
    def slots(self) -> int | None:
        """Tasks that it would run at once if there were slots enough."""
        decided = [each.decision.tasks for each in self.decisions if each.decision.stages]
        ran = self.ran.most_tasks if self.ran else 0
        return ran or max(decided, default=None)


@dataclasses.dataclass(frozen=True)
class QueryView:
    """A query and its stages, each after those that it reads."""

    id: int
    description: str
    seconds: float | None
    """None if it had not ended."""
    failure: str | None
    stages: list[StageView]
    sql: str | None
    blocks: list[SqlBlock]
    """The SELECTs of its text."""
    operators: list[Operator]
    """The optimized plan, each operator after its parent."""
    running: list[tuple[int, int]]
    """How many tasks ran, from a time on: `(milliseconds since 1970, tasks)`, in order."""

    @property
    def title(self) -> str:
        """Its description as one line of at most 100 characters."""
        line = " ".join(self.description.split()) or "without a description"
        return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"

    def anchor(self, stage: str) -> str:
        """Return the name of a stage that is its own in a page of several queries."""
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
        """How long it took, the slots that it can use, and its peak concurrency."""
        took = "It has not ended." if self.seconds is None else f"It took {self.seconds:.1f} s."
        return f"{took} {self.slots_text} Peak concurrency: {count_text(self.peak_tasks, 'task')}."

    def line(self, block: str) -> int:
        """Return the line of the text, from 1, in which a block begins."""
        start = next(each.start for each in self.blocks if each.path == block)
        return (self.sql or "").count("\n", 0, start) + 1

    @property
    def peak_tasks(self) -> int:
        """The most tasks that ran at the same time."""
        return max((tasks for _, tasks in self.running), default=0)

    @property
    def slots_by_group(self) -> dict[int, int]:
        """For each group of stages that share slots, by resource profile, those of its largest."""
        groups: dict[int, int] = {}
        for stage in self.stages:
            group = stage.ran.profile if stage.ran else 0
            groups[group] = max(groups.get(group, 0), stage.slots or 0)
        return groups

    @property
    def slots(self) -> int:
        """Slots for the largest stage of each group: with fewer, tasks of one of them wait."""
        return sum(self.slots_by_group.values())

    @property
    def slots_text(self) -> str:
        """Return how many slots it can use, in words."""
        groups = ", ".join(f"profile {key}: {n}" for key, n in sorted(self.slots_by_group.items()))
        whose = "its largest stage"
        if len(self.slots_by_group) > 1:
            whose = f"the largest stages of its sharing groups ({groups})"
        return (
            f"Slots: {self.slots} for {whose}, "
            f"{self.useful_slots} for all stages that can run together."
        )

    @property
    def useful_slots(self) -> int:
        """Slots that all stages of one depth would fill together."""
        by_depth: dict[int, int] = {}
        for stage in self.stages:
            by_depth[stage.depth] = by_depth.get(stage.depth, 0) + (stage.slots or 0)
        return max(by_depth.values(), default=0)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as data for JSON."""
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
    """Return a query of an application as it is drawn."""
    origins = Origins(query)
    stages: list[StageView] = []
    found = fragments(query.plan) if query.plan else []
    unplaced = list(query.decisions)
    depths: dict[int, int] = {}
    for fragment in found:
        depth = max((depths[id(read)] + 1 for read in fragment.inputs), default=0)
        depths[id(fragment)] = depth
        decided = [each for each in unplaced if _is_about(each.decision, fragment)]
        unplaced = [each for each in unplaced if not any(each is other for other in decided)]
        operators = origins.of(fragment, [place for each in decided for place in each.operators])
        stages.append(
            StageView(
                name=fragment.name,
                kind=fragment.kind,
                reads=[read.name for read in fragment.inputs],
                depth=depth,
                chains=chains(fragment, application.conf),
                operators=operators,
                blocks=origins.paths(operators),
                decisions=decided,
                ran=ran(fragment, query.stages),
            )
        )
    times = query.submitted, query.completed
    seconds = (
        (times[1] - times[0]) / 1000 if times[0] is not None and times[1] is not None else None
    )
    return QueryView(
        query.id,
        query.description,
        seconds,
        query.failure,
        stages,
        query.sql,
        origins.blocks,
        query.operators,
        _running(query.stages),
    )


def _is_about(decision: Decision, fragment: Fragment) -> bool:
    """Whether a decision is about what a fragment reads: the stages, or the files of a scan."""
    if decision.stages:
        read = {stage.query_stage for stage in fragment.inputs}
        return read.issuperset(decision.stages)
    return any(node.name.strip() == decision.operator for node in fragment.operators())


def ran(fragment: Fragment, stages: Sequence[Stage]) -> Ran | None:
    """Return what the tasks of a fragment did, None if none of it ran."""
    accumulators = fragment.accumulators()
    own = [stage for stage in stages if stage.accumulators & accumulators]
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
    """How many tasks executors ran at once.

    Spark notes the end of a task some milliseconds after it has given away the slot, so tasks count
    from their launch for as long as they ran.
    """
    changes: dict[int, int] = {}
    for stage in stages:
        for launched, millis in zip(stage.launched, stage.run_millis, strict=True):
            changes[launched] = changes.get(launched, 0) + 1
            changes[launched + millis] = changes.get(launched + millis, 0) - 1
    running = itertools.accumulate(change for _, change in sorted(changes.items()))
    return list(zip(sorted(changes), running, strict=True))


def averages_text(logged: LoggedDecision) -> str:
    """Return a remark for a plot of bytes that are averages; empty where each is exact."""
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
            for pipeline in stage.chains.pipelines
        ],
        "breaks": [
            {"above": link.above.name, "below": link.below.name, "why": link.why.value}
            for link in stage.chains.links
        ],
        "decisions": [
            {
                **dataclasses.asdict(each.decision),
                "decided_at": each.decision.decided_at.isoformat(),
                "subpartition_bytes": each.subpartition_bytes,
                "subpartitions_per_sum": each.subpartitions_per_sum,
            }
            for each in stage.decisions
        ],
    }
