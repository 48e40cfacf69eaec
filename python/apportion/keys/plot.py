"""Plot of the distribution of keys over tasks."""

from __future__ import annotations

from pathlib import Path

from apportion._util.figures import figure, save
from apportion.keys.key_distribution import KeyDistribution

_PANEL_HEIGHT = 2.4
_TASK_WIDTH = 0.12
_LEAST_WIDTH, _MOST_WIDTH = 7.0, 24.0


def draw(distribution: KeyDistribution, title: str, file: Path) -> None:
    """Draw the rows of each task, in one panel by hash and in one by even keys.

    Raises `ApportionError` if matplotlib is not installed or the file cannot be written.
    """
    drawn = figure()
    tasks = len(distribution.even.rows)
    width = min(max(_LEAST_WIDTH, 2 + _TASK_WIDTH * tasks), _MOST_WIDTH)
    drawn.set_size_inches(width, 1 + 2 * _PANEL_HEIGHT)
    panels = drawn.subplots(2, sharex=True, sharey=True)
    for axes, (name, loads), color in zip(panels, distribution.loads(), ("C1", "C0"), strict=True):
        axes.bar(range(tasks), loads.rows, color=color, width=0.9)
        axes.axhline(sum(loads.rows) / tasks, color="black", linestyle="--", linewidth=0.8)
        axes.set_title(f"{name}: {loads}; dashed: mean", loc="left", fontsize="small")
    drawn.suptitle(title, fontsize="medium")
    drawn.supylabel("rows")
    panels[-1].set_xlabel("task")
    save(drawn, file)
