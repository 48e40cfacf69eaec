"""Matplotlib figures. Only `apportion[plot]` installs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from apportion.errors import ApportionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CREATOR = "apportion"
_FORMATS = (".png", ".svg")
_DOTS_PER_INCH = 150


def check(file: Path) -> None:
    """Raise `ApportionError` if the file type is unknown or matplotlib is not installed."""
    if file.suffix not in _FORMATS:
        raise ApportionError(f"--plot {file}: the file name must end in {' or '.join(_FORMATS)}")
    figure()


def save(drawn: Figure, file: Path) -> None:
    """Write a figure to `file`.

    Raises `ApportionError` if the file cannot be written.
    """
    try:
        field = "Creator" if file.suffix == ".svg" else "Software"
        drawn.savefig(file, dpi=_DOTS_PER_INCH, metadata={field: CREATOR})
    except OSError as error:
        raise ApportionError(f"cannot write {file}: {error.strerror}") from error


def figure() -> Figure:
    """Return an empty figure.

    Raises `ApportionError` if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        raise ApportionError(
            "plots need the Python package matplotlib, which is not installed: "
            "pip install 'apportion[plot]'"
        ) from missing
    return Figure(layout="constrained")
