"""Finds the SQL files of a directory, or of a dbt project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from apportion.errors import ApportionError

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

_LONGEST_REASON = 200


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

    Raises `ApportionError` for a project file that is not YAML, and for a folder outside of the
    project.
    """
    project = directory / PROJECT_FILE
    try:
        settings = yaml.safe_load(project.read_text("utf-8", errors="replace"))
    except OSError:
        return None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        raise ApportionError(f"{project} is not YAML: {reason}") from None
    named = settings if isinstance(settings, dict) else {}
    folders = [(key, name) for key, usual in _FOLDERS.items() for name in _names(named, key, usual)]
    for target in _names(named, "target-path", "target"):
        folders.append(("target-path", f"{target}/compiled"))
    root = directory.resolve()
    for key, folder in folders:
        if not (root / folder).resolve().is_relative_to(root):
            raise ApportionError(
                f"{project}: {key} has the folder {folder}, which is outside of the project: "
                "write a folder inside of it"
            )
    files = [file for _, folder in folders for file in find_sql_files(directory / folder)]
    return list(dict.fromkeys(files))


def _names(settings: Mapping[object, object], key: str, usual: str) -> list[str]:
    """Return the folders of a key: a text or a list. Jinja has no value here."""
    value = settings.get(key)
    values = value if isinstance(value, list) else [value]
    names = [name for name in values if isinstance(name, str) and "{{" not in name]
    return names or [usual]
