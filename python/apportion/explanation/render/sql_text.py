"""The SQL text of a query with an element around each of its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from apportion.explanation.views.origins import SqlBlock
from apportion.explanation.views.view import QueryView


def marked_sql(query: QueryView) -> Markup:
    """Return the text of a query. Blocks are nested or apart; others are left out."""
    return Markup("".join(_marked(query)))


def _marked(query: QueryView) -> Iterator[str]:
    assert query.sql is not None
    order = sorted(enumerate(query.blocks), key=lambda each: (each[1].start, -each[1].end))
    at, around = 0, list[SqlBlock]()
    for place, block in order:
        while around and around[-1].end <= block.start:
            end = around.pop().end
            yield f"{escape(query.sql[at:end])}</span>"
            at = end
        if around and block.end > around[-1].end:
            continue
        yield f'{escape(query.sql[at : block.start])}<span class="block" '
        yield f'id="{query.block_anchor(place)}" title="{escape(block.path)}">'
        at = block.start
        around.append(block)
    for block in reversed(around):
        yield f"{escape(query.sql[at : block.end])}</span>"
        at = block.end
    yield escape(query.sql[at:])
