"""Builds the wheel and the sdist, as `make dist` does."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

from tests import programs


class Distributions(NamedTuple):
    wheel: Path
    sdist: Path


def build(root: Path, folder: Path) -> Distributions:
    """Build both from the sources at `root`; sbt runs unless the jars are up to date."""
    command = (sys.executable, "-m", "build", "--no-isolation", "--sdist", "--wheel")
    programs.run(*command, "--outdir", folder, root)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return Distributions(wheel, sdist)


def unpacked(sdist: Path, folder: Path) -> Path:
    """Return the one folder that an sdist has in it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root
