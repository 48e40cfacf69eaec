"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion._util.paths import FORMATS
from apportion.errors import ApportionError

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="File to write. Default: the terminal."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace files that this command did not write.")
]
Format = Annotated[
    Literal["text", "json"], typer.Option("--format", help="For people or for programs.")
]
OutputFormat = Annotated[
    Literal["text", "json"] | None,
    typer.Option("--format", help="Default: by the ending of --output, else text."),
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the result into a .png or .svg file."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        help="Directory of the generated tables. Default: apportion in your cache directory."
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Logs to read at the same time. Default: all cores."),
]
Tables = Annotated[
    Path | None,
    typer.Option("--tables", help="Directory of parquet, csv or json tables."),
]


def choose_format(format: str | None, output: Path | None, allowed: Sequence[str]) -> str:
    """Return the format of an output: the given one, or else the one of the file's ending.

    Other endings get text. Raises `ApportionError` for the ending of a format that is not allowed.
    """
    if format is not None or output is None:
        return format or "text"
    chosen = FORMATS.get(output.suffix.lower(), "text")
    if chosen not in allowed:
        endings = [ending for ending, name in FORMATS.items() if name in allowed]
        raise ApportionError(f"--output {output}: the name must end in {' or '.join(endings)}")
    return chosen
