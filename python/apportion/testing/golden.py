"""Golden files: the results of the statements of a `.sql` file, as text for readable diffs.

    -- name: sum by key
    -- schema: struct<k:int,total:bigint>
    1 | 10
    2 | NULL
    -- rows: 2
    -- decision: HashAggregate: N=16 P=4 tasks=4 even 4x4 (formula)

Only `-- name:` lines are parsed. No row can look like one, because strings are quoted.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from apportion.errors import ApportionError

_NAME = "-- name: "

Entry = tuple[str, ...]
"""The lines of one statement, without its `-- name:` line."""


class GoldenError(ApportionError):
    """A golden file that `--apportion-update-golden` did not write."""


def read(path: Path) -> dict[str, Entry]:
    """Return the entries of a golden file by statement name, none if the file does not exist.

    Raises `GoldenError` for text above the first name, and for a duplicate name.
    """
    if not path.exists():
        return {}
    entries: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.startswith(_NAME):
            name = line.removeprefix(_NAME)
            if name in entries:
                raise GoldenError(f"{path}:{number}: duplicate name {name!r}")
            lines = entries[name] = []
        elif line and lines is None:
            raise GoldenError(f"{path}:{number}: {line!r} is above the first '{_NAME}...'")
        elif line and lines is not None:
            lines.append(line)
    return {name: tuple(lines) for name, lines in entries.items()}


def write(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write the entries in order, with blank lines between. Without entries, delete the file."""
    blocks = ("\n".join([_NAME + name, *entry]) + "\n" for name, entry in entries.items())
    if entries:
        path.write_text("\n".join(blocks), encoding="utf-8", newline="\n")
    else:
        path.unlink(missing_ok=True)


def difference(path: str, expected: Entry, actual: Entry) -> str:
    """Return the unified diff from the golden entry to the actual result."""
    lines = difflib.unified_diff(expected, actual, path, "now", lineterm="")
    return "\n".join(lines)
