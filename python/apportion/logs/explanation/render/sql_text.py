"""SQL text of a query as HTML, with an element around each block."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from apportion.logs.explanation.views.origins import SqlBlock
from apportion.logs.explanation.views.view import QueryView


def marked_sql(query: QueryView) -> Markup:
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
