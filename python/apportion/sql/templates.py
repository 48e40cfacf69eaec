"""Masks the templates of a text, and reads the tags that change the structure of the SQL.

Templates are Jinja's `{{ x }}`, `{% if x %}` and `{# x #}`, and Spark's `${x}`. Jinja renders a
text before Spark reads it. So a template ends by Jinja's rules, whatever SQL quotes are around it,
and a `}}` in a string or in braces of the template does not end it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

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

# Stands for a template that renders to text. sqlglot reads it as a letter.
FILLER = "\ue000"
# Stands for the first character of every other template. sqlglot reads it as a symbol.
TAG = "\ue002"

_OPENER = re.compile(r"\{[{%#]|\$\{[^{}'\"`\r\n]*\}")
_CLOSERS = {"{{": "}}", "{%": "%}"}
_PIECE = re.compile(
    r"""'[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*" | [(\[{)\]}%'"]""",
    re.VERBOSE | re.DOTALL,
)
# A template that Jinja cannot read ends at the next closer of its line.
_WRONG = re.compile(r"\{(?:\{(?:(?!\{[{%])[^\r\n])*?\}|%(?:(?!\{[{%])[^\r\n])*?%)\}")
_TAG = re.compile(r"\{%[-+]?\s*(\w*)")
_RAW = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}")
_END_OF_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}|\Z")
# The longest template that is searched for after Jinja has failed on the text.
_LONGEST_AFTER_FAILURE = 2000
_MOST_FAILURES = 100
# The bodies of these tags are rendered where they are called, not where they are written.
_SEPARATE = ("macro", "snapshot", "call", "test", "materialization", "docs", "data_test")


class MaskedText(NamedTuple):
    """A text without templates, of equal length, and the range of each template."""

    sql: str
    templates: list[tuple[int, int]]


def mask(sql: str) -> MaskedText:
    """Replace templates by fillers if they render to text, else by a tag, and by spaces.

    An opener without an end stays as it is. Takes linear time.
    """
    pieces: list[str] = []
    templates: list[tuple[int, int]] = []
    copied = position = failures = 0
    while match := _OPENER.search(sql, position):
        start, end = match.span()
        if match[0] in _CLOSERS or match[0] == "{#":
            limit = start + _LONGEST_AFTER_FAILURE if failures else len(sql)
            end = _find_end(sql, start, limit) if failures < _MOST_FAILURES else -1
            if end == -1:
                failures += 1
                wrong = _WRONG.match(sql, start, start + _LONGEST_AFTER_FAILURE)
                end = wrong.end() if wrong else -1
        if end == -1:
            position = start + 2
            continue
        template = sql[start:end]
        filling = TAG if read_effect(template) != "value" else FILLER
        if filling == FILLER and (sql[end : end + 1].isalnum() or sql[end : end + 1] in "_{$"):
            filling *= len(template)  # the template is a part of a longer word
        filling = filling.ljust(len(template))
        pieces += (sql[copied:start], filling)
        templates.append((start, end))
        copied = position = end
        if _RAW.fullmatch(template) and (raw := _END_OF_RAW.search(sql, end)):
            pieces.append(sql[end : raw.start()].replace("{", FILLER))
            copied = position = raw.start()
    return MaskedText("".join((*pieces, sql[copied:])), templates)


def _find_end(sql: str, start: int, limit: int) -> int:
    """Return the end of the template at `start` by Jinja's rules, or -1 if none is before `limit`.

    Takes time linear in the length of the template, or up to `limit` if it has no end.
    """
    opener = sql[start : start + 2]
    if opener == "{#":
        closer = sql.find("#}", start + 2, limit)
        return -1 if closer == -1 else closer + 2
    depth, position = 0, start + 2
    while match := _PIECE.search(sql, position, limit):
        text, position = match.group(), match.end()
        if depth == 0 and sql.startswith(_CLOSERS[opener], match.start(), limit):
            return match.start() + 2
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        if text in ("'", '"') or depth < 0:
            return -1
    return -1


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


def has_template(sql: str) -> bool:
    """Tell whether a text has a template that can add text to it or leave text out."""
    return any(opener in sql for opener in ("{{", "{%", "${"))
