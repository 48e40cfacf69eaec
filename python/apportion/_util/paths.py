"""Paths from user input."""

from __future__ import annotations

from pathlib import Path

FORMATS = {
    ".html": "html",
    ".svg": "svg",
    ".json": "json",
    ".mmd": "mermaid",
    ".txt": "text",
}
"""Formats of outputs by the ending of their file."""


def write_text(file: Path, text: str) -> None:
    """Write a file at once, so that a failure leaves the old one. Raises `OSError`."""
    if file.exists() and not file.is_file():
        # A device or a pipe cannot be replaced.
        file.write_text(text, "utf-8")
        return
    beside = file.resolve().with_name(f".{file.name}.new")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(file.resolve())
    finally:
        beside.unlink(missing_ok=True)


def existing_path(path: str) -> Path | None:
    """Return the path of an existing file or directory, or None if it does not exist."""
    try:
        return Path(path) if path and Path(path).exists() else None
    except (OSError, ValueError):
        # SQL text can be too long for a file name, or contain characters that file names cannot.
        return None
