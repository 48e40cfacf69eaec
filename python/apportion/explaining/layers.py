"""The layers above the stages as HTML: the query's text with its blocks, and the optimized plan."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from apportion.explaining.origins import SqlBlock
from apportion.explaining.view import QueryView, StageView


def layers(query: QueryView) -> str:
    """Return the text and the optimized plan of a query, each part with links to its stages."""
    return "".join((*_text(query), *_plan(query)))


def origin(query: QueryView, stage: StageView) -> str:
    """Return what a stage comes from, with links to it."""
    blocks = {block.path: place for place, block in enumerate(query.blocks)}
    parts = [f'<a href="#{_block(query, blocks[p])}">{escape(p)}</a>' for p in stage.blocks]
    operators = [
        f'<a href="#{_operator(query, place)}">{escape(query.operators[place].name)}</a>'
        for place in stage.operators
    ]
    found = [
        f"{what} {', '.join(of)}" for what, of in (("block", parts), ("operators", operators)) if of
    ]
    return f"<p>Planned from {'; '.join(found)}.</p>\n" if found else ""


def _text(query: QueryView) -> Iterator[str]:
    if query.sql is None:
        return
    stages = [
        (place, [stage for stage in query.stages if block.path in stage.blocks])
        for place, block in enumerate(query.blocks)
    ]
    yield '<details class="layer"><summary><h3>SQL</h3> <small>blocks</small></summary>\n<pre>'
    yield from _marked(query)
    yield "</pre>\n<ul>\n"
    for place, own in stages:
        path = escape(query.blocks[place].path)
        yield f'<li><a href="#{_block(query, place)}">{path}</a>: {_stages(query, own)}</li>\n'
    yield "</ul>\n</details>\n"


def _marked(query: QueryView) -> Iterator[str]:
    """The text with an element around each block; blocks lie in each other or apart."""
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
        yield f'id="{_block(query, place)}" title="{escape(block.path)}">'
        at = block.start
        around.append(block)
    for block in reversed(around):
        yield f"{escape(query.sql[at : block.end])}</span>"
        at = block.end
    yield escape(query.sql[at:])


def _plan(query: QueryView) -> Iterator[str]:
    if not query.operators:
        return
    yield '<details class="layer"><summary><h3>Optimized plan</h3> <small>operators</small>'
    yield "</summary>\n<pre>"
    for place, operator in enumerate(query.operators):
        own = [stage for stage in query.stages if place in stage.operators]
        text = f'{"  " * operator.depth}<span id="{_operator(query, place)}" class="operator">'
        yield f"{text}{escape(operator.text)}</span>"
        yield f"  <small>{_stages(query, own)}</small>\n" if own else "\n"
    yield "</pre>\n</details>\n"


def _stages(query: QueryView, stages: list[StageView]) -> str:
    names = (f'<a href="#{query.anchor(s.name)}">{escape(s.name)}</a>' for s in stages)
    return ", ".join(names) or "no stage of its own"


def _block(query: QueryView, place: int) -> str:
    return f"q{query.id}-block-{place}"


def _operator(query: QueryView, place: int) -> str:
    return f"q{query.id}-operator-{place}"
