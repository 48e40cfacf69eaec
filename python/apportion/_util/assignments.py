"""Options of the form NAME:KEY=VALUE,KEY=VALUE."""

from __future__ import annotations

import re

from apportion.errors import ApportionError

_COMMA = re.compile(r",(?=[\w.]+=)")


def split_variant(text: str, option: str) -> tuple[str, list[str]]:
    """Return the name and the assignments in the value of `option`, NAME:KEY=VALUE,....

    Raises `ApportionError` if `text` does not have that form.
    """
    name, _, assignments = text.partition(":")
    if not re.fullmatch(r"[\w.-]+", name) or not assignments:
        raise ApportionError(f"{option} {text}: write NAME:KEY=VALUE,KEY=VALUE")
    return name, _COMMA.split(assignments)
