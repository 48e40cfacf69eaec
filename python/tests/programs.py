"""Runs programs that have to succeed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def run(
    *command: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> str:
    """Return what a program prints; it is looked for on the PATH of its own environment."""
    finished = subprocess.run(
        ["env", *map(str, command)],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout
