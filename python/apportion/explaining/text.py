"""Queries as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apportion.eventlog import LoggedDecision
from apportion.explaining.view import QueryView, Ran, StageView, averages_text
from apportion.units import count_text, size_text

_BARS = "▁▂▃▄▅▆▇█"
# Bars of a plot: more subpartitions share one.
_MOST_BARS = 64


def render(query: QueryView) -> str:
    """Return a query with its stages, the last first, as lines of text."""
    return "\n".join(_lines(query)) + "\n"


def plot(values: Sequence[int], ranges: Sequence[tuple[int, int]]) -> str:
    """Return a bar for each subpartition, as high as it has bytes, and `|` where ranges meet."""
    width = -(-len(values) // _MOST_BARS) or 1
    bars = [max(values[start : start + width]) for start in range(0, len(values), width)]
    largest = max(bars, default=0) or 1
    starts = {start // width for start, _ in ranges if start}
    return "".join(
        ("|" if place in starts else "") + _BARS[bar * (len(_BARS) - 1) // largest]
        for place, bar in enumerate(bars)
    )


def _lines(query: QueryView) -> Iterator[str]:
    took = "not ended" if query.seconds is None else f"{query.seconds:.1f} s"
    yield f"Query {query.id}: {query.title} ({took})"
    if query.failure:
        yield f"  failed: {query.failure.splitlines()[0]}"
    yield f"  {query.slots_text}"
    yield f"  At once ran {count_text(query.peak_tasks, 'task')} at most."
    for stage in reversed(query.stages):
        yield ""
        yield from _stage(query, stage)


def _stage(query: QueryView, stage: StageView) -> Iterator[str]:
    tasks = f": {count_text(stage.slots, 'task')}" if stage.slots is not None else ""
    yield f"{stage.name} ({stage.kind}){tasks}"
    if stage.reads:
        yield f"  reads {', '.join(stage.reads)}"
    if stage.blocks:
        yield f"  of block {', '.join(f'{p} (line {query.line(p)})' for p in stage.blocks)}"
    for logged in stage.decisions:
        yield from _decision(logged)
    if stage.ran:
        yield f"  {_ran(stage.ran)}"
    for pipeline in stage.chains.pipelines:
        number = "" if pipeline.codegen is None else f"*({pipeline.codegen}) "
        yield f"  {number}{' <- '.join(node.name for node in pipeline.operators)}"
    for link in stage.chains.links:
        yield f"    chain ends, {link}"


def _decision(logged: LoggedDecision) -> Iterator[str]:
    decision = logged.decision
    yield f"  {decision.operator}: {decision.reason}"
    if logged.subpartition_bytes:
        sums = [sum(sizes) for sizes in zip(*logged.subpartition_bytes, strict=True)]
        count = count_text(len(sums), "subpartition")
        averages = averages_text(logged)
        yield f"    {plot(sums, decision.ranges)} {count}, {size_text(sum(sums))}{averages}"
    largest, mean = size_text(decision.largest_task_bytes), size_text(decision.mean_task_bytes)
    yield f"    largest task {largest}, mean {mean}"
    if decision.requirement:
        yield f"    slots {decision.requirement} (least / would like / can use)"
    for name, who in sorted(decision.sources.items()):
        if who != "default":
            yield f"    {name}: {who}"


def _ran(ran: Ran) -> str:
    stages = "stage" if len(ran.stages) == 1 else "stages"
    parts = [
        f"ran as Spark's {stages} {', '.join(map(str, ran.stages))}",
        f"{ran.run_millis / 1000:.1f} s of tasks",
    ]
    for what, count in ran.moved():
        parts.append(f"{size_text(count)} {what}")
    if ran.failed_tasks:
        parts.append(f"{count_text(ran.failed_tasks, 'task')} failed")
    return ", ".join(parts)
