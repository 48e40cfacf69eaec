"""The graphs of queries as one self-contained SVG file, in light colours."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Sequence
from html import escape

from apportion._util import pages
from apportion._util.figures import CREATOR
from apportion.errors import ApportionError
from apportion.logs.explanation.render.graph import drawing
from apportion.logs.explanation.views.view import QueryView

_LINE, _MARGIN = 20, 12
_LEAST_WIDTH = 640
# Approximate width of a letter.
_LETTER = 7
# Characters that no file of XML can have.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LEGEND = "The red line is the critical path. A darker box has a larger share of the task time."


def render(queries: Sequence[QueryView]) -> str:
    """Return the graphs of the queries below each other, each with its title and answer.

    Raises `ApportionError` if no query has stages.
    """
    drawn = [(query, drawing(query)) for query in queries if query.stages]
    if not drawn:
        raise ApportionError("no query has stages, so there is no graph to draw")
    width = max(_LEAST_WIDTH, *(picture.width for _, picture in drawn))
    y = 0
    parts = []
    for query, picture in drawn:
        legend = _LEGEND if query.critical else ""
        for text in (f"Query {query.id}: {query.title}", query.answer, legend):
            weight = "normal" if text == legend else "bold"
            for line in textwrap.wrap(text, (width - 2 * _MARGIN) // _LETTER):
                y += _LINE
                parts.append(
                    f'<text x="{_MARGIN}" y="{y}" font-weight="{weight}">{escape(line)}</text>'
                )
        parts.append(
            f'<svg y="{y}" width="{picture.width}" height="{picture.height}">'
            f"{picture.elements}</svg>"
        )
        y += picture.height + _LINE
    content = "\n".join(parts)
    return _NOT_XML.sub(
        "�",
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" width="{width}" height="{y}" '
        f'viewBox="0 0 {width} {y}">\n<metadata><dc:title xmlns:dc='
        f'"http://purl.org/dc/elements/1.1/">{CREATOR}</dc:title></metadata>\n'
        f"<style>\n{_style()}</style>\n"
        f'<path d="M0 0H{width}V{y}H0z" style="fill: #fff; stroke: none"/>\n{content}\n</svg>\n',
    )


@functools.cache
def _style() -> str:
    """Return the style sheet of the graph with the colours themselves.

    Programs for documents have no variables of CSS, and no dark colours.
    """
    sheets = map(pages.asset, ("page.css", "profile.css"))
    light = "".join(sheet.split("@media", 1)[0] for sheet in sheets)
    colours = dict(re.findall(r"--([\w-]+): ([^;]+);", light))
    return re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]], pages.asset("graph.css"))
