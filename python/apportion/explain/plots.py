"""Plots as SVG."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from html import escape

from apportion.units import size_text

# More subpartitions share a bar, or more times a step.
_MOST = 400
_WIDTH, _HEIGHT = 1000, 100


def ranges_plot(values: Sequence[int], ranges: Sequence[tuple[int, int]], description: str) -> str:
    """Return a bar for each subpartition; its shade tells the ranges apart, by turns."""
    width = -(-len(values) // _MOST) or 1
    bars = [max(values[start : start + width]) for start in range(0, len(values), width)]
    largest = max(bars, default=0) or 1
    shades = ["none"] * len(values)
    for number, (start, end) in enumerate(ranges):
        shades[start:end] = [("even", "odd")[number % 2]] * (min(end, len(values)) - start)

    def draw() -> Iterator[str]:
        step = _WIDTH / max(len(bars), 1)
        for place, bar in enumerate(bars):
            height = max(_HEIGHT * bar / largest, 0.5)
            first = place * width
            last = min(first + width, len(values)) - 1
            which = f"subpartition {first}" if first == last else f"subpartitions {first} to {last}"
            yield (
                f'<rect class="{shades[first]}" x="{place * step:.2f}" y="{_HEIGHT - height:.2f}" '
                f'width="{step * 0.92:.2f}" height="{height:.2f}">'
                f"<title>{which}: {size_text(bar)}</title></rect>"
            )

    return _svg(draw(), description)


def slots_plot(running: Sequence[tuple[int, int]]) -> str:
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


def _svg(parts: Iterator[str], description: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )
