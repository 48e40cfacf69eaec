"""Parser for deeply nested JSON, such as the plan of a query with hundreds of joins.

`json.loads` recurses for each level. Depending on the Python version, it raises `RecursionError`
after some hundred levels, or ends the process if a thread has a small stack.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

# Levels that `json.loads` reads in every version, also if its caller is deep in the stack already.
_SAFE_LEVELS = 500
MAX_LEVELS = 20_000

_OTHERS = bytes(set(range(256)).difference(b'[]{}"'))
# The last text of a truncated line has no end.
_TEXT = re.compile(rb'"[^"]*"?')
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SPACE = re.compile(r"[ \t\n\r]*")
_CLOSING: dict[type, str] = {list: "]", dict: "}"}


class TooDeepError(Exception):
    """JSON with more than `MAX_LEVELS` nested lists and objects."""


def is_shallow(line: bytes) -> bool:
    """Return whether a recursive parser can read a line of JSON in every version."""
    return _levels(line) <= _SAFE_LEVELS


def loads(line: bytes) -> Any:
    """Return the value of a line of JSON.

    Raises `ValueError` for other text, and `TooDeepError` for more than `MAX_LEVELS` levels.
    """
    if is_shallow(line):
        try:
            return json.loads(line)
        except RecursionError:
            pass
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
    """Parse JSON without recursion. Values without nested values are left to `json`."""
    decode = json.JSONDecoder().raw_decode
    containers: list[Any] = []
    # For each container, the key of the value that is read. Lists have no keys.
    keys: list[str] = []
    at = _space(text, 0)
    while True:
        opening = text[at : at + 1]
        if opening in ("[", "{"):
            container: Any = [] if opening == "[" else {}
            at = _space(text, at + 1)
            if text[at : at + 1] != _CLOSING[type(container)]:
                if len(containers) == MAX_LEVELS:
                    raise TooDeepError
                containers.append(container)
                key, at = _key(text, at) if opening == "{" else ("", at)
                keys.append(key)
                continue
            value, at = container, at + 1
        else:
            value, at = decode(text, at)
        # The value is complete. It can be the last value of several containers.
        while containers:
            container = containers[-1]
            if isinstance(container, list):
                container.append(value)
            else:
                container[keys[-1]] = value
            at = _space(text, at)
            mark = text[at : at + 1]
            if mark == ",":
                at = _space(text, at + 1)
                if isinstance(container, dict):
                    keys[-1], at = _key(text, at)
                break
            if mark != _CLOSING[type(container)]:
                raise ValueError(f"there is no end of a list or object at {at}")
            value, at = containers.pop(), at + 1
            keys.pop()
        else:
            if _space(text, at) != len(text):
                raise ValueError(f"there is more than one value at {at}")
            return value


def _key(text: str, at: int) -> tuple[str, int]:
    """Return the key of an object at a place, and the place of its value."""
    if text[at : at + 1] != '"':
        raise ValueError(f"there is no key at {at}")
    key, at = json.JSONDecoder().raw_decode(text, at)
    at = _space(text, at)
    if text[at : at + 1] != ":":
        raise ValueError(f"there is no colon at {at}")
    return key, _space(text, at + 1)


def _space(text: str, at: int) -> int:
    """Return the place of the first character that is no white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at
