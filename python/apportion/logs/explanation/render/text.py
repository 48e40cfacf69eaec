"""Explanations as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apportion._util.units import count_text, size_text
from apportion.logs.eventlog import LoggedDecision
from apportion.logs.explanation.views.facts import facts
from apportion.logs.explanation.views.pipelines import Break
from apportion.logs.explanation.views.streams import StreamView, pause_text, time_text
from apportion.logs.explanation.views.view import (
    QueryView,
    StageView,
    averages_text,
    memory_text,
    written_text,
)

_BARS = "▁▂▃▄▅▆▇█"
# Maximum number of bars of a plot. More shuffle partitions share bars.
_MAX_BARS = 64
# Maximum number of queries in the list at the start.
_MAX_LISTED = 20
# Maximum number of rescales and failures of a stream.
_MOST_CHANGES = 20
# Heading of the decisions in `QueryView.elsewhere`.
ELSEWHERE = "Decisions for parts that Spark's last plan does not have"


def render(query: QueryView) -> str:
    """Return a query and its stages as lines of text, with the last stage first."""
    return "\n".join(_lines(query)) + "\n"


def overview(queries: Sequence[QueryView]) -> str:
    """Return a list of queries with their times, in the given order."""
    width = max(len(str(query.id)) for query in queries)
    lines = [
        f"  query {query.id:>{width}}: {query.took:>9}  {query.title}"
        for query in queries[:_MAX_LISTED]
    ]
    if len(queries) > _MAX_LISTED:
        lines.append(f"  and {count_text(len(queries) - _MAX_LISTED, 'faster query')}")
    return "\n".join(["Queries, the slowest first:", *lines]) + "\n"


def stream(view: StreamView) -> str:
    """Return a stream with its load and its rescales as lines of text."""
    return "\n".join(_stream(view)) + "\n"


def plot(values: Sequence[int], ranges: Sequence[tuple[int, int]]) -> str:
    """Return a bar for each shuffle partition, with `|` between the ranges."""
    width = -(-len(values) // _MAX_BARS) or 1
    bars = [max(values[start : start + width]) for start in range(0, len(values), width)]
    largest = max(bars, default=0) or 1
    starts = {start // width for start, _ in ranges} - {0}
    return "".join(
        ("|" if place in starts else "") + _BARS[bar * (len(_BARS) - 1) // largest]
        for place, bar in enumerate(bars)
    )


def _lines(query: QueryView) -> Iterator[str]:
    yield f"Query {query.id}: {query.title} ({query.took})"
    if query.failure:
        yield f"  Failed: {query.failure.splitlines()[0]}"
    for line in (query.answer, query.critical_text, query.outside_text):
        if line:
            yield f"  {line}"
    for finding in query.findings:
        place = "" if finding.stage is None else f"stage {finding.stage}: "
        yield f"  advice: {place}{finding.short}; {finding.without[0]}"
    if query.peak_tasks:
        yield f"  Peak concurrency: {count_text(query.peak_tasks, 'task')}."
    for stage in reversed(query.stages):
        yield ""
        yield from _stage(query, stage)
    if query.elsewhere:
        yield ""
        yield f"{ELSEWHERE}:"
        for logged in query.elsewhere:
            yield from _decision(logged)


def _stream(view: StreamView) -> Iterator[str]:
    yield f"Stream {view.title}"
    for line in view.summary:
        yield f"  {line}"
    if batches := view.batches:
        starts = [
            (place, place)
            for place in range(1, len(batches))
            if batches[place].partitions != batches[place - 1].partitions
        ]
        bars = plot([batch.batch_millis for batch in batches], starts)
        yield f"  {bars} time of each batch; | where the state partitions changed"
        yield f"  {time_text(batches[-1])} batch {batches[-1].batch}: {batches[-1].reason}"
    for change in view.changes[-_MOST_CHANGES:]:
        yield f"  {time_text(change)} {change.event} at batch {change.batch}: {change.reason}"
        if pause := pause_text(change):
            yield f"    {pause}"


def _stage(query: QueryView, stage: StageView) -> Iterator[str]:
    tasks = f": {count_text(stage.slots, 'task')}" if stage.slots is not None else ""
    part = "" if stage.part == stage.name else stage.part
    roles = dict.fromkeys(filter(None, (stage.purpose, part, stage.kind)))
    yield f"{stage.name} ({', '.join(roles)}){tasks}"
    if stage.reads:
        yield f"  reads {', '.join(stage.reads)}"
    if stage.tables:
        yield f"  scans {', '.join(stage.tables)}"
    if stage.blocks:
        yield f"  from block {', '.join(f'{p} (line {query.line(p)})' for p in stage.blocks)}"
    for logged in stage.decisions:
        yield from _decision(logged)
    if stage.ran:
        yield f"  {stage.ran.text()}"
    for label, fact in facts(stage):
        yield f"    {label}: {fact}"
    for finding in stage.findings:
        yield f"    advice: {finding.short}; {finding.without[0]}"
    for pipeline in stage.pipelines.pipelines:
        star = "* " if pipeline.is_compiled else ""
        number = star if pipeline.codegen is None else f"*({pipeline.codegen}) "
        yield f"  {number}{' <- '.join(node.name for node in pipeline.operators)}"
    for link in stage.pipelines.links:
        # Each stage ends and begins with an exchange.
        if link.why is not Break.EXCHANGE:
            yield f"    pipeline ends, {link}"


def _decision(logged: LoggedDecision) -> Iterator[str]:
    decision = logged.decision
    yield f"  {decision.operator}: {decision.reason}"
    if logged.subpartition_bytes:
        sums = [sum(sizes) for sizes in zip(*logged.subpartition_bytes, strict=True)]
        partitions = count_text(len(sums), "shuffle partition")
        averages = averages_text(logged)
        yield f"    {plot(sums, decision.ranges)} {partitions}, {size_text(sum(sums))}{averages}"
    if written := written_text(logged):
        yield f"    written: {written}"
    largest, mean = size_text(decision.shown_largest_bytes), size_text(decision.mean_task_bytes)
    yield f"    largest task {largest}, mean {mean}"
    if decision.note:
        yield f"    {decision.note}"
    if memory := memory_text(decision):
        yield f"    {memory}"
    if decision.requirement:
        yield f"    slots (min / target / max): {decision.requirement}"
    for name, source in sorted(decision.sources.items()):
        if source != "default":
            yield f"    {name}: {source}"
