"""Virtual environments as users have them, which know nothing of this checkout."""

from __future__ import annotations

import os
import shutil
import sys
import venv
from pathlib import Path

from tests import programs

# Variables of the environment that the tests run in.
_OURS = ("PYTHON", "SPARK_", "PYSPARK_", "VIRTUAL_ENV", "PYTEST_")


class Bare:
    """A virtual environment with packages in it, for a `with` block, and a folder to work in."""

    def __init__(self, folder: Path, *packages: str | Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self._venv = folder / "venv"
        self._python = self._venv / "bin" / "python"
        venv.create(self._venv)
        pip = (sys.executable, "-m", "pip", "--python", self._python, "install", "--quiet")
        self.run(*pip, *packages)

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *error: object) -> None:
        # With pyspark it is half a gigabyte, and pytest would keep it.
        shutil.rmtree(self._venv)

    def python(self, code: str, **variables: str) -> str:
        """Return what a program in Python prints."""
        # pyspark-client takes `python -c` for a doctest.
        (self.folder / "program.py").write_text(code, "utf-8")
        return self.run("python", "program.py", **variables)

    def run(self, *command: str | Path, stdin: str = "", **variables: str) -> str:
        """Return what a command prints that is given these environment variables too."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_OURS)
        }
        path = os.pathsep.join([str(self._python.parent), inherited["PATH"]])
        python = str(self._python)
        quick = {"SPARK_SUBMIT_OPTS": programs.quick_start()}
        environment = {**inherited, **quick, "PATH": path, "PYSPARK_PYTHON": python, **variables}
        return programs.run(*command, folder=self.folder, environment=environment, stdin=stdin)
