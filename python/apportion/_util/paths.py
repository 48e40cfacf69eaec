"""Paths that people give."""

from __future__ import annotations

from pathlib import Path


def found(path: str) -> Path | None:
    """Return the file or directory at a path; None where there is none, or cannot be one."""
    try:
        return Path(path) if Path(path).exists() else None
    except (OSError, ValueError):
        # Too long for a name, as SQL may be, or with a character that none has.
        return None
