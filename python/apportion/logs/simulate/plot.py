"""Plot of a simulation: makespan, tasks, slot-seconds and largest task of each scenario."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from apportion._util.figures import figure, save
from apportion._util.units import size_text
from apportion.logs.simulate.simulation import Simulation

_PANEL_WIDTH = 3.2
_BAR_HEIGHT = 0.45
_MIN_HEIGHT = 2.2


def draw(simulation: Simulation, file: Path) -> None:
    """Write a plot with a panel for each measure and a bar for each scenario.

    Raises `ApportionError` if matplotlib is not installed or the file cannot be written.
    """
    totals = [row.total for row in simulation.rows]
    names = [row.name for row in simulation.rows]
    measures: list[tuple[str, list[float], Callable[[Any], str]]] = [
        ("makespan, s", [total.makespan for total in totals], "{:,.1f}".format),
        ("tasks", [total.tasks for total in totals], "{:,}".format),
        ("slot-seconds", [total.slot_seconds for total in totals], "{:,.0f}".format),
        ("largest task", [total.largest_task_bytes for total in totals], size_text),
    ]
    drawn = figure()
    height = max(_MIN_HEIGHT, 1 + _BAR_HEIGHT * len(totals))
    drawn.set_size_inches(_PANEL_WIDTH * len(measures), height)
    panels = drawn.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    colors = [f"C{number % 10}" for number in range(len(totals))]
    for axes, (title, values, text) in zip(panels, measures, strict=True):
        bars = axes.barh(range(len(names)), values, color=colors)
        axes.bar_label(bars, [text(value) for value in values], padding=3, fontsize="small")
        axes.set_title(title, loc="left", fontsize="small")
        axes.margins(x=0.35)
        axes.set_xticks([])
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    save(drawn, file)
