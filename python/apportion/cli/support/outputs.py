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
# Beginnings of pages, plots and policy files. Texts, and lists in JSON, have no place for a mark.
_MARKS = re.compile(
    rb'\s*<!doctype html>.{,300}<meta name="generator" content="apportion">'
    rb"|\x89PNG.{,300}Software\0%b|<\?xml.{,1500}<dc:title>%b<|%b"
    % (CREATOR.encode(), CREATOR.encode(), re.escape(POLICIES_MARK.encode())),
    re.DOTALL,
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
        if file is None:
            continue
        for other in others:
            if relation := _relation(file, other):
                raise ApportionError(
                    f"{option} {file} {relation} {other}, which apportion {command} reads or "
                    "writes too: name another file"
                )
        if not force and _is_foreign(file, command):
            raise ApportionError(
                f"{option} {file} exists, and apportion {command} did not write it: name another "
                "file, or replace it with --force"
            )
        others.append(file)


def json_text(command: str, content: Mapping[str, Any]) -> str:
    """Return an object as text, which names the command that wrote it."""
    named = {"format": f"apportion {command} 1", **content}
    return json.dumps(named, indent=2, ensure_ascii=False) + "\n"


def _relation(file: Path, other: Path) -> str:
    known, path, folder = existing_path(str(file)), _resolved(file), _resolved(other)
    # A terminal or a device can be read and written.
    if known and not known.is_file():
        return ""
    # A hard link is another path of the same file.
    is_same = known and existing_path(str(other)) and known.samefile(other)
    return "is" if path == folder or is_same else "is in" if folder in path.parents else ""


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_foreign(file: Path, command: str) -> bool:
    """Return whether a file has content that the command did not write."""
    known = existing_path(str(file))
    # A device or a pipe loses nothing.
    if not known or not known.is_file():
        return False
    try:
        with known.open("rb") as stream:
            start = stream.read(_LONGEST_MARK)
    except OSError:
        return True
    named = re.match(rb'\{\s*"format": "apportion %b ' % re.escape(command.encode()), start)
    return bool(start) and not named and not _MARKS.match(start)
