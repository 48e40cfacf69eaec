"""Finds the SQL files of a directory, or of a dbt project."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT_FILE = "dbt_project.yml"
# The folders and their names unless the project file says otherwise. See
# https://docs.getdbt.com/reference/dbt_project.yml
_FOLDERS = {
    "model-paths": "models",
    "macro-paths": "macros",
    "snapshot-paths": "snapshots",
    "analysis-paths": "analyses",
    "test-paths": "tests",
}


def find_sql_files(directory: Path) -> list[Path]:
    """Return all `.sql` files below a directory, except hidden ones."""
    return sorted(file for file in directory.rglob("*.sql") if _is_source(file, directory))


def _is_source(file: Path, below: Path) -> bool:
    parts = file.relative_to(below).parts
    return file.is_file() and not any(part.startswith(".") for part in parts)


def find_project_files(directory: Path) -> list[Path] | None:
    """Return the SQL files of a dbt project, or None if the directory is none.

    These are the sources with Jinja, and the compiled models if the project has been compiled.
    Installed packages are left out, because the project does not own them.
    """
    try:
        settings = (directory / PROJECT_FILE).read_text("utf-8", errors="replace")
    except OSError:
        return None
    folders = [name for key, usual in _FOLDERS.items() for name in _read(settings, key, usual)]
    targets = _read(settings, "target-path", "target")
    folders += [f"{target}/compiled" for target in targets]
    files = [file for folder in folders for file in find_sql_files(directory / folder)]
    return list(dict.fromkeys(files))


def _read(settings: str, key: str, usual: str) -> list[str]:
    """Return the values of a top-level key: `key: a`, `key: [a, b]`, or a list below it."""
    line = rf"^{key}[ \t]*:[ \t]*(?P<value>\[[^\]]*\]|[^\s#][^#\n]*|(?:\s*\n[ \t]*-[ \t][^\n]*)+)"
    match = re.search(line, settings, re.MULTILINE)
    if match is None:
        return [usual]
    parts = re.split(r"[\[\],\n]|^[ \t]*-[ \t]", match["value"], flags=re.MULTILINE)
    values = (part.partition(" #")[0].strip().strip("'\"") for part in parts)
    return [value for value in values if value and not value.startswith("{{")] or [usual]
