"""Reader of properties files, by the rules of `java.util.Properties.load`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_LINE_END = re.compile(r"\r\n|\n|\r")
# A key ends at the first space, colon or equals sign without a backslash before it.
_PROPERTY = re.compile(r"((?:\\.|[^\\\s:=])*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read(file: Path) -> list[tuple[str, str, int]]:
    """Return the entries of a file in its order: key, value and the number of the first line.

    Bytes that are not UTF-8 are replaced.
    """
    lines = _logical_lines(file.read_bytes().decode("utf-8", errors="replace"))
    return [(*_entry(text), number) for number, text in lines]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each entry with its first line. A backslash at the end of a line continues it."""
    joined, first = "", 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        stripped = line.lstrip(" \t\f")
        if not first and (not stripped or stripped[0] in "#!"):
            continue
        first = first or number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            joined += stripped[:-1]
        else:
            yield first, joined + stripped
            joined, first = "", 0
    if joined:
        yield first, joined


def _entry(line: str) -> tuple[str, str]:
    match = _PROPERTY.match(line)
    key, value = match.groups() if match else (line, "")
    # Spark removes the space around a value.
    return _unescaped(key), _unescaped(value).strip()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2]),
        text,
    )
