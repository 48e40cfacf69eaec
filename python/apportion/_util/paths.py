"""Paths from user input."""

from __future__ import annotations

from pathlib import Path


def existing_path(path: str) -> Path | None:
    """Return the path of an existing file or directory, or None if it does not exist."""
    try:
        return Path(path) if Path(path).exists() else None
    except (OSError, ValueError):
        # SQL text can be too long for a file name, or contain characters that file names cannot.
        return None
