"""Graph of the stages of a query, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from apportion._util.units import count_text
from apportion.explanation.views.view import QueryView, StageView

_WIDTH, _HEIGHT = 200, 58
_GAP_X, _GAP_Y = 40, 18
_MARGIN = 12
_MAX_LABEL = 24


def graph(query: QueryView) -> Markup:
    """Return a graph of the stages, left to right by depth. Each stage links to its section."""
    if not query.stages:
        return Markup()
    places = _places(query)
    width = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in places.values()) + _HEIGHT + _MARGIN
    parts = "".join([*_links(query, places), *_boxes(query, places)])
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Markup(
        f'<div class="graph" tabindex="0" role="group" aria-label="Stages of query {query.id}">'
        f"<svg {size}>{parts}</svg></div>\n"
    )


def _places(query: QueryView) -> dict[str, tuple[int, int]]:
    """Return a position for each stage: a column for each depth, near the stages that it reads."""
    columns: dict[int, list[StageView]] = {}
    for stage in query.stages:
        columns.setdefault(stage.depth, []).append(stage)
    places: dict[str, tuple[int, int]] = {}
    for depth, stages in sorted(columns.items()):

        def height(stage: StageView) -> float:
            read = [places[name][1] for name in stage.reads if name in places]
            return sum(read) / len(read) if read else 0.0

        for row, stage in enumerate(sorted(stages, key=height)):
            x = _MARGIN + depth * (_WIDTH + _GAP_X)
            places[stage.name] = (x, _MARGIN + row * (_HEIGHT + _GAP_Y))
    return places


def _links(query: QueryView, places: dict[str, tuple[int, int]]) -> Iterator[str]:
    for stage in query.stages:
        x, y = places[stage.name]
        for name in dict.fromkeys(stage.reads):
            from_x, from_y = places[name][0] + _WIDTH, places[name][1] + _HEIGHT // 2
            to_y = y + _HEIGHT // 2
            middle = (from_x + x) // 2
            yield f'<path d="M{from_x} {from_y}C{middle} {from_y} {middle} {to_y} {x} {to_y}"/>'


def _boxes(query: QueryView, places: dict[str, tuple[int, int]]) -> Iterator[str]:
    for stage in query.stages:
        x, y = places[stage.name]
        operators = [node.name for p in stage.pipelines.pipelines for node in p.operators]
        label = next((logged.decision.operator for logged in stage.decisions), "") or next(
            (name for name in operators if not name.endswith("Exchange")), ""
        )
        tasks = "" if stage.slots is None else f", {count_text(stage.slots, 'task')}"
        yield (
            f'<a href="#{query.anchor(stage.name)}" aria-label="{escape(stage.name)}{tasks}">'
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}"/>'
            f'<text x="{x + 10}" y="{y + 23}">{escape(stage.name)}{tasks}</text>'
            f'<text class="faint" x="{x + 10}" y="{y + 43}">{escape(_shortened(label))}</text></a>'
        )


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"
