"""Runs programs that have to succeed, and starts others in the background."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def quick_start() -> str:
    """Return the options by which the Makefile makes JVMs with Spark start quickly."""
    return os.environ.get("SPARK_SUBMIT_OPTS", "")


def without_spark(**more: str) -> dict[str, str]:
    """Return the variables of a program whose Spark knows nothing of this process's Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    ours = {"SPARK_SUBMIT_OPTS": quick_start(), "PYSPARK_PYTHON": sys.executable}
    return {**kept, **ours, **more}


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


def start(
    *command: str | Path,
    log: Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own. What it prints goes to a log."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [*map(str, command)],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
