"""Plots as SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from apportion._util.units import count_text, size_text

# Maximum number of bars or steps of a plot. More partitions share bars, more times share steps.
_MAX_COLUMNS = 400
_WIDTH, _HEIGHT = 1000, 100
_MAX_TICKS = 6


def ranges_plot(
    values: Sequence[int], ranges: Sequence[tuple[int, int]], description: str
) -> Markup:
    """Return a bar chart of the shuffle partitions. The ranges have alternating shades."""
    width = -(-len(values) // _MAX_COLUMNS) or 1
    bars = [max(values[start : start + width]) for start in range(0, len(values), width)]
    largest = max(bars, default=0) or 1
    readers: list[int | None] = [None] * len(values)
    for number, (start, end) in enumerate(ranges):
        readers[start:end] = [number] * (min(end, len(values)) - start)

    def draw() -> Iterator[str]:
        step = _WIDTH / max(len(bars), 1)
        # One element for all bars of a range, so that pages with hundreds of plots open quickly.
        for reader, places in itertools.groupby(range(len(bars)), lambda i: readers[i * width]):
            shade = "none" if reader is None else ("even", "odd")[reader % 2]
            columns = list(places)
            first, last = columns[0] * width, min((columns[-1] + 1) * width, len(values)) - 1
            outline = "".join(
                f"M{place * step:.2f} {_HEIGHT}v{-max(_HEIGHT * bars[place] / largest, 0.5):.2f}"
                f"h{step * 0.92:.2f}V{_HEIGHT}"
                for place in columns
            )
            title = _range_text(first, values[first : last + 1])
            yield f'<path class="{shade}" d="{outline}"><title>{title}</title></path>'

    return _svg(draw(), description)


def _range_text(first: int, values: Sequence[int]) -> str:
    if len(values) == 1:
        return f"shuffle partition {first}: {size_text(values[0])}"
    total, largest = size_text(sum(values)), size_text(max(values))
    return f"shuffle partitions {first} to {first + len(values) - 1}: {total}, largest {largest}"


def slots_plot(running: Sequence[tuple[int, int]]) -> Markup:
    """Return a step chart of the running tasks from `(milliseconds, tasks)` in order of time."""
    start, end = running[0][0], running[-1][0]
    span = max(end - start, 1)
    columns = [0] * min(_MAX_COLUMNS, span)
    for (time, tasks), (until, _) in itertools.pairwise(running):
        first = (time - start) * len(columns) // span
        last = (until - start) * len(columns) // span
        for column in range(first, min(max(last, first + 1), len(columns))):
            columns[column] = max(columns[column], tasks)
    peak = max(columns, default=0) or 1

    def draw() -> Iterator[str]:
        step = _WIDTH / len(columns)
        place = 0
        for tasks, same in itertools.groupby(columns):
            count = len(list(same))
            height = _HEIGHT * tasks / peak
            yield (
                f'<rect class="busy" x="{place * step:.2f}" y="{_HEIGHT - height:.2f}" '
                f'width="{count * step:.2f}" height="{height:.2f}"><title>{tasks}</title></rect>'
            )
            place += count

    return _svg(draw(), f"Up to {count_text(peak, 'task')} at once, over {span / 1000:.1f} seconds")


class Tick(NamedTuple):
    """A label of the time axis."""

    percent: float
    """Distance from the left end, as a percentage of the width."""
    text: str


def ticks(running: Sequence[tuple[int, int]]) -> list[Tick]:
    """Return the labels of the axis below `slots_plot`: up to 6 round numbers of seconds."""
    span = max(running[-1][0] - running[0][0], 1)
    # A label at the right end would not fit.
    rough = max(span / _MAX_TICKS, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    digits = max(0, 3 - math.floor(math.log10(step)))
    return [
        Tick(round(100 * step * place / span, 2), f"{step * place / 1000:.{digits}f} s")
        for place in range(_MAX_TICKS + 1)
        if step * place <= 0.93 * span
    ]


def _svg(parts: Iterator[str], description: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )
