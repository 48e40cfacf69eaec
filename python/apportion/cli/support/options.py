"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="File to write. Default: the terminal."),
]
Format = Annotated[
    Literal["text", "json"], typer.Option("--format", help="text for people, json for programs.")
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the result into a .png or .svg file."),
]
Tables = Annotated[
    Path | None,
    typer.Option(
        "--tables",
        help="Directory of parquet, csv or json tables. A table has the name of its file or "
        "folder.",
    ),
]
