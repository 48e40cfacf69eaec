"""Files that a command writes: no input of it, and no file that another program wrote."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from apportion._util.figures import CREATOR
from apportion._util.paths import existing_path
from apportion.errors import ApportionError

POLICIES_MARK = "# Written by apportion advise. Delete this line to keep your own changes.\n"
# Marks of pages and plots. Texts, and lists in JSON, have no place for a mark.
_MARKS = (
    b'<meta name="generator" content="apportion">',
    f"Software\0{CREATOR}".encode(),
    f">{CREATOR}</dc:title>".encode(),
)
_LONGEST_MARK = 2000


def check_outputs(
    command: str,
    outputs: Iterable[tuple[str, Path | None]],
    inputs: Iterable[str | Path],
    force: bool,
) -> None:
    """Raise `ApportionError` for an output that must not be replaced.

    `outputs` are pairs of an option and its file. They must differ from each other and from the
    `inputs`, and must not be in a folder of them, such as a rolling log. With `force`, they can be
    files that the command did not write.
    """
    others = [Path("/dev/stdin" if str(each) == "-" else each) for each in inputs]
    for option, file in outputs:
        known = file and existing_path(str(file))
        # A terminal, a device or a pipe loses nothing.
        if file is None or (known and not known.is_file()):
            continue
        for other in others:
            if relation := _relation(file, other):
                raise ApportionError(
                    f"{option} {file} {relation} {other}, which apportion {command} reads or "
                    "writes too: name another file"
                )
        if known and not force and _is_foreign(known, command):
            raise ApportionError(
                f"{option} {file} exists, and does not show that apportion {command} wrote it: "
                "name another file, or replace it with --force"
            )
        others.append(file)


def json_text(command: str, content: Mapping[str, Any]) -> str:
    """Return an object as text, which names the command that wrote it."""
    named = {"format": f"apportion {command} 1", **content}
    return json.dumps(named, indent=2, ensure_ascii=False) + "\n"


def _relation(file: Path, other: Path) -> str:
    path, folder = Path(os.path.realpath(file)), Path(os.path.realpath(other))
    # A hard link is another path of the same file.
    is_hard_link = existing_path(str(path)) and existing_path(str(other)) and path.samefile(other)
    return "is" if path == folder or is_hard_link else "is in" if folder in path.parents else ""


def _is_foreign(file: Path, command: str) -> bool:
    """Return whether a file has content without a sign that the command wrote it."""
    try:
        with file.open("rb") as stream:
            start = stream.read(_LONGEST_MARK)
    except OSError:
        return True
    named = re.match(rb'\{\s*"format": "apportion %b ' % re.escape(command.encode()), start)
    # People add their own rules and comments, and may keep the mark below them.
    is_policies = start.startswith(POLICIES_MARK.encode())
    return bool(start) and not named and not is_policies and not any(m in start for m in _MARKS)
