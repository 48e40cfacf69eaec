"""Explanations as one self-contained HTML page: no server, network or other files needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from html import escape

from markupsafe import Markup

from apportion._util import pages
from apportion._util.units import count_text, size_text
from apportion.logs.advise.model.findings import gain_text
from apportion.logs.eventlog import LoggedDecision, PlanNode
from apportion.logs.explanation.render import text
from apportion.logs.explanation.render.graph import graph
from apportion.logs.explanation.render.plots import (
    Pause,
    batches_plot,
    parts_plot,
    ranges_plot,
    slots_plot,
    steps_plot,
    ticks,
)
from apportion.logs.explanation.views.facts import facts, marks
from apportion.logs.explanation.views.origins import SqlBlock
from apportion.logs.explanation.views.streams import StreamView, pause_text, time_text
from apportion.logs.explanation.views.view import (
    QueryView,
    StageView,
    averages_text,
    memory_text,
    written_text,
)
from apportion.logs.explanation.views.waits import Wait

# Queries in the list at the start. The others are behind a click, so that the slowest query is on
# the first screen.
_MOST_LISTED = 5
# Rescales and failures of a stream. Older ones are left out.
_MOST_CHANGES = 100
# Levels of the plan that are indented, so that the page does not grow with the square of the plan.
_MOST_INDENTS = 100
# Colours of stages in the plot of running tasks, as in `profile.css`.
_COLOURS = 5
# Colours of the parts of the time of a query.
_WAITS = {Wait.STAGE: "rest", Wait.START: "waits"}
_WAITS |= dict.fromkeys((Wait.BEFORE, Wait.BETWEEN, Wait.AFTER), "driver")


def render(
    title: str,
    queries: Sequence[QueryView],
    remarks: Sequence[str] = (),
    notes: Sequence[str] = (),
    streams: Sequence[StreamView] = (),
    advice: str | None = None,
) -> str:
    """Return the page.

    `remarks` appear at the top, such as the omitted parts of a log, and so do `notes` and
    `streams`. The slowest query comes first.
    """
    return pages.render(
        "profile_page.html",
        title=title,
        queries=queries,
        remarks=remarks,
        notes=notes,
        streams=streams,
        advice=advice,
        stream_plots=_stream_plots,
        pause_text=pause_text,
        time_text=time_text,
        most_changes=_MOST_CHANGES,
        graph=graph,
        marked_sql=_marked_sql,
        partitions_plot=partitions_plot,
        slots_plot=_slots_plot,
        most_running=_most_running,
        stage_times=_stage_times,
        ticks=ticks,
        cells=_cells,
        rows_text=_rows_text,
        facts=facts,
        marks=marks,
        elsewhere=text.ELSEWHERE,
        most_listed=_MOST_LISTED,
        parts_plot=parts_plot,
        part_colours=_part_colours,
        gain_text=gain_text,
        most_indents=_MOST_INDENTS,
    )


def _most_running(query: QueryView) -> dict[str, list[tuple[int, int]]]:
    """Return the running tasks of the stages that have a colour of their own."""
    return dict(itertools.islice(query.running_of.items(), _COLOURS))


def _stage_times(query: QueryView) -> list[tuple[str, int, int]]:
    """Return a text for each stage, and its milliseconds from the first task to start and end.

    The order is that of `QueryView.running_of`.
    """
    first = query.running[0][0]
    stages = {stage.name: stage for stage in query.stages}
    times = []
    for name, steps in query.running_of.items():
        stage, start, end = stages[name], steps[0][0] - first, steps[-1][0] - first
        tasks = f"{count_text(stage.ran.tasks, 'task')}, " if stage.ran else ""
        span = f"{start / 1000:.1f} s to {end / 1000:.1f} s"
        times.append((f"{name} ({stage.purpose}): {tasks}{span}", start, end))
    return times


def _slots_plot(query: QueryView) -> Markup:
    titles = [text for text, _, _ in _stage_times(query)]
    parts = zip(titles, query.running_of.values(), strict=True)
    return slots_plot(query.running, dict(itertools.islice(parts, _COLOURS)))


def _part_colours(query: QueryView) -> list[tuple[str, int, str]]:
    """Return the name, milliseconds and colour of each part of the time of a query."""
    numbers = {name: number for number, name in enumerate(_most_running(query), start=1)}
    return [
        (name, part.millis, f"part-{numbers[name]}" if name in numbers else _WAITS[part.wait])
        for part in query.parts
        if (name := query.part_text(part))
    ]


def _stream_plots(stream: StreamView) -> dict[str, Markup]:
    """Return the plots of the durations of batches and of the state partitions."""
    if not stream.batches:
        return {}
    batches = stream.batches
    pauses = [
        Pause(
            change.at_millis - change.pause_millis,
            change.at_millis,
            f"{change.reason}: {pause_text(change)}",
        )
        for change in stream.changes
        if change.pause_millis is not None and change.at >= batches[0].at
    ]
    durations = [(batch.at_millis, batch.batch_millis) for batch in batches]
    # Both plots have the time axis of the batches.
    partitions = [(batch.at_millis, batch.partitions) for batch in batches]
    return {
        "batches": batches_plot(durations, pauses, stream.trigger_millis),
        "partitions": steps_plot(partitions, pauses),
    }


def _marked_sql(query: QueryView) -> Markup:
    """Return the SQL text as HTML. A block that overlaps another without nesting is left out."""
    return Markup("".join(_marked(query)))


def _marked(query: QueryView) -> Iterator[str]:
    assert query.sql is not None
    order = sorted(enumerate(query.blocks), key=lambda item: (item[1].start, -item[1].end))
    at, opened = 0, list[SqlBlock]()
    for place, block in order:
        while opened and opened[-1].end <= block.start:
            end = opened.pop().end
            yield f"{escape(query.sql[at:end])}</span>"
            at = end
        if opened and block.end > opened[-1].end:
            continue
        yield f'{escape(query.sql[at : block.start])}<span class="block" '
        yield f'id="{query.block_anchor(place)}" title="{escape(block.path)}">'
        at = block.start
        opened.append(block)
    for block in reversed(opened):
        yield f"{escape(query.sql[at : block.end])}</span>"
        at = block.end
    yield escape(query.sql[at:])


def _rows_text(stage: StageView, node: PlanNode) -> str:
    """Return the rows that an operator outputs, in words; empty if they are not known."""
    rows = stage.rows_of.get(id(node))
    return "" if rows is None else f"{rows:,} {'row' if rows == 1 else 'rows'}"


def _cells(stage: StageView) -> list[str]:
    """Return a row of the table of stages, without the name of the stage."""
    work = stage.ran
    assert work
    read = work.input_bytes + work.shuffle_read_bytes
    written = work.shuffle_written_bytes + work.output_bytes
    return [
        f"{work.wall_millis / 1000:.1f} s",
        f"{work.task_millis / 1000:.1f} s",
        "" if stage.share is None else f"{stage.share:.0%}",
        work.tasks_text,
        size_text(read) if read else "",
        size_text(written) if written else "",
        size_text(work.spilled_bytes) if work.spilled_bytes else "",
        f"{work.gc_share:.0%}",
        "" if work.time_ratio is None else f"{work.time_ratio:.1f}",
        "" if work.bytes_ratio is None else f"{work.bytes_ratio:.1f}",
        str(work.failed_tasks or ""),
    ]


def framed(title: str, page: str) -> str:
    """Return a page as an iframe, to embed in another page such as a notebook.

    A script gives the iframe the height that its page reports, up to a maximum. Without scripts,
    the page scrolls in it.
    """
    # Without a base, links within the page would be relative to the address of the outer page.
    based = page.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
    return (
        f'<iframe title="{escape(title)}" class="apportion" sandbox="allow-scripts" '
        f'srcdoc="{escape(based)}" '
        'style="width: 100%; height: 52rem; border: 0; resize: vertical"></iframe>\n'
        f"<script>{pages.asset('frame.js')}</script>"
    )


def partitions_plot(logged: LoggedDecision) -> Markup:
    """Return a figure of the bytes of each shuffle partition; empty if the log has no bytes."""
    if not logged.subpartition_bytes:
        return Markup()
    decision = logged.decision
    sums = [sum(sizes) for sizes in zip(*logged.subpartition_bytes, strict=True)]
    largest, mean = decision.shown_largest_bytes, decision.mean_task_bytes
    # A local read of map outputs has no ranges.
    ranges = f", in {count_text(len(decision.ranges), 'range')}" if decision.ranges else ""
    caption = (
        f"{count_text(len(sums), 'shuffle partition')}, {size_text(sum(sums))}"
        f"{averages_text(logged)}{ranges}; "
        f"largest task {size_text(largest)}, mean {size_text(mean)}"
    )
    for more in (written_text(logged), memory_text(decision)):
        caption += f"; {more}" if more else ""
    plot = ranges_plot(sums, decision.ranges, caption)
    return Markup('<figure class="plot">{}<figcaption>{}</figcaption></figure>').format(
        plot, caption
    )
