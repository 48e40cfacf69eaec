"""Cache of generated tables on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from apportion.errors import ApportionError


def directory() -> Path:
    """Return the default directory for generated tables."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "apportion")


def get_or_build(folder: Path, write: Callable[[Path], None]) -> Path:
    """Return `folder`, and build it with `write` if it does not exist.

    `write` fills an empty temporary folder, which is then renamed, so an existing folder is always
    complete. Files that `write` creates beside that folder are deleted. Raises `ApportionError` if
    the parent directory cannot be created.
    """
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ApportionError(
            f"cannot create {error.filename} for generated tables: {error.strerror}. "
            "Choose another directory with --data"
        ) from error
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        filled = Path(scratch, "filled")
        filled.mkdir()
        write(filled)
        try:
            filled.rename(folder)
        except OSError:
            # Another process has built the same folder in the meantime.
            if not folder.exists():
                raise
    return folder
