"""Plots as SVG."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from html import escape

from markupsafe import Markup

from apportion._util.units import size_text

# More subpartitions share a bar, or more times a step.
_MOST = 400
_WIDTH, _HEIGHT = 1000, 100


def ranges_plot(
    values: Sequence[int], ranges: Sequence[tuple[int, int]], description: str
) -> Markup:
    """Return a bar for each subpartition; their shades tell the ranges apart, by turns."""
    width = -(-len(values) // _MOST) or 1
    bars = [max(values[start : start + width]) for start in range(0, len(values), width)]
    largest = max(bars, default=0) or 1
    readers: list[int | None] = [None] * len(values)
    for number, (start, end) in enumerate(ranges):
        readers[start:end] = [number] * (min(end, len(values)) - start)

    def draw() -> Iterator[str]:
        step = _WIDTH / max(len(bars), 1)
        # The bars of a range are one element: pages of hundreds of plots have to open as well.
        for reader, places in itertools.groupby(range(len(bars)), lambda i: readers[i * width]):
            shade = "none" if reader is None else ("even", "odd")[reader % 2]
            own = list(places)
            first, last = own[0] * width, min((own[-1] + 1) * width, len(values)) - 1
            outline = "".join(
                f"M{place * step:.2f} {_HEIGHT}v{-max(_HEIGHT * bars[place] / largest, 0.5):.2f}"
                f"h{step * 0.92:.2f}V{_HEIGHT}"
                for place in own
            )
            title = _range_text(first, values[first : last + 1])
            yield f'<path class="{shade}" d="{outline}"><title>{title}</title></path>'

    return _svg(draw(), description)


def _range_text(first: int, values: Sequence[int]) -> str:
    if len(values) == 1:
        return f"subpartition {first}: {size_text(values[0])}"
    total, largest = size_text(sum(values)), size_text(max(values))
    return f"subpartitions {first} to {first + len(values) - 1}: {total}, the largest {largest}"


def slots_plot(running: Sequence[tuple[int, int]]) -> Markup:
    """Return steps of how many tasks ran, from `(milliseconds, tasks)` in order of time."""
    start, end = running[0][0], running[-1][0]
    span = max(end - start, 1)
    columns = [0] * min(_MOST, span)
    for (time, tasks), (until, _) in itertools.pairwise(running):
        first = (time - start) * len(columns) // span
        last = (until - start) * len(columns) // span
        for column in range(first, min(max(last, first + 1), len(columns))):
            columns[column] = max(columns[column], tasks)
    most = max(columns, default=0) or 1

    def draw() -> Iterator[str]:
        step = _WIDTH / len(columns)
        place = 0
        for tasks, same in itertools.groupby(columns):
            wide = len(list(same))
            height = _HEIGHT * tasks / most
            yield (
                f'<rect class="busy" x="{place * step:.2f}" y="{_HEIGHT - height:.2f}" '
                f'width="{wide * step:.2f}" height="{height:.2f}"><title>{tasks}</title></rect>'
            )
            place += wide

    return _svg(draw(), f"Up to {most} tasks at once, over {span / 1000:.1f} seconds")


def _svg(parts: Iterator[str], description: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )
