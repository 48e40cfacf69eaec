"""Draws how the values of columns fall over tasks."""

from __future__ import annotations

from pathlib import Path

from apportion._util.figures import figure, save
from apportion.keys.key_distribution import Dealt

_PANEL_HEIGHT = 2.4
_TASK_WIDTH = 0.12
_LEAST_WIDTH, _MOST_WIDTH = 7.0, 24.0


def draw(dealt: Dealt, title: str, file: Path) -> None:
    """Draw the rows of each task: one panel by hash, one by even keys.

    Raises `ApportionError` when matplotlib is not installed or the file cannot be written.
    """
    drawn = figure()
    tasks = len(dealt.even.rows)
    width = min(max(_LEAST_WIDTH, 2 + _TASK_WIDTH * tasks), _MOST_WIDTH)
    drawn.set_size_inches(width, 1 + 2 * _PANEL_HEIGHT)
    panels = drawn.subplots(2, sharex=True, sharey=True)
    for axes, (name, deal), color in zip(panels, dealt.deals(), ("C1", "C0"), strict=True):
        axes.bar(range(tasks), deal.rows, color=color, width=0.9)
        axes.axhline(sum(deal.rows) / tasks, color="black", linestyle="--", linewidth=0.8)
        axes.set_title(f"{name}: {deal}; mean dashed", loc="left", fontsize="small")
    drawn.suptitle(title, fontsize="medium")
    drawn.supylabel("rows")
    panels[-1].set_xlabel("task")
    save(drawn, file)
