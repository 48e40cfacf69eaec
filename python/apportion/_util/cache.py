"""The folders of generated tables, which are made once and kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from apportion.errors import ApportionError


def directory() -> Path:
    """Return where generated tables are kept, unless a command is told otherwise."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "apportion")


def made_once(folder: Path, write: Callable[[Path], None]) -> Path:
    """Return `folder`; if it is not there, have `write` fill an empty folder that becomes it.

    A folder that is there is complete, as it gets its name only after `write`. What `write` puts
    beside the folder it is given is deleted. Raises `ApportionError` if the folder cannot be made.
    """
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ApportionError(
            f"{error.filename} cannot be made, where generated tables are kept: {error.strerror}. "
            "Name another directory with --data"
        ) from error
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        filled = Path(scratch, "filled")
        filled.mkdir()
        write(filled)
        try:
            filled.rename(folder)
        except OSError:
            # Another process made the same folder first. Anything else is an error.
            if not folder.exists():
                raise
    return folder
