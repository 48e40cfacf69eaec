"""Plot of the speedup of each query under each variant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from apportion._util.figures import figure, save
from apportion._util.ratios import Estimate
from apportion.bench.report import title
from apportion.bench.results import Results
from apportion.bench.summary import VariantSummary, ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Variants have different markers as well as different colours.
_MARKERS = "os^Dv*PX"
_PANEL_HEIGHT = 2.6
_QUERY_WIDTH = 0.22
_LEAST_WIDTH = 9.0
# Multiples of each power of two that get a tick.
_TICKS = (1, 1.25, 1.5, 1.75)
_LEAST_RANGE = 1.5


def draw(results: Results, summaries: Iterable[VariantSummary], file: Path) -> None:
    """Draw a panel for each variant except the baseline, with a dot and a bar for each query.

    Raises `ApportionError` if matplotlib is not installed or the file cannot be written.
    """
    drawn = figure()
    variants = [variant.name for variant in results.conditions.variants[1:]]
    width = max(_LEAST_WIDTH, 2 + _QUERY_WIDTH * len(results.queries))
    drawn.set_size_inches(width, 1 + _PANEL_HEIGHT * len(variants))
    panels = drawn.subplots(len(variants), sharex=True, sharey=True, squeeze=False)[:, 0]
    means = {summary.variant: summary.faster for summary in summaries}
    for number, (variant, axes) in enumerate(zip(variants, panels, strict=True)):
        marker, color = _MARKERS[number % len(_MARKERS)], f"C{number}"
        _draw_queries(axes, results, variant, marker, color)
        _draw_mean(axes, variant, means.get(variant), color)
    _set_scale(panels[0])
    drawn.suptitle(title(results), fontsize="medium")
    drawn.supylabel("times faster, log scale")
    panels[-1].set_xlabel("query")
    panels[-1].set_xticks(range(len(results.queries)), list(results.queries), rotation=90)
    save(drawn, file)


def _set_scale(axes: Axes) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_locator(LogLocator(2, _TICKS))
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 1 / _LEAST_RANGE), max(high, _LEAST_RANGE))


def _draw_queries(axes: Axes, results: Results, variant: str, marker: str, color: str) -> None:
    ratios = [
        (place, estimate)
        for place, query in enumerate(results.queries)
        if (estimate := ratio(results, query, variant))
    ]
    axes.axhline(1, color="black", linewidth=0.8)
    axes.errorbar(
        [place for place, _ in ratios],
        [estimate.value for _, estimate in ratios],
        yerr=list(zip(*(estimate.bars for _, estimate in ratios), strict=True)) or None,
        fmt=marker,
        markersize=4,
        elinewidth=1,
        color=color,
    )
    axes.grid(axis="y", linewidth=0.3)


def _draw_mean(axes: Axes, variant: str, mean: Estimate | None, color: str) -> None:
    text = f"{variant}: no query ran under every variant"
    if mean is not None:
        axes.axhline(mean.value, color=color, linestyle="--", linewidth=1)
        text = f"{variant}: geometric mean (dashed) {mean}"
    if mean is not None and mean.interval:
        axes.axhspan(*mean.interval, color=color, alpha=0.15, linewidth=0)
        text = f"{variant}: geometric mean (dashed) with 95 % interval {mean}"
    axes.set_title(text, loc="left", fontsize="small")
