r"""Syntax of Java's regular expressions, for the condition `sql`.

It knows the tokens that `java.util.regex.Pattern` of Java 8 to 21 reads alike. Of all others, such
as `\p{Lu}` or a look-behind, only Java can tell whether they are right.
"""

from __future__ import annotations

import re

from apportion._util.checks import LARGEST_INT

_FLAGS = "[dimsuU]*(?:-[dimsuU]*)?"
_MEMBER = r"(?:[^\[\]\\&^-]|\\[^A-Za-z0-9])"
_TOKENS = re.compile(
    rf"""
    (?P<flags> \(\?{_FLAGS}\) )
    | (?P<open> \((?!\?) | \(\?[=!>] | \(\?{_FLAGS}: )
    | (?P<close> \) )
    | (?P<or> \| )
    | (?P<count> \{{(?P<least>[0-9]+)(?P<most>,[0-9]*)?\}}[?+]? )
    | (?P<repeat> [*+?][?+]? )
    | (?P<atom>
        [^\\\[({{*+?|)]
        | \\(?:[^A-Za-z0-9] | [ABDGHSVWZadefhnrstvwz] | b(?!\{{))
        | \[\^?-?(?P<members>(?:{_MEMBER}(?:-{_MEMBER})? | \\[DSWdfnrstw])+)-?\]
      )
    | (?P<wrong> \(\?(?!<|[cdimsuxU-]*[:)]).? | \{{ )
    """,
    re.DOTALL | re.VERBOSE,
)
_RANGE = re.compile(rf"\\?(.)-\\?(.)|{_MEMBER}|\\.", re.DOTALL)
# Java needs its stack for each group in another.
_DEEPEST = 200


def check(text: str) -> bool:
    """Return whether Java accepts an expression for certain; False if only Java can tell.

    Raises `ValueError` if Java refuses it for certain.
    """
    depth = place = 0
    can_repeat = False
    while place < len(text):
        token = _TOKENS.match(text, place)
        if token is None or depth > _DEEPEST:
            return False
        kind = token.lastgroup
        shown = f"{token[0]} at {place}"
        if kind == "wrong":
            raise ValueError(f"Java has no {shown}")
        if kind == "repeat" and not can_repeat:
            raise ValueError(f"there is nothing to repeat for {shown}")
        if kind == "close" and not depth:
            raise ValueError(f"no group is open for {shown}")
        if kind == "count":
            _check_count(token, shown)
        if token["members"]:
            _check_ranges(token["members"], shown)
        depth += (kind == "open") - (kind == "close")
        can_repeat = kind in ("atom", "close")
        place = token.end()
    if depth:
        raise ValueError("a group is not closed")
    return True


def _check_count(token: re.Match[str], shown: str) -> None:
    digits = (token["most"] or "").removeprefix(",") or token["least"]
    numbers = [_number(token["least"]), _number(digits)]
    if numbers != sorted(numbers) or numbers[1] > LARGEST_INT:
        raise ValueError(f"the numbers are wrong in {shown}")


def _number(digits: str) -> int:
    # Python refuses to read thousands of digits.
    return int(digits) if len(digits.lstrip("0")) <= 10 else LARGEST_INT + 1


def _check_ranges(members: str, shown: str) -> None:
    for member in _RANGE.finditer(members):
        if member[1] and member[1] > member[2]:
            raise ValueError(f"the range {member[0]} is empty in {shown}")
