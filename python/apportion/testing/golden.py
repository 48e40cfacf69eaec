"""Golden files: what each statement of a `.sql` file gave, as text that diffs well.

    -- name: sum by key
    -- schema: struct<k:int,total:bigint>
    1 | 10
    2 | NULL
    -- rows: 2
    -- decision: HashAggregate: N=16 P=4 tasks=4 even 4x4 (formula)

Only the `-- name:` lines mean something here. No row can look like one: strings are quoted.
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
    """A golden file that is not what `--update-golden` writes."""


def read(path: Path) -> dict[str, Entry]:
    """Return the entries of a golden file by statement name; none where the file does not exist.

    Raises `GoldenError` for text above the first name, and for a name that comes twice.
    """
    if not path.exists():
        return {}
    entries: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.startswith(_NAME):
            name = line.removeprefix(_NAME)
            if name in entries:
                raise GoldenError(f"{path}:{number}: the name {name!r} comes twice")
            lines = entries[name] = []
        elif line and lines is None:
            raise GoldenError(f"{path}:{number}: {line!r} stands above the first '{_NAME}...'")
        elif line and lines is not None:
            lines.append(line)
    return {name: tuple(lines) for name, lines in entries.items()}


def write(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write the entries in their order, a blank line between; remove the file if there are none."""
    blocks = ("\n".join([_NAME + name, *entry]) + "\n" for name, entry in entries.items())
    if entries:
        path.write_text("\n".join(blocks), encoding="utf-8", newline="\n")
    else:
        path.unlink(missing_ok=True)


def difference(path: str, expected: Entry, actual: Entry) -> str:
    """Return the unified diff from what the golden file has to what the statement gave."""
    lines = difflib.unified_diff(expected, actual, path, "now", lineterm="")
    return "\n".join(lines)
