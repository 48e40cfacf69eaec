"""Virtual environments as users have them, which know nothing of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

# Of the environment that the tests run in.
_OURS = ("PYTHON", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "COV_", "PYTEST_")


class Bare:
    """A virtual environment with packages in it, and a folder to work in."""

    def __init__(self, folder: Path, *packages: str | Path) -> None:
        self.bin = folder / "venv" / "bin"
        self.folder = folder / "work"
        self.folder.mkdir(parents=True)
        venv.create(self.bin.parent)
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install"]
        _checked([*pip, "--quiet", *map(str, packages)], self.folder, self.environment())

    def run(self, *command: str | Path, stdin: str = "", **variables: str) -> str:
        """Return what a command prints; it is given these environment variables too."""
        return _checked(list(map(str, command)), self.folder, self.environment(**variables), stdin)

    def python(self, code: str, **variables: str) -> str:
        """Return what a program in Python prints."""
        return self.run("python", "-c", code, **variables)

    def environment(self, **variables: str) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_OURS)
        }
        path = os.pathsep.join([str(self.bin), inherited["PATH"]])
        return {**inherited, "PATH": path, "PYSPARK_PYTHON": str(self.bin / "python"), **variables}


def _checked(command: list[str], folder: Path, environment: dict[str, str], stdin: str = "") -> str:
    run = subprocess.run(
        # Of several programs of a name, the one on the environment's own path.
        ["env", *command],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
