"""Raw files of measurements: CSV files that begin with the conditions of the measurement.

    # kind: measured
    # spark: 4.3.0
    query,variant,run,seconds
    01,Spark,1,3.018

Every number of `docs/results.md` comes from these files. `results.py` writes that page.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.metadata
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion.bench.environment import Environment
from apportion.errors import ApportionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "measurements"
KINDS = ("measured", "emulated", "simulated")
"""Real time; tasks that wait as if they were on slower or other cores; or computed from a log."""
REQUIRED = ("kind", "commit", "spark")
"""Conditions that every file has."""

KEPT = ROOT / "target" / "measurements"

Row = Mapping[str, object]

Folder = Annotated[Path, typer.Option(help="Directory of the raw files.")]
Master = Annotated[str, typer.Option(help="Where Spark runs.")]
Scale = Annotated[float, typer.Option(help="Scale factor of the tables. 1 is about 1 GB as text.")]
Rounds = Annotated[int, typer.Option(min=1, help="Measured runs of each query and variant.")]
Memory = Annotated[str, typer.Option(help="spark.driver.memory")]
Benchmarks = Annotated[str, typer.Option(help="Benchmarks to run: tpch, tpcds or both.")]
Seed = Annotated[int, typer.Option(help="Seed of what is generated.")]
Disk = Annotated[Path, typer.Option(help="Directory for shuffles, best in memory.")]
Logs = Annotated[Path | None, typer.Option(help="Keep the event logs in this directory.")]
Kept = Annotated[
    Path,
    typer.Option(help="Directory of the results. A stopped run continues from these results."),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start over, for example with a new build of Apportion.")
]
Data = Annotated[
    Path | None,
    typer.Option(help="Directory of the tables. Default: apportion in your cache directory."),
]


@dataclasses.dataclass(frozen=True)
class RawFile:
    """Conditions and rows of a measurement."""

    name: str
    conditions: dict[str, str]
    rows: list[dict[str, str]]

    def where(self, **values: object) -> list[dict[str, str]]:
        """Return the rows that have all these values."""
        return [
            row for row in self.rows if all(row[key] == str(value) for key, value in values.items())
        ]


def read(name: str, folder: Path = FOLDER) -> RawFile:
    """Return a raw file. Raises `ApportionError` if a required condition is missing."""
    file = folder / f"{name}.csv"
    lines = file.read_text("utf-8").splitlines()
    head = [line for line in lines if line.startswith("# ")]
    pairs = (line.removeprefix("# ").partition(": ") for line in head)
    conditions = {key: value for key, _, value in pairs}
    if missing := [key for key in REQUIRED if key not in conditions]:
        raise ApportionError(f"{file} does not say its {', '.join(missing)}: add # KEY: VALUE")
    if conditions["kind"] not in KINDS:
        raise ApportionError(
            f"{file}: kind is {conditions['kind']!r}. Allowed is: {', '.join(KINDS)}"
        )
    return RawFile(name, conditions, list(csv.DictReader(lines[len(head) :])))


def write(
    name: str, conditions: Mapping[str, object], rows: Sequence[Row], folder: Path = FOLDER
) -> Path:
    """Write a raw file, and return its path. All rows have the columns of the first one."""
    file = folder / f"{name}.csv"
    folder.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as text:
        text.writelines(f"# {key}: {value}\n" for key, value in conditions.items())
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file


def version(kind: str) -> dict[str, object]:
    """Return the conditions of a measurement that are known without Spark."""
    return {
        "kind": kind,
        "commit": _commit(),
        "apportion": importlib.metadata.version("apportion"),
    }


def conditions(spark: SparkSession, kind: str, **others: object) -> dict[str, object]:
    """Return the conditions of a session: versions, commit, master and cores."""
    return {
        **version(kind),
        **dataclasses.asdict(Environment.from_session(spark)),
        # More than the cores, if other programs ran too.
        "load": f"{os.getloadavg()[2]:.1f}",
        **others,
    }


def _commit() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
    return found or "unknown"


def logging_to(folder: Path) -> dict[str, str]:
    """Return the confs with which Spark writes a plain event log into an existing folder."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def numbers(rows: Iterable[Mapping[str, str]], column: str) -> list[float]:
    """Return the numbers of a column, without empty cells."""
    return [float(row[column]) for row in rows if row[column]]
