"""Graph of the stages of a query, as SVG."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from html import escape
from typing import Literal, NamedTuple

from markupsafe import Markup

from apportion._util.units import amount_text, count_text, size_text
from apportion.logs.explanation.views.facts import marks
from apportion.logs.explanation.views.labels import chosen
from apportion.logs.explanation.views.view import QueryView, StageView

_WIDTH, _LINE = 280, 20
_GAP_X, _GAP_Y = 36, 18
_MARGIN = 12
_MAX_LABEL = 36
# Space for the links of the narrow graph, left of its boxes.
_RAIL = 40
# A smaller graph would be hard to read, so it scrolls.
_LEAST_SCALE = 0.7
# Shares of the task time from which a box has the next colour; `profile.css` has the colours.
_HEAT = (0.02, 0.1, 0.25, 0.5)

# Left upper corner of the box of each stage.
_Places = dict[str, tuple[int, int]]
# Outline of a link between the corners of two boxes, which have the same height.
_Outline = Callable[[tuple[int, int], tuple[int, int], int], str]


def graph(query: QueryView) -> Markup:
    """Return a graph of the stages. Each stage links to its section.

    On a wide screen, it goes from left to right by depth. On a narrow one, from top to bottom.
    """
    if not query.stages:
        return Markup()
    box = _box_height(query)
    narrow = {
        stage.name: (_MARGIN + _RAIL, _MARGIN + place * (box + _GAP_Y))
        for place, stage in enumerate(query.stages)
    }
    wide = _drawing(query, _places(query, box), _curve, "a")
    drawn = _svg("wide", wide) + _svg("narrow", _drawing(query, narrow, _rail, "a"))
    return Markup(
        f'<div class="graph" tabindex="0" role="group" aria-label="Stages of query {query.id}">'
        f"{drawn}</div>\n"
    )


class Drawing(NamedTuple):
    """Elements of SVG, and the space that they need."""

    width: int
    height: int
    elements: str


def drawing(query: QueryView) -> Drawing:
    """Return the wide graph of a query with stages, without links to their sections."""
    return _drawing(query, _places(query, _box_height(query)), _curve, "g")


def _drawing(
    query: QueryView, places: _Places, outline: _Outline, tag: Literal["a", "g"]
) -> Drawing:
    box = _box_height(query)
    width = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in places.values()) + box + _MARGIN
    elements = "".join([*_links(query, places, box, outline), *_boxes(query, places, box, tag)])
    return Drawing(width, height, elements)


def _box_height(query: QueryView) -> int:
    return 12 + _LINE * max(len(_lines(stage)) for stage in query.stages)


def _svg(kind: str, drawn: Drawing) -> str:
    """Return a drawing that shrinks with the window, as far as it can be read."""
    width, height, elements = drawn
    sizes = f"max-width: {width}px; min-width: {_LEAST_SCALE * width:.0f}px"
    return f'<svg class="{kind}" viewBox="0 0 {width} {height}" style="{sizes}">{elements}</svg>'


def heat(share: float | None) -> int:
    """Return the colour for a share of the query's task time, from 0 to 4."""
    return 0 if share is None else sum(share >= least for least in _HEAT)


def _places(query: QueryView, box: int) -> _Places:
    """Return a position for each stage, left of its readers.

    In a column, the critical path comes first, and then the stages with the largest shares. Stages
    of equal colour are near the stages that they read.
    """
    columns: dict[int, list[StageView]] = {}
    numbers = _columns(query)
    for stage in query.stages:
        columns.setdefault(numbers[stage.name], []).append(stage)
    places: _Places = {}
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


def _links(query: QueryView, places: _Places, box: int, outline: _Outline) -> Iterator[str]:
    critical = set(itertools.pairwise(query.critical))
    for stage in query.stages:
        for name in dict.fromkeys(stage.reads):
            marked = ' class="critical"' if (name, stage.name) in critical else ""
            yield f'<path{marked} d="{outline(places[name], places[stage.name], box)}"/>'


def _curve(start: tuple[int, int], end: tuple[int, int], box: int) -> str:
    from_x, to_x = start[0] + _WIDTH, end[0]
    from_y, to_y = start[1] + box // 2, end[1] + box // 2
    middle = (from_x + to_x) // 2
    return f"M{from_x} {from_y}C{middle} {from_y} {middle} {to_y} {to_x} {to_y}"


def _rail(start: tuple[int, int], end: tuple[int, int], box: int) -> str:
    x, from_y, to_y = end[0], start[1] + box // 2, end[1] + box // 2
    # Links to stages further down are further left.
    left = max(2, x - 10 - (to_y - from_y) // (box + _GAP_Y) * 6)
    return f"M{x} {from_y}H{left}V{to_y}H{x}"


def _boxes(query: QueryView, places: _Places, box: int, tag: str) -> Iterator[str]:
    for stage in query.stages:
        x, y = places[stage.name]
        classes = f"heat-{heat(stage.share)}{' critical' if stage.is_critical else ''}"
        # The script of the page scrolls to this box.
        classes += " slowest" if stage.is_slowest else ""
        remarks = [*marks(stage), *(["on the critical path"] if stage.is_critical else [])]
        name = escape(", ".join([_heading(stage), *remarks]))
        lines = _lines(stage)
        title = escape("\n".join(line for line, _ in lines))
        link = f' href="#{escape(query.anchor(stage.name))}"' if tag == "a" else ""
        yield (
            f'<{tag}{link} class="{classes}" aria-label="{name}">'
            f"<title>{title}</title>"
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{box}"/>'
        )
        for row, (line, style) in enumerate(lines):
            styled = f' class="{style}"' if style else ""
            base = y + _LINE * (row + 1)
            yield f'<text{styled} x="{x + 10}" y="{base}">{_shortened(line)}</text>'
        yield f"</{tag}>"


def _lines(stage: StageView) -> list[tuple[str, str]]:
    """Return the lines in the box of a stage, each with its style."""
    problems = stage.verdict or ", ".join(marks(stage))
    lines = [
        (_heading(stage), ""),
        (stage.purpose, "faint"),
        (chosen(stage.decisions), "faint"),
        (_measured(stage), ""),
        (_moved(stage), "faint"),
        (f"▲ {problems}" if problems else "", ""),
    ]
    return [(line, style) for line, style in lines if line]


def _heading(stage: StageView) -> str:
    return stage.name if stage.slots is None else f"{stage.name}, {count_text(stage.slots, 'task')}"


def _measured(stage: StageView) -> str:
    """Return the time of a stage and its share of the task time."""
    if not stage.ran:
        return ""
    share = "" if stage.share is None else f", {stage.share:.0%} of task time"
    return f"{stage.ran.wall_millis / 1000:.1f} s{share}"


def _moved(stage: StageView) -> str:
    """Return the bytes that a stage read and wrote, and its rows."""
    work = stage.ran
    if not work:
        return ""
    read = max(work.input_bytes, stage.file_bytes) + work.shuffle_read_bytes
    written = work.shuffle_written_bytes + work.output_bytes
    sizes = " → ".join(size_text(size) for size in (read, written) if size)
    rows = "" if stage.rows is None else f"{amount_text(stage.rows)} rows"
    return ", ".join(filter(None, (sizes, rows)))


def _shortened(text: str) -> str:
    return escape(text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…")
