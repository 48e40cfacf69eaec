"""Directory for files that can be made again: generated tables and kept advice."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def directory() -> Path:
    """Return the folder of Apportion in the cache directory of the system."""
    local = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    of_system = {"darwin": "~/Library/Caches", "win32": local}
    home = os.environ.get("XDG_CACHE_HOME") or of_system.get(sys.platform, "~/.cache")
    return Path(home, "apportion").expanduser()
