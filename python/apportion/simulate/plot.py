"""Draws a simulation: makespan, tasks, slot-seconds and largest task of each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apportion._util.figures import figure, save
from apportion._util.units import size_text
from apportion.simulate.simulation import Simulation

_PANEL_WIDTH = 3.2
_BAR_HEIGHT = 0.45
_LEAST_HEIGHT = 2.2


def draw(simulation: Simulation, file: Path) -> None:
    """Draw a panel for each measure, with a bar for each scenario.

    Raises `ApportionError` when matplotlib is not installed or the file cannot be written.
    """
    totals = [(row.name, row.total) for row in simulation.rows]
    names = [name for name, _ in totals]
    measures: list[tuple[str, Sequence[float], Sequence[str]]] = [
        (
            "makespan, s",
            [each.makespan for _, each in totals],
            [f"{each.makespan:,.1f}" for _, each in totals],
        ),
        ("tasks", [each.tasks for _, each in totals], [f"{each.tasks:,}" for _, each in totals]),
        (
            "slot-seconds",
            [each.slot_seconds for _, each in totals],
            [f"{each.slot_seconds:,.0f}" for _, each in totals],
        ),
        (
            "largest task",
            [each.largest_task_bytes for _, each in totals],
            [size_text(each.largest_task_bytes) for _, each in totals],
        ),
    ]
    drawn = figure()
    height = max(_LEAST_HEIGHT, 1 + _BAR_HEIGHT * len(totals))
    drawn.set_size_inches(_PANEL_WIDTH * len(measures), height)
    panels = drawn.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    colors = [f"C{number % 10}" for number in range(len(totals))]
    for axes, (title, values, labels) in zip(panels, measures, strict=True):
        bars = axes.barh(range(len(names)), values, color=colors)
        axes.bar_label(bars, labels, padding=3, fontsize="small")
        axes.set_title(title, loc="left", fontsize="small")
        axes.margins(x=0.35)
        axes.set_xticks([])
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    save(drawn, file)
