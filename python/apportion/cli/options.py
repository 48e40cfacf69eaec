"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: the terminal.")
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the result to a .png or .svg file."),
]
