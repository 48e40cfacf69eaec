"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: the terminal.")
]
Format = Annotated[
    Literal["text", "json"], typer.Option("--format", help="text to read, json for programs.")
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the result to a .png or .svg file."),
]
Tables = Annotated[
    Path | None,
    typer.Option(
        "--tables", help="A directory of parquet, csv or json tables, by file or folder name."
    ),
]
