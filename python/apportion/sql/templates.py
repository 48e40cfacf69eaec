"""Finds where Jinja templates end, and reads the tags that change the structure of the SQL.

Jinja renders a text before Spark reads it. So a template ends by Jinja's rules, whatever SQL
quotes are around it, and a `}}` in a string or in braces of the template does not end it.
"""

from __future__ import annotations

import re
from typing import Literal

Effect = Literal[
    "value",  # `{{ x }}` or `${x}`: renders to text
    "nothing",  # `{# x #}`, `{% set x = 1 %}`: renders to nothing
    "open",  # `{% macro f() %}`, `{% set x %}`: starts SQL that is rendered elsewhere
    "close",  # `{% endmacro %}`
    "if",  # `{% if x %}`: starts SQL that may be left out
    "else",  # `{% elif x %}`, `{% else %}`
    "endif",
    "control",  # `{% for x in y %}` and every other tag: may repeat SQL or leave it out
]

_CLOSERS = {"{{": "}}", "{%": "%}"}
_PIECE = re.compile(
    r"""'[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*" | [(\[{)\]}%'"]""",
    re.VERBOSE | re.DOTALL,
)
_TAG = re.compile(r"\{%[-+]?\s*(\w*)")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}")
_END_OF_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
# The bodies of these tags are rendered where they are called, not where they are written.
_SEPARATE = ("macro", "snapshot", "call", "test", "materialization", "docs", "data_test")


def find_end(sql: str, start: int, limit: int) -> int:
    """Return the end of the template at `start` by Jinja's rules, or -1 if none is before `limit`.

    Takes time linear in the length of the template, or up to `limit` if it has no end.
    """
    opener = sql[start : start + 2]
    if opener == "{#":
        return _after(sql.find("#}", start + 2, limit))
    closer = _CLOSERS[opener]
    depth, position = 0, start + 2
    while match := _PIECE.search(sql, position, limit):
        text, position = match.group(), match.end()
        if depth == 0 and sql.startswith(closer, match.start(), limit):
            return match.start() + 2
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        if text in ("'", '"') or depth < 0:
            return -1
    return -1


def find_next_closer(sql: str, start: int) -> int:
    """Return the end of a template that Jinja cannot read: the next `}}` or `%}`, or -1."""
    return _after(sql.find(_CLOSERS.get(sql[start : start + 2], "#}"), start + 2))


def _after(closer: int) -> int:
    return -1 if closer == -1 else closer + 2


def starts_raw(template: str) -> bool:
    """Tell whether a template is `{% raw %}`. Jinja reads no templates up to `{% endraw %}`."""
    return _RAW.fullmatch(template) is not None


def find_end_of_raw(sql: str, start: int) -> int:
    """Return the start of the next `{% endraw %}`, or the end of the text."""
    match = _END_OF_RAW.search(sql, start)
    return match.start() if match else len(sql)


def read_effect(template: str) -> Effect:
    """Return the effect of a template on the SQL around it."""
    if template.startswith("{#"):
        return "nothing"
    match = _TAG.match(template)
    if match is None:
        return "value"
    tag = match[1]
    if tag == "set":
        return "nothing" if "=" in template else "open"
    if tag in _SEPARATE:
        return "open"
    if tag.startswith("end") and tag[3:] in (*_SEPARATE, "set"):
        return "close"
    if tag in ("do", "import", "from", "extends", "raw", "endraw"):
        return "nothing"
    effects: dict[str, Effect] = {"if": "if", "elif": "else", "else": "else", "endif": "endif"}
    return effects.get(tag, "control")
