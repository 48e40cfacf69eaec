"""Graph of the stages of a query, as SVG."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from apportion._util.units import count_text
from apportion.logs.explanation.views.facts import marks
from apportion.logs.explanation.views.view import QueryView, StageView

_WIDTH, _LINE = 240, 22
_GAP_X, _GAP_Y = 40, 18
_MARGIN = 12
_MAX_LABEL = 28
# Parts of the names of operators that describe a stage best, in order.
_MAIN_OPERATORS = ("Scan", "Join", "Agg", "Window", "Sort", "Limit")
# Shares of the task time from which a box has the next colour; `profile.css` has the colours.
_HEAT = (0.02, 0.1, 0.25, 0.5)


def graph(query: QueryView) -> Markup:
    """Return a graph of the stages, left to right by depth. Each stage links to its section."""
    if not query.stages:
        return Markup()
    # The last line of a box has the problems of the stage.
    box = 12 + _LINE * (4 if any(map(marks, query.stages)) else 3)
    places = _places(query, box)
    width = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in places.values()) + box + _MARGIN
    parts = "".join([*_links(query, places, box), *_boxes(query, places, box)])
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Markup(
        f'<div class="graph" tabindex="0" role="group" aria-label="Stages of query {query.id}">'
        f"<svg {size}>{parts}</svg></div>\n"
    )


def heat(share: float | None) -> int:
    """Return the colour for a share of the query's task time, from 0 to 4."""
    return 0 if share is None else sum(share >= least for least in _HEAT)


def _places(query: QueryView, box: int) -> dict[str, tuple[int, int]]:
    """Return a position for each stage, left of its readers.

    In a column, the critical path comes first, and then the stages with the largest shares. Stages
    of equal colour are near the stages that they read.
    """
    columns: dict[int, list[StageView]] = {}
    numbers = _columns(query)
    for stage in query.stages:
        columns.setdefault(numbers[stage.name], []).append(stage)
    places: dict[str, tuple[int, int]] = {}
    for number, stages in sorted(columns.items()):

        def order(stage: StageView) -> tuple[bool, int, float]:
            read = [places[name][1] for name in stage.reads if name in places]
            height = sum(read) / len(read) if read else 0.0
            return not stage.is_critical, -heat(stage.share), height

        for row, stage in enumerate(sorted(stages, key=order)):
            x = _MARGIN + number * (_WIDTH + _GAP_X)
            places[stage.name] = (x, _MARGIN + row * (box + _GAP_Y))
    return places


def _columns(query: QueryView) -> dict[str, int]:
    """Return a column for each stage: the last one before its readers, so that links are short."""
    last = max(stage.depth for stage in query.stages)
    columns: dict[str, int] = {}
    for stage in reversed(query.stages):
        column = columns.setdefault(stage.name, last)
        for name in stage.reads:
            columns[name] = min(columns.get(name, last), column - 1)
    first = min(columns.values())
    return {name: column - first for name, column in columns.items()}


def _links(query: QueryView, places: dict[str, tuple[int, int]], box: int) -> Iterator[str]:
    critical = set(itertools.pairwise(query.critical))
    for stage in query.stages:
        x, y = places[stage.name]
        for name in dict.fromkeys(stage.reads):
            from_x, from_y = places[name][0] + _WIDTH, places[name][1] + box // 2
            to_y = y + box // 2
            middle = (from_x + x) // 2
            marked = ' class="critical"' if (name, stage.name) in critical else ""
            yield f'<path{marked} d="M{from_x} {from_y}C{middle} {from_y} {middle} {to_y} '
            yield f'{x} {to_y}"/>'


def _boxes(query: QueryView, places: dict[str, tuple[int, int]], box: int) -> Iterator[str]:
    for stage in query.stages:
        x, y = places[stage.name]
        tasks = "" if stage.slots is None else f", {count_text(stage.slots, 'task')}"
        problems = ", ".join(marks(stage))
        lines = [
            (f"{stage.name}{tasks}", ""),
            (_label(stage), "faint"),
            (_measured(stage), ""),
            (f"▲ {problems}" if problems else "", ""),
        ]
        classes = f"heat-{heat(stage.share)}{' critical' if stage.is_critical else ''}"
        # The script of the page scrolls to this box.
        classes += " slowest" if stage.is_slowest else ""
        remarks = [*marks(stage), *(["on the critical path"] if stage.is_critical else [])]
        name = escape(", ".join([f"{stage.name}{tasks}", *remarks]))
        yield (
            f'<a href="#{escape(query.anchor(stage.name))}" class="{classes}" aria-label="{name}">'
            f"<title>{escape(_title(stage))}</title>"
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{box}"/>'
        )
        for row, (line, style) in enumerate(lines):
            if not line:
                continue
            styled = f' class="{style}"' if style else ""
            base = y + _LINE * (row + 1)
            yield f'<text{styled} x="{x + 10}" y="{base}">{_shortened(line)}</text>'
        yield "</a>"


def _label(stage: StageView) -> str:
    """Return the tables of a stage, or the operator that its decision is about, or its main one."""
    if stage.tables:
        return ", ".join(stage.tables)
    if stage.decisions:
        return stage.decisions[0].decision.operator
    names = [node.name for p in stage.pipelines.pipelines for node in p.operators]
    for part in _MAIN_OPERATORS:
        if found := next((name for name in names if part in name), None):
            return found
    return next((name for name in names if not name.endswith("Exchange")), "")


def _measured(stage: StageView) -> str:
    """Return the time of a stage and its share of the task time."""
    if not stage.ran:
        return ""
    share = "" if stage.share is None else f", {stage.share:.0%} of task time"
    return f"{stage.ran.wall_millis / 1000:.1f} s{share}"


def _title(stage: StageView) -> str:
    names = ", ".join(stage.tables) or _label(stage)
    return "\n".join([f"{stage.name}: {names}", _measured(stage), *marks(stage)])


def _shortened(text: str) -> str:
    return escape(text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…")
