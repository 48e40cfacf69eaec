"""Parser for deeply nested JSON, such as the plan of a query with hundreds of joins.

`json.loads` recurses for each level. Depending on the Python version, it raises `RecursionError`
after some hundred levels, or ends the process if a thread has a small stack.
"""

from __future__ import annotations

import itertools
import json
import re
import uuid
from contextlib import suppress
from typing import Any

# Levels that `json.loads` reads in every version, also if its caller is deep in the stack already.
_SAFE_LEVELS = 500
MAX_LEVELS = 20_000
# Levels of a piece of deeper JSON.
_PIECE_LEVELS = 100

_OTHERS = bytes(set(range(256)).difference(b'[]{}"'))
# The last text of a truncated line has no end.
_TEXT = re.compile(rb'"[^"]*"?')
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_TOKEN = re.compile(r'"[^"]*"?|[][{}]')


class TooDeepError(Exception):
    """JSON with more than `MAX_LEVELS` nested lists and objects."""


def is_shallow(line: bytes) -> bool:
    """Return whether a recursive parser can read a line of JSON in every version."""
    return _levels(line) <= _SAFE_LEVELS


def loads(line: bytes) -> Any:
    """Return the value of a line of JSON.

    Raises `ValueError` for other text, and `TooDeepError` for more than `MAX_LEVELS` levels.
    """
    levels = _levels(line)
    if levels > MAX_LEVELS:
        raise TooDeepError
    if levels <= _SAFE_LEVELS:
        with suppress(RecursionError):
            return json.loads(line)
    return _loads_deep(line.decode("utf-8", "surrogatepass"))


def _levels(line: bytes) -> int:
    """Return an upper bound of the nested levels, which is exact above `_SAFE_LEVELS`."""
    openings = line.count(b"[") + line.count(b"{")
    if openings <= _SAFE_LEVELS:
        return openings
    unescaped = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = _TEXT.sub(b"", unescaped.translate(None, _OTHERS))
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _loads_deep(text: str) -> Any:
    """Parse JSON in pieces of `_PIECE_LEVELS`, each after the pieces within it."""
    # An object with this key, which no log has, stands for a piece that is parsed already.
    key = uuid.uuid4().hex
    parsed: list[Any] = []

    def parse(piece: list[str]) -> Any:
        return json.loads(
            "".join(piece),
            object_hook=lambda value: parsed[value[key]] if key in value else value,
        )

    # The text of each open piece, up to `at`.
    pieces: list[list[str]] = [[]]
    level = at = 0
    # As many other characters replace escaped ones, so the places of the tokens stay the same.
    for token in _TOKEN.finditer(text.replace("\\\\", "..").replace('\\"', "..")):
        if token[0] in ("[", "{"):
            level += 1
            if level % _PIECE_LEVELS == 0:
                pieces[-1].append(text[at : token.start()])
                pieces.append([])
                at = token.start()
        elif token[0] in ("]", "}"):
            if level > 0 and level % _PIECE_LEVELS == 0:
                parsed.append(parse([*pieces.pop(), text[at : token.end()]]))
                pieces[-1].append(f'{{"{key}": {len(parsed) - 1}}}')
                at = token.end()
            level -= 1
    if len(pieces) > 1:
        raise ValueError("there is no end of a list or object")
    return parse([*pieces[0], text[at:]])
