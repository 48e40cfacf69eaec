"""Views of queries for the renderers: stages with their inputs, decisions and measured work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from apportion._util.units import count_text, size_text
from apportion.decision import Decision
from apportion.logs.advise.model.findings import Finding, percent_text
from apportion.logs.eventlog import (
    Application,
    LoggedDecision,
    Operator,
    PlanNode,
    Query,
    Stage,
    plan_text,
)
from apportion.logs.eventlog.fragments import Fragment, fragments
from apportion.logs.eventlog.placement import placement
from apportion.logs.eventlog.tasks import running
from apportion.logs.eventlog.work import Ran, attempts_of, place_failed, work_of
from apportion.logs.explanation.views import labels
from apportion.logs.explanation.views.origins import Origins, SqlBlock
from apportion.logs.explanation.views.pipelines import Pipelines, find_pipelines
from apportion.logs.explanation.views.rows import RowCounts
from apportion.logs.explanation.views.waits import Part, time_parts
from apportion.logs.plain import plain

_LONGEST_TITLE = 100
_FILE_BYTES = "size of files read"


@dataclasses.dataclass(frozen=True)
class StageView:
    """A stage of the plan."""

    name: str
    """Ids of its stages in Spark's UI: `stage 9` or `stages 6 + 10`. The name of the part of the
    plan, if no task of it ran."""
    part: str
    """Name of the part of the plan: `query stage 0`, `result` or another one."""
    purpose: str
    """What it does, in words: `join of orders and items`."""
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
    tables: list[str] = dataclasses.field(default_factory=list)
    """Tables that it scans, each once."""
    rows: int | None = None
    """Number of rows that it outputs; None if no metric counts them."""
    rows_of: dict[int, int] = dataclasses.field(default_factory=dict)
    """Number of rows that its operators output, by `id` of the operator, as far as counted."""
    share: float | None = None
    """Its share of the query's task time; None if nothing ran."""
    waited_millis: int = 0
    """Time that the query waited for it, which is 0 outside of the critical path."""
    is_slowest: bool = False
    """Whether the query waited longest for it."""
    findings: list[Finding] = dataclasses.field(default_factory=list)
    """What `apportion advise` finds about it, with the largest gain first."""
    file_bytes: int = 0
    """Bytes of the files that it scans, as the driver counted them."""

    @property
    def is_critical(self) -> bool:
        """Whether it is on the critical path: the chain of stages that the query waited for."""
        return self.waited_millis > 0

    @property
    def verdict(self) -> str:
        """Its largest problem in a few words; empty if there is none."""
        return self.findings[0].short if self.findings else ""

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
    running_of: Mapping[str, list[tuple[int, int]]]
    """The same for each stage with tasks by its name, the one with the most task time first."""
    parts: list[Part] = dataclasses.field(default_factory=list)
    """What the query waited for, from its start to its end."""
    findings: list[Finding] = dataclasses.field(default_factory=list)
    """What `apportion advise` finds about the whole query, and about stages outside of the plan."""
    elsewhere: list[LoggedDecision] = dataclasses.field(default_factory=list)
    """Decisions for parts that the last plan does not have."""
    outside: Ran | None = None
    """Work of Spark's stages that belong to no part of the plan, such as the listing of files."""

    @property
    def title(self) -> str:
        """The description as one line of at most 100 characters."""
        line = " ".join(self.description.split()) or "without a description"
        return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"

    @property
    def took(self) -> str:
        """The duration, in words."""
        return "not ended" if self.seconds is None else f"{self.seconds:.1f} s"

    def anchor(self, stage: str) -> str:
        """Return the anchor of a stage, which is unique in a page of several queries."""
        return f"q{self.id}-{'-'.join(stage.replace('+', ' ').split())}"

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
    def answer(self) -> str:
        """Where the time went, in one sentence; empty if no time is known."""
        total = _millis(self.parts)
        if not total or self.failure:
            return ""
        longest = max(self._waits().values(), key=_millis)
        share = f"{self.took}: {percent_text(_millis(longest) / total)}"
        part = longest[0]
        if part.stage is None:
            return f"{share} {part.wait.value}."
        if stage := self.stage_of(part.stage):
            problem = f"; {stage.verdict}" if stage.verdict else ""
            return f"{share} in the {stage.purpose} ({stage.name}){problem}."
        own = (each.short for each in self.findings if each.stage == part.stage)
        return "; ".join([f"{share} in stage {part.stage}, outside of the plan", *own]) + "."

    def _waits(self) -> dict[str, list[Part]]:
        """Return the parts of the time by the stage, or by what else was waited for."""
        waits: dict[str, list[Part]] = {}
        for part in self.parts:
            waits.setdefault(self.part_text(part), []).append(part)
        return waits

    def stage_of(self, id: int) -> StageView | None:
        """Return the stage of the plan that a Spark stage ran; None outside of the plan."""
        return next((each for each in self.stages if each.ran and id in each.ran.stages), None)

    def part_text(self, part: Part) -> str:
        """Return the name of a part of the time: that of its stage, or what was waited for."""
        if part.stage is None:
            return part.wait.value
        stage = self.stage_of(part.stage)
        return stage.name if stage else f"stage {part.stage}"

    def line(self, block: str) -> int:
        """Return the line of the text in which a block starts, counted from 1."""
        start = next(known.start for known in self.blocks if known.path == block)
        return (self.sql or "").count("\n", 0, start) + 1

    @property
    def critical(self) -> list[str]:
        """Names of the stages on the critical path, from the first to the last."""
        names = [self.part_text(part) for part in self.parts if part.stage is not None]
        return list(dict.fromkeys(names))

    @property
    def critical_text(self) -> str:
        """What the query waited for, in words; empty if no time is known."""
        named = ", ".join(
            f"{name} {_millis(parts) / 1000:.1f} s" for name, parts in self._waits().items()
        )
        return f"Critical path: {named}." if named else ""

    @property
    def outside_text(self) -> str:
        """The work outside of the plan, in words; empty if there is none."""
        if not self.outside:
            return ""
        stages = count_text(len(self.outside.stages), "Spark stage")
        return (
            f"Outside of the plan: {stages}, {self.outside.task_millis / 1000:.1f} s of task time."
        )

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
            "critical_path": self.critical,
            "time_parts": [
                {"wait": part.wait.name.lower(), "millis": part.millis, "stage": part.stage}
                for part in self.parts
            ],
            "answer": self.answer,
            "findings": plain(self.findings),
            "stages": [_stage_as_json(stage) for stage in self.stages],
            "outside_of_plan": _work_as_json(self.outside),
            "decisions_elsewhere": [_decision_as_json(logged) for logged in self.elsewhere],
        }


def view(application: Application, query: Query, findings: Sequence[Finding] = ()) -> QueryView:
    """Return the view of a query, with what `apportion advise` finds about it."""
    origins = Origins(query)
    plan_fragments = fragments(query.plan) if query.plan else []
    decisions = placement(query, plan_fragments)
    attempts = attempts_of(plan_fragments, query.stages)
    place_failed(plan_fragments, query.stages, attempts)
    start, end = query.submitted, query.completed
    parts = time_parts(start, end, query.stages)
    waited: dict[int, int] = {}
    for part in parts:
        if part.stage is not None:
            waited[part.stage] = waited.get(part.stage, 0) + part.millis
    total = sum(sum(stage.task_millis) for stage in query.stages)
    made: dict[int, StageView] = {}
    tables: dict[int, list[str]] = {}
    for number, (fragment, own) in enumerate(zip(plan_fragments, attempts, strict=True)):
        work = work_of(own)
        reads = [made[id(read)] for read in fragment.inputs]
        scanned = _tables(fragment)
        # The largest input comes first.
        inputs = sorted(fragment.inputs, key=lambda read: -(made[id(read)].share or 0))
        below = [name for read in inputs for name in tables[id(read)]]
        tables[id(fragment)] = list(dict.fromkeys([*scanned, *below]))
        decided = decisions.placed.get(number, [])
        named = [place for logged in decided for place in logged.operators]
        operators = origins.operators_of(fragment, named)
        counts = RowCounts(own, query.driver_metrics)
        ids = work.stages if work else []
        made[id(fragment)] = StageView(
            name=work.name if work else fragment.name,
            part=fragment.name,
            purpose=labels.purpose(list(fragment.operators()), scanned, below),
            kind=fragment.kind,
            reads=[read.name for read in reads],
            depth=max((read.depth + 1 for read in reads), default=0),
            pipelines=find_pipelines(fragment, {**application.conf, **query.conf}),
            operators=operators,
            blocks=origins.paths(operators),
            decisions=decided,
            ran=work,
            tables=scanned,
            rows=counts.of_fragment(fragment),
            rows_of={
                id(node): rows
                for node in fragment.operators()
                if (rows := counts.of(node)) is not None
            },
            share=work.task_millis / total if work and total else None,
            waited_millis=sum(waited.get(stage, 0) for stage in ids),
            findings=[each for each in findings if each.stage in ids],
            file_bytes=sum(query.driver_metric(node, _FILE_BYTES) for node in fragment.operators()),
        )
    stages = list(made.values())
    most = max((stage.waited_millis for stage in stages), default=0)
    if most:
        place = next(place for place, each in enumerate(stages) if each.waited_millis == most)
        stages[place] = dataclasses.replace(stages[place], is_slowest=True)
    by_share = sorted(zip(stages, attempts, strict=True), key=lambda ran: -(ran[0].share or 0))
    inside = {id(stage) for own in attempts for stage in own}
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
        # The tasks of an incomplete log may all have failed.
        {stage.name: steps for stage, own in by_share if (steps := _running(own))},
        parts,
        [each for each in findings if not any(each in stage.findings for stage in stages)],
        decisions.elsewhere,
        work_of([each for each in query.stages if each.launched and id(each) not in inside]),
    )


def _millis(parts: Sequence[Part]) -> int:
    return sum(part.millis for part in parts)


def _tables(fragment: Fragment) -> list[str]:
    names = (plan_text.table(node.name, node.text) for node in fragment.leaves())
    return list(dict.fromkeys(name for name in names if name))


def _running(stages: Sequence[Stage]) -> list[tuple[int, int]]:
    return running(
        times for stage in stages for times in zip(stage.launched, stage.run_millis, strict=True)
    )


def memory_text(decision: Decision) -> str:
    """Return the memory that tasks need and used, and what spilled; empty for nothing."""
    parts = []
    if decision.largest_task_memory and decision.task_memory:
        need, most = size_text(decision.largest_task_memory), size_text(decision.task_memory)
        parts.append(f"rows of the largest task need {need} of {most} memory")
    if outcome := decision.outcome:
        if outcome.peak_task_memory:
            parts.append(f"tasks used up to {size_text(outcome.peak_task_memory)} of memory")
        if outcome.spilled_bytes:
            parts.append(f"{size_text(outcome.spilled_bytes)} spilled to disk")
        if outcome.memory_failures:
            parts.append(f"{count_text(outcome.memory_failures, 'task')} ran out of memory")
    return ", ".join(parts)


def written_text(logged: LoggedDecision) -> str:
    """Return the blocks and levels that map tasks wrote; empty if Spark wrote the shuffles."""
    decision = logged.decision
    if decision.blocks is None:
        return ""
    sizes: dict[int, int] = {}
    for shuffle in logged.shuffles:
        for groups, size in zip(shuffle.groups, shuffle.bytes_by_level, strict=True):
            sizes[groups] = sizes.get(groups, 0) + size
    levels = [(groups, size_text(size)) for groups, size in sorted(sizes.items()) if size]
    parts = [count_text(decision.blocks, "block")]
    if levels:
        coarsest = f"{levels[0][1]} in {count_text(levels[0][0], 'group')} of partitions"
        parts.append(", ".join([coarsest, *(f"{text} in {groups}" for groups, text in levels[1:])]))
    if decision.bytes_read_twice:
        parts.append(f"{size_text(decision.bytes_read_twice)} read twice")
    return "; ".join(parts)


def averages_text(logged: LoggedDecision) -> str:
    """Return a remark for a plot of averages; empty if the bytes of each partition are known."""
    width = logged.subpartitions_per_sum
    return f" (averages of {width} neighbours)" if width > 1 else ""


def _stage_as_json(stage: StageView) -> Mapping[str, Any]:
    return {
        "name": stage.name,
        "part": stage.part,
        "purpose": stage.purpose,
        "kind": stage.kind,
        "reads": stage.reads,
        "tables": stage.tables,
        "operators": stage.operators,
        "blocks": stage.blocks,
        "depth": stage.depth,
        "slots": stage.slots,
        "rows": stage.rows,
        "share_of_task_time": stage.share,
        "is_critical": stage.is_critical,
        "waited_millis": stage.waited_millis,
        "file_bytes": stage.file_bytes,
        "findings": plain(stage.findings),
        "ran": _work_as_json(stage.ran),
        "pipelines": [
            {
                "codegen": pipeline.codegen,
                "operators": [_node_as_json(stage, node) for node in pipeline.operators],
            }
            for pipeline in stage.pipelines.pipelines
        ],
        "breaks": [
            {"above": link.above.name, "below": link.below.name, "why": link.why.value}
            for link in stage.pipelines.links
        ],
        "decisions": [_decision_as_json(logged) for logged in stage.decisions],
    }


def _node_as_json(stage: StageView, node: PlanNode) -> Mapping[str, Any]:
    return {"name": node.name, "text": node.text, "rows": stage.rows_of.get(id(node))}


def _work_as_json(work: Ran | None) -> Mapping[str, Any] | None:
    if work is None:
        return None
    return {
        **dataclasses.asdict(work),
        "gc_share": work.gc_share,
        "time_ratio": work.time_ratio,
        "bytes_ratio": work.bytes_ratio,
        "is_skewed": work.is_skewed,
    }


def _decision_as_json(logged: LoggedDecision) -> Mapping[str, Any]:
    return {
        **dataclasses.asdict(logged.decision),
        "decided_at": logged.decision.decided_at.isoformat(),
        "subpartition_bytes": logged.subpartition_bytes,
        "subpartitions_per_sum": logged.subpartitions_per_sum,
    }
