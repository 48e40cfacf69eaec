"""Virtual environments as users have them, which know nothing of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

# Variables of the environment that the tests run in.
_OURS = ("PYTHON", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "PYTEST_")


class Bare:
    """A virtual environment with packages in it, and a folder to work in."""

    def __init__(self, folder: Path, *packages: str | Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self._bin = folder / "venv" / "bin"
        venv.create(self._bin.parent)
        pip = (sys.executable, "-m", "pip", "--python", self._bin / "python", "install", "--quiet")
        self.run(*pip, *packages)

    def python(self, code: str, **variables: str) -> str:
        """Return what a program in Python prints."""
        return self.run("python", "-c", code, **variables)

    def run(self, *command: str | Path, stdin: str = "", **variables: str) -> str:
        """Return what a command prints that is given these environment variables too."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_OURS)
        }
        path = os.pathsep.join([str(self._bin), inherited["PATH"]])
        python = str(self._bin / "python")
        run = subprocess.run(
            # Finds programs on the PATH that it is given, not on this process's.
            ["env", *map(str, command)],
            cwd=self.folder,
            env={**inherited, "PATH": path, "PYSPARK_PYTHON": python, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout
