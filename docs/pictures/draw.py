"""Draws the pictures of the documentation: `python docs/pictures/draw.py` writes them.

Ranges and numbers of tasks in them are what `apportion.simulate` decides, as the extension does.
A page of `apportion explain` is photographed with chromium, if that is installed. Its event log is
`skewed-join.zstd`: the query `hot-join` of `apportion bench skew`, on Spark 4.2.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

import apportion
from apportion._util.checks import power_nearest
from apportion.logs.simulate.arithmetic.adaptive_writes import levels
from apportion.logs.simulate.arithmetic.ranges import Range, balanced, even, sums
from measurements.results import MAPS, SLOTS, SPEEDS, speed, without_bypass
from measurements.speed.summary import APPORTION

FOLDER = Path(__file__).parent
LOG = FOLDER / "skewed-join.zstd"
WIDTH = 720
INK, FAINT, LINE, PAPER = "#1c2733", "#5b6b7b", "#c8d2dc", "#ffffff"
CARD, BAR, BAR_2, ACCENT = "#f5f7f9", "#3b78c3", "#8fb7e6", "#c2703d"
SHADES = (BAR, ACCENT, "#3f8f6b", "#8a63b0")

# Of one shuffle in MiB, in the order of its partitions. Two of them are heavy.
SIZES = [22, 17, 25, 20, 15, 24, 96, 19, 23, 16, 58, 21, 18, 26, 20, 14]
TASKS = 4

# Packages of the Scala code, without `io.apportion`.
LAYERS = {
    "lists all": ["ApportionExtension"],
    "optional": ["policies", "resources", "writes", "joins", "keys", "ui"],
    "shared": ["hints", "scans", "outcomes", "streams"],
    "deciding": ["reads", "shufflewrites", "report"],
    "plans, settings": ["groups", "memory", "history", "rules", "settings"],
    "access to Spark": ["org.apache.spark", "exchange", "exchange.writer"],
    "without Spark": ["decision", "decision.memory", "decision.ranges"],
}


def stages() -> str:
    """Two stages write 8 shuffle partitions each. Each task of the next stage reads 2 of both."""
    n, tasks, cell = 8, 4, 36
    parts = []
    scans = [(40, "stage 1: scan of orders", 3), (392, "stage 2: scan of customers", 2)]
    for left, name, map_tasks in scans:
        parts.append(_text(left, 30, name, weight=600))
        for k in range(map_tasks):
            parts.append(_box(left + 98 * k, 42, 90, f"map task {k + 1}"))
            parts.append(_arrow(left + 98 * k + 45, 76, left + 98 * k + 45, 104))
        for k, (start, end) in enumerate(even(n, tasks)):
            for i in range(start, end):
                parts.append(_rect(left + cell * i, 108, cell - 3, 34, SHADES[k]))
                parts.append(_text(left + cell * i + 16, 130, str(i), PAPER, "middle"))
            middle = left + cell * (start + end) / 2
            parts.append(_line(middle, 144, 125 + 157 * k, 224, SHADES[k], 2))
    for k in range(tasks):
        parts.append(_box(70 + 157 * k, 226, 110, f"task {k + 1}", SHADES[k]))
    parts.append(_text(360, 288, "stage 3: join", anchor="middle", weight=600))
    return _svg(305, "Stages, shuffles and ranges", parts)


def ranges() -> str:
    """The same bytes, read in even and in balanced ranges."""
    rows = [
        ("even: each task reads 4 shuffle partitions", even(len(SIZES), TASKS)),
        ("balanced: the largest task is as small as possible", balanced(SIZES, TASKS)),
    ]
    parts = []
    for row, (title, found) in enumerate(rows):
        parts += _bars(30 + 190 * row, title, found)
    return _svg(400, "Even and balanced ranges of the same shuffle partitions", parts)


def _bars(top: int, title: str, found: Sequence[Range]) -> list[str]:
    step, height = 40, 90
    largest = max(sums(SIZES, found))
    parts = [_text(40, top, title, INK, weight=600)]
    for k, ((start, end), total) in enumerate(zip(found, sums(SIZES, found), strict=True)):
        shade = (BAR, BAR_2)[k % 2]
        for i in range(start, end):
            tall = height * SIZES[i] / max(SIZES)
            parts.append(_rect(40 + step * i, top + 15 + height - tall, step - 4, tall, shade))
        left, right = 40 + step * start, 36 + step * end
        parts.append(_line(left, top + 112, right, top + 112, shade, 3))
        color = ACCENT if total == largest else FAINT
        label = f"task {k + 1}: {total} MiB"
        parts.append(_text((left + right) / 2, top + 132, label, color, "middle"))
    return parts


def tree() -> str:
    """A map task writes into 2 groups of 32 partitions, and into the parts of a heavy group."""
    n, left, step, heavy = 32, 42, 20, 1
    coarse, fine = levels(n)
    tasks = even(n, coarse)
    parts = [_text(left, 28, "blocks that a map task writes", weight=600)]
    for group, (start, end) in enumerate(even(n, coarse)):
        x, wide = left + step * start, step * (end - start)
        parts.append(_rect(x, 62, wide - 4, 34, SHADES[0]))
        parts.append(_text(x + wide / 2 - 2, 84, f"group {group + 1}", PAPER, "middle"))
        for place in range(start, end):
            x = left + step * place
            shade, stroke = (SHADES[1], "none") if group == heavy else (CARD, LINE)
            parts.append(_rect(x, 122, step - 4, 34, shade, stroke))
        middle = left + step * (start + end) / 2 - 2
        parts.append(_arrow(middle, 160, middle, 188))
        parts.append(_box(middle - 55, 190, 110, f"task {group + 1}"))
    parts.append(_text(left, 54, f"{coarse} groups: all rows at first", FAINT))
    parts.append(_text(left, 114, f"{fine} partitions: later rows of a heavy group", FAINT))
    used = coarse + len(range(*tasks[heavy]))
    written = (
        f"{used} blocks instead of {n}. Task {heavy + 1} reads group {heavy + 1} and its parts."
    )
    parts.append(_text(left, 250, written))
    return _svg(268, "Blocks of a map task with adaptive writes", parts)


def volume() -> str:
    """How 300 MiB with a broadcast of 14 MiB make 8 tasks at 64 MiB per task."""
    total, size, broadcast = 300, 64, 14
    share = size - broadcast
    raw = -(-total // share)
    chosen = power_nearest(raw)
    scale = 2.1
    parts = [_text(40, 28, f"shuffle inputs: {total} MiB", weight=600)]
    parts.append(_rect(40, 40, total * scale, 34, CARD, LINE))
    task = f"V = {size} MiB per task, B = {broadcast} MiB of it for broadcasts"
    parts.append(_text(40, 108, task, weight=600))
    for k in range(raw):
        x = 40 + k * (share * scale + 1)
        parts.append(_rect(x, 120, share * scale - 2, 34, BAR))
        parts.append(_text(x + share * scale / 2, 142, f"{share}", PAPER, "middle"))
    parts.append(_text(40, 176, f"raw = {total} / ({size} - {broadcast}) = {raw}", FAINT))
    parts.append(_text(40, 216, f"P = {chosen}: the power of two nearest to {raw}", weight=600))
    for k in range(chosen):
        wide = total * scale / chosen
        parts.append(_rect(40 + k * wide, 228, wide - 3, 34, BAR_2))
        label = f"{total / chosen:.1f}"
        parts.append(_text(40 + (k + 0.5) * wide, 250, label, INK, "middle"))
    return _svg(290, "From bytes to tasks", parts)


def layers() -> str:
    """The packages of the Scala code. Each imports only packages of its own layer or below."""
    parts = []
    for k, (name, packages) in enumerate(LAYERS.items()):
        top, left = 20 + 58 * k, 170.0
        parts.append(_text(30, top + 22, name, FAINT, weight=600))
        free = (520 - sum(map(len, packages)) * 7 - 6 * len(packages)) / len(packages)
        for package in packages:
            width = free + 7 * len(package)
            parts.append(_box(left, top, width, package))
            left += width + 6
        if k:
            parts.append(_arrow(427, top - 22, 427, top - 3))
    return _svg(20 + 58 * len(LAYERS), "Layers of the Scala code", parts)


def results() -> str:
    """Times faster than Spark's defaults: Apportion, and each fixed number of partitions."""
    rows = {title: speed(name) for name, title in SPEEDS.items() if "3.5" not in name}
    rows[f"{MAPS} map tasks"] = speed("maps", query=MAPS)
    rows |= {f"{slots} slots, emulated": speed("slots", slots=slots) for slots in SLOTS}
    # A letter of the widest fonts takes 8 pixels.
    left, right, top, step = 14 + 8 * max(map(len, rows)), WIDTH - 30, 74, 34
    without = {title: without_bypass(each.raw.name) for title, each in rows.items()}
    means = {
        (title, name): each.mean(name)
        for title, each in rows.items()
        for name in (*each.fixed, APPORTION)
    }
    low, high = math.log2(min(means.values())), math.log2(max(means.values()))

    def x(ratio: float) -> float:
        return left + (right - left) * (math.log2(ratio) - low) / (high - low)

    bottom = top + step * len(rows) - 14
    parts = [_text(20, 30, "Times faster than Spark's defaults", weight=600)]
    legend = [
        (0, ACCENT, "Apportion"),
        (100, BAR, "fixed numbers of partitions"),
        (320, INK, "Spark, bypass off"),
    ]
    for offset, shade, text in legend:
        parts += [_dot(left + offset, 50, shade), _text(left + offset + 12, 55, text, shade)]
    for power in range(math.ceil(low), math.floor(high) + 1):
        at = x(2.0**power)
        parts.append(_line(at, top - 8, at, bottom, INK if power == 0 else LINE))
        parts.append(_text(at, bottom + 20, f"{2.0**power:g}", FAINT, "middle"))
    for place, (title, each) in enumerate(rows.items()):
        y = top + 8 + step * place
        parts.append(_text(left - 14, y + 5, title, anchor="end"))
        parts.append(_dot(x(means[title, APPORTION]), y, ACCENT, 8))
        # On top, so that a number that is as fast can be seen.
        parts += [_dot(x(means[title, name]), y, BAR) for name in each.fixed]
        parts += [_dot(x(ratio), y, INK) for ratio in [without[title]] if ratio]
    return _svg(bottom + 36, "Times faster than Spark's defaults", parts)


PICTURES: dict[str, Callable[[], str]] = {
    f"{draw.__name__}.svg": draw for draw in (stages, tree, volume, ranges, layers, results)
}


def photograph(chromium: str, file: Path) -> None:
    """Write a screenshot of the page of a query, from an event log of a join on skewed keys."""
    html = apportion.explain(LOG).html()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1320, "height": 1010}, color_scheme="light")
        page.set_content(html)
        page.screenshot(path=file)
        browser.close()


def _dot(x: float, y: float, fill: str, radius: int = 4) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>'


def _box(x: float, y: float, width: float, text: str, stroke: str = LINE) -> str:
    label = _text(x + width / 2, y + 22, text, anchor="middle")
    return _rect(x, y, width, 34, CARD, stroke) + label


def _rect(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def _line(x: float, y: float, to_x: float, to_y: float, color: str, width: int = 1) -> str:
    return (
        f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{color}" '
        f'stroke-width="{width}"/>'
    )


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return (
        f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{FAINT}" '
        'marker-end="url(#head)"/>'
    )


def _text(
    x: float, y: float, text: str, color: str = INK, anchor: str = "start", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{text}</text>'
    )


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    # A paper of its own: the site is read on light and on dark.
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" role="img" font-family="system-ui, sans-serif" font-size="14" '
            'fill="none">',
            f"<title>{title}</title>",
            '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{FAINT}"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="{PAPER}"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), "utf-8")
    if chromium := shutil.which("chromium"):
        photograph(chromium, FOLDER / "explained.png")
