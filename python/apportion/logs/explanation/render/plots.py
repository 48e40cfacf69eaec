"""Plots as SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from apportion._util.units import count_text, size_text

# Maximum number of bars or steps of a plot. More partitions share bars, more times share steps.
_MAX_COLUMNS = 400
_WIDTH, _HEIGHT = 1000, 100
_MAX_TICKS = 6

# Times in milliseconds, in order, each with a number, such as the tasks that run until the next.
Steps = Sequence[tuple[int, int]]


class Pause(NamedTuple):
    """A time without batches, in milliseconds since 1970."""

    start: int
    end: int
    text: str


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
            outline = "".join(_bar(place, step, bars[place], largest) for place in columns)
            yield _path(shade, outline, _range_text(first, values[first : last + 1]))

    return _svg(draw(), description)


def _bar(column: int, width: float, value: int, largest: int) -> str:
    """Return the outline of a bar. A bar of 0 is still visible."""
    height = max(_HEIGHT * value / largest, 0.5)
    return f"M{column * width:.2f} {_HEIGHT}v{-height:.2f}h{width * 0.92:.2f}V{_HEIGHT}"


def _range_text(first: int, values: Sequence[int]) -> str:
    if len(values) == 1:
        return f"shuffle partition {first}: {size_text(values[0])}"
    total, largest = size_text(sum(values)), size_text(max(values))
    return f"shuffle partitions {first} to {first + len(values) - 1}: {total}, largest {largest}"


def slots_plot(running: Steps, parts: Mapping[str, Steps]) -> Markup:
    """Return a chart of the running tasks over time.

    A column is as high as the most tasks at a time. Each part of `parts`, such as a stage, takes up
    its share of the task time in the column.
    """
    start, end = running[0][0], running[-1][0]
    span = max(end - start, 1)
    count = min(_MAX_COLUMNS, span)
    most = [0] * count
    for first, last, tasks in _in_columns(running, start, span, count):
        for column in range(int(first), min(max(math.ceil(last), int(first) + 1), count)):
            most[column] = max(most[column], tasks)
    peak = max(most) or 1
    total = _areas(running, start, span, count)
    width = _WIDTH / count
    # Heights that the parts drawn before have reached.
    reached = [0.0] * count

    def outline(areas: Sequence[float]) -> str:
        def bars() -> Iterator[str]:
            for column, area in enumerate(areas):
                if area > 0 and total[column] > 0:
                    height = _HEIGHT * most[column] / peak * min(area / total[column], 1)
                    top = _HEIGHT - reached[column] - height
                    reached[column] += height
                    yield f"M{column * width:.2f} {top:.2f}h{width:.2f}v{height:.2f}h-{width:.2f}z"

        return "".join(bars())

    def draw() -> Iterator[str]:
        rest = list(total)
        for number, (name, steps) in enumerate(parts.items(), start=1):
            areas = _areas(steps, start, span, count)
            rest = [all_tasks - area for all_tasks, area in zip(rest, areas, strict=True)]
            yield _path(f"part-{number}", outline(areas), name)
        # Sums of floating-point numbers differ in the last digits.
        others = [area if area > 1e-6 else 0 for area in rest]
        if any(others):
            yield _path("rest", outline(others), "other tasks")

    return _svg(draw(), f"Up to {count_text(peak, 'task')} at once, over {span / 1000:.1f} seconds")


def parts_plot(parts: Sequence[tuple[str, int, str]]) -> Markup:
    """Return a bar of the parts of a time, each with its name, its milliseconds and its colour."""
    total = sum(millis for _, millis, _ in parts) or 1

    def draw() -> Iterator[str]:
        before = 0
        for name, millis, colour in parts:
            left, width = _WIDTH * before / total, _WIDTH * millis / total
            title = f"{name}: {millis / 1000:.1f} s"
            yield _path(colour, f"M{left:.2f} 0h{width:.2f}v{_HEIGHT}h-{width:.2f}z", title)
            before += millis

    return _svg(draw(), f"Parts of {total / 1000:.1f} seconds")


def _path(kind: str, outline: str, title: str) -> str:
    return f'<path class="{kind}" d="{outline}"><title>{escape(title)}</title></path>'


def _in_columns(
    steps: Steps, start: int, span: int, count: int
) -> Iterator[tuple[float, float, int]]:
    """Yield the steps with running tasks as `(first column, end, tasks)`."""
    for (time, tasks), (until, _) in itertools.pairwise(steps):
        if tasks:
            yield (time - start) * count / span, (until - start) * count / span, tasks


def _areas(steps: Steps, start: int, span: int, count: int) -> list[float]:
    """Return the running tasks per column, each times the part of the column that it fills."""
    areas = [0.0] * count
    for first, last, tasks in _in_columns(steps, start, span, count):
        for column in range(int(first), min(math.ceil(last), count)):
            areas[column] += tasks * (min(last, column + 1) - max(first, column))
    return areas


class Tick(NamedTuple):
    """A label of the time axis."""

    percent: float
    """Distance from the left end, as a percentage of the width."""
    text: str


def ticks(running: Steps) -> list[Tick]:
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


def batches_plot(batches: Steps, pauses: Sequence[Pause], goal: int | None) -> Markup:
    """Return a chart of the durations of batches over time, with a dashed line at `goal`.

    A batch is drawn at its time, in milliseconds. The bands are pauses. A column is as high as the
    longest batch that ended in it.
    """
    start, end = batches[0][0], batches[-1][0]
    longest = max(max(duration for _, duration in batches), goal or 0, 1)
    count = min(_MAX_COLUMNS, len(batches))
    columns: dict[int, int] = {}
    for time, duration in batches:
        column = min((time - start) * count // max(end - start, 1), count - 1)
        columns[column] = max(columns.get(column, 0), duration)
    width = _WIDTH / count

    def draw() -> Iterator[str]:
        yield from _bands(pauses, start, end)
        # One element for each kind, so that pages with hundreds of plots open quickly.
        for kind, is_above in (("even", False), ("none", True)):
            outline = "".join(
                _bar(column, width, duration, longest)
                for column, duration in columns.items()
                if (goal is not None and duration > goal) == is_above
            )
            if outline:
                yield f'<path class="{kind}" d="{outline}"></path>'
        if goal is not None:
            y = _HEIGHT - _HEIGHT * goal / longest
            yield f'<path class="goal" d="M0 {y:.2f}H{_WIDTH}"></path>'

    text = f"Batches of up to {max(d for _, d in batches) / 1000:.1f} s"
    return _svg(draw(), text)


def steps_plot(values: Steps, pauses: Sequence[Pause]) -> Markup:
    """Return a chart of a number that changes in steps over time. The bands are pauses."""
    start, end = values[0][0], values[-1][0]
    largest = max(max(value for _, value in values), 1)

    def place(time: int) -> float:
        return _WIDTH * (time - start) / max(end - start, 1)

    def draw() -> Iterator[str]:
        yield from _bands(pauses, start, end)
        line = f"M0 {_HEIGHT - _HEIGHT * values[0][1] / largest:.2f}"
        for (_, before), (time, value) in itertools.pairwise(values):
            if value != before:
                line += f"H{place(time):.2f}V{_HEIGHT - _HEIGHT * value / largest:.2f}"
        yield f'<path class="even" d="{line}H{_WIDTH}V{_HEIGHT}H0Z"></path>'

    return _svg(draw(), f"Between {min(value for _, value in values)} and {largest}")


def _bands(pauses: Sequence[Pause], start: int, end: int) -> Iterator[str]:
    for pause in pauses:
        left = _WIDTH * (max(pause.start, start) - start) / max(end - start, 1)
        width = _WIDTH * (pause.end - max(pause.start, start)) / max(end - start, 1)
        # A short pause is still visible.
        yield (
            f'<rect class="pause" x="{left:.2f}" y="0" width="{max(width, 2):.2f}" '
            f'height="{_HEIGHT}"><title>{escape(pause.text)}</title></rect>'
        )


def _svg(parts: Iterator[str], description: str) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(description)}">{"".join(parts)}</svg>'
    )
