"""Queries as one HTML page that needs nothing else: no server, no network, no script of others."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from apportion.decision import Decision
from apportion.eventlog import LoggedDecision
from apportion.explaining.graph import graph
from apportion.explaining.layers import layers, origin
from apportion.explaining.plots import ranges_plot, slots_plot
from apportion.explaining.view import QueryView, StageView, averages_text
from apportion.units import count_text, size_text


def render(title: str, queries: Sequence[QueryView], remarks: Sequence[str] = ()) -> str:
    """Return the page; `remarks` are told at its top, such as what was left out of a log."""
    return "".join(_page(title, queries, remarks))


def framed(title: str, page: str) -> str:
    """Return a page as an element of another one, such as a notebook, of which it sees nothing."""
    # Links within the page are of the frame's own address.
    framed = page.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" srcdoc="{escape(framed)}" '
        'style="width: 100%; height: 36rem; border: 0; resize: vertical"></iframe>'
    )


def decision(decided: Decision) -> str:
    """Return a decision with its numbers as elements of a page, such as a notebook."""
    return "".join(_decision(LoggedDecision(decided, [])))


def decisions(decided: Sequence[Decision]) -> str:
    """Return a table with a line for each decision."""
    return "".join(_decisions(decided))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    return "".join(_table(columns, rows))


def _page(title: str, queries: Sequence[QueryView], remarks: Sequence[str]) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{escape(title)}</title>\n<style>\n{_asset('page.css')}</style>\n"
    yield f"<script>\n{_asset('page.js')}</script>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
    for remark in remarks:
        yield f"<p><strong>Left out:</strong> {escape(remark)}</p>\n"
    if len(queries) > 1:
        yield "<nav><ul>\n"
        for query in queries:
            yield f'<li><a href="#q{query.id}">{escape(_heading(query))}</a></li>\n'
        yield "</ul></nav>\n"
    for query in queries:
        yield from _query(query)
    yield "</body>\n</html>\n"


def _heading(query: QueryView) -> str:
    return f"Query {query.id}: {query.title}"


def _query(query: QueryView) -> Iterator[str]:
    yield f'<section>\n<h2 id="q{query.id}">{escape(_heading(query))}</h2>\n'
    if query.description.strip() not in ("", query.title):
        yield f"<pre>{escape(query.description)}</pre>\n"
    if query.failure:
        yield f"<p><strong>Failed:</strong> {escape(query.failure.splitlines()[0])}</p>\n"
    took = "It has not ended." if query.seconds is None else f"It took {query.seconds:.1f} s."
    peak = f"At once ran {count_text(query.peak_tasks, 'task')} at most."
    yield f"<p>{took} {escape(query.slots_text)} {peak}</p>\n"
    yield graph(query)
    if query.running:
        yield f'<figure class="plot">{slots_plot(query.running)}'
        yield "<figcaption>Tasks that ran at the same time</figcaption></figure>\n"
    yield layers(query)
    for stage in reversed(query.stages):
        yield from _stage(query, stage)
    yield "</section>\n"


def _stage(query: QueryView, stage: StageView) -> Iterator[str]:
    tasks = "" if stage.slots is None else f": {count_text(stage.slots, 'task')}"
    is_open = " open" if stage.decisions else ""
    yield f'<details class="stage" id="{query.anchor(stage.name)}"{is_open}>\n'
    yield f"<summary><h3>{escape(stage.name)}{tasks}</h3> <small>{escape(stage.kind)}</small>"
    yield "</summary>\n<div>\n"
    if stage.reads:
        links = (f'<a href="#{query.anchor(r)}">{escape(r)}</a>' for r in stage.reads)
        yield f"<p>Reads {', '.join(links)}.</p>\n"
    yield origin(query, stage)
    for logged in stage.decisions:
        yield from _decision(logged)
    if stage.ran:
        yield from _ran(stage)
    yield from _chains(stage)
    yield "</div>\n</details>\n"


def _decision(logged: LoggedDecision) -> Iterator[str]:
    decision = logged.decision
    yield f"<p><strong>{escape(decision.operator)}:</strong> {escape(decision.reason)}</p>\n"
    if logged.subpartition_bytes:
        sums = [sum(sizes) for sizes in zip(*logged.subpartition_bytes, strict=True)]
        largest, mean = decision.largest_task_bytes, decision.mean_task_bytes
        # Tasks that read map outputs locally have none.
        ranges = f", in {count_text(len(decision.ranges), 'range')}" if decision.ranges else ""
        caption = (
            f"{count_text(len(sums), 'subpartition')}, {size_text(sum(sums))}"
            f"{averages_text(logged)}{ranges}; "
            f"the largest task reads {size_text(largest)}, the mean {size_text(mean)}"
        )
        yield f'<figure class="plot">{ranges_plot(sums, decision.ranges, caption)}'
        yield f"<figcaption>{caption}</figcaption></figure>\n"
    rows = [
        *_formula(logged),
        *((f"{name} set by", who) for name, who in sorted(decision.sources.items())),
    ]
    yield "<details><summary>The numbers, and who set them</summary>\n<table>\n"
    for name, value in rows:
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>\n'
    yield "</table></details>\n"


def _decisions(decided: Sequence[Decision]) -> Iterator[str]:
    columns = ["Query", "Read by", "Input", "Subpartitions", "Tasks", "Largest task", "Why"]
    rows = (
        (
            "" if each.query is None else str(each.query),
            each.operator,
            size_text(each.input_bytes),
            str(each.subpartitions or "-"),
            str(each.tasks),
            size_text(each.largest_task_bytes),
            each.reason,
        )
        for each in decided
    )
    yield from _table(columns, rows)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "<table>\n<thead><tr>"
    for column in columns:
        yield f'<th scope="col">{escape(column)}</th>'
    yield "</tr></thead>\n<tbody>\n"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n"
    yield "</tbody>\n</table>\n"


def _formula(logged: LoggedDecision) -> Iterator[tuple[str, str]]:
    decision = logged.decision
    volume, cap = decision.data_volume_per_task, decision.broadcast_cap
    if volume is None or cap is None or decision.raw is None:
        return
    taken = min(decision.broadcast_bytes, cap, volume - 1)
    yield "V, bytes a task", f"{volume:,}"
    if decision.broadcast_bytes:
        numbers = f"min({decision.broadcast_bytes:,}, {cap:,}, {volume:,} - 1)"
        yield "B, broadcast", f"{numbers} = {taken:,}"
    numbers = f"ceil({decision.input_bytes:,} / ({volume:,} - {taken:,}))"
    yield "raw, bytes / (V - B)", f"{numbers} = {decision.raw:,}"
    yield "rounded", f"{decision.rounded:,}"
    yield "limits that changed it", ", ".join(decision.clamps) or "none"
    yield "P, tasks decided", f"{decision.parallelism:,}"
    if decision.requirement:
        yield "slots: least / would like / can use", str(decision.requirement)
        yield "slots that were there", f"{decision.slots}"


def _ran(stage: StageView) -> Iterator[str]:
    ran = stage.ran
    assert ran
    stages = "stage" if len(ran.stages) == 1 else "stages"
    parts = [
        f"Spark's {stages} {', '.join(map(str, ran.stages))}",
        count_text(ran.tasks, "task"),
        f"{ran.run_millis / 1000:.1f} s of tasks",
    ]
    for what, count in ran.moved():
        parts.append(f"{size_text(count)} {what}")
    if ran.failed_tasks:
        parts.append(f"{count_text(ran.failed_tasks, 'task')} failed")
    yield f"<p>Ran as {', '.join(parts)}.</p>\n"


def _chains(stage: StageView) -> Iterator[str]:
    if stage.chains.pipelines:
        yield "<p>Pipelines, from the operator that puts out the rows:</p>\n<ul>\n"
        for pipeline in stage.chains.pipelines:
            number = "" if pipeline.codegen is None else f"*({pipeline.codegen}) "
            names = " ← ".join(
                f'<span title="{escape(node.text)}">{escape(node.name)}</span>'
                for node in pipeline.operators
            )
            yield f"<li>{number}{names}</li>\n"
        yield "</ul>\n"
    if stage.chains.links:
        yield "<p>Where a chain ends:</p>\n<ul>\n"
        for link in stage.chains.links:
            names = f"{escape(link.below.name)} → {escape(link.above.name)}"
            why = f"{link.why.value}. <small>{escape(link.why.explanation)}</small>"
            yield f"<li>{names}: {why}</li>\n"
        yield "</ul>\n"


def _asset(name: str) -> str:
    return importlib.resources.files(__package__).joinpath(name).read_text("utf-8")
