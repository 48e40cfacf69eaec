"""Folders of generated tables on disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from apportion._util.paths import existing_path
from apportion._util.units import size_text
from apportion.errors import ApportionError


def get_or_build(folder: Path, write: Callable[[Path], None], needed_bytes: int = 0) -> Path:
    """Return `folder`, and build it with `write` if it does not exist.

    `write` fills an empty temporary folder, which is then renamed, so an existing folder is always
    complete. Files that `write` creates beside that folder are deleted. Raises `ApportionError` if
    the parent directory cannot be written, or has less than `needed_bytes` of free space.
    """
    if existing_path(str(folder)):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder.parent).free
        scratch_folder = tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent)
    except OSError as error:
        raise ApportionError(
            f"cannot create {error.filename} for generated tables: {error.strerror}. "
            "Choose another directory with --data"
        ) from error
    with scratch_folder as scratch:
        if needed_bytes > free:
            raise ApportionError(
                f"generated tables need about {size_text(needed_bytes)}, and {folder.parent} has "
                f"{size_text(free)} of free space: choose a smaller --scale, or another directory "
                "with --data"
            )
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
