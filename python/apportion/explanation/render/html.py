"""Explanations as one self-contained HTML page: no server, network or other files needed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from apportion import _html
from apportion._util.units import count_text, size_text
from apportion.eventlog import LoggedDecision
from apportion.explanation.render.graph import graph
from apportion.explanation.render.plots import ranges_plot, slots_plot
from apportion.explanation.render.sql_text import marked_sql
from apportion.explanation.views.view import QueryView, averages_text, memory_text


def render(title: str, queries: Sequence[QueryView], remarks: Sequence[str] = ()) -> str:
    """Return the page. `remarks` appear at the top, such as the omitted parts of a log."""
    return _html.render(
        "page.html",
        title=title,
        queries=queries,
        remarks=remarks,
        asset=_html.asset,
        graph=graph,
        marked_sql=marked_sql,
        partitions_plot=partitions_plot,
        slots_plot=slots_plot,
    )


def framed(title: str, page: str) -> str:
    """Return a page as an iframe, to embed in another page such as a notebook."""
    # Without a base, links within the page would be relative to the address of the outer page.
    based = page.replace("<head>", '<head>\n<base href="about:srcdoc">', 1)
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" srcdoc="{escape(based)}" '
        'style="width: 100%; height: 36rem; border: 0; resize: vertical"></iframe>'
    )


def partitions_plot(logged: LoggedDecision) -> Markup:
    """Return a figure of the bytes of each shuffle partition; empty if the log has no bytes."""
    if not logged.subpartition_bytes:
        return Markup()
    decision = logged.decision
    sums = [sum(sizes) for sizes in zip(*logged.subpartition_bytes, strict=True)]
    largest, mean = decision.largest_task_bytes, decision.mean_task_bytes
    # A local read of map outputs has no ranges.
    ranges = f", in {count_text(len(decision.ranges), 'range')}" if decision.ranges else ""
    caption = (
        f"{count_text(len(sums), 'shuffle partition')}, {size_text(sum(sums))}"
        f"{averages_text(logged)}{ranges}; "
        f"largest task {size_text(largest)}, mean {size_text(mean)}"
    )
    if memory := memory_text(decision):
        caption += f"; {memory}"
    plot = ranges_plot(sums, decision.ranges, caption)
    return Markup('<figure class="plot">{}<figcaption>{}</figcaption></figure>').format(
        plot, caption
    )
