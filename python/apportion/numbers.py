"""Checks of numbers."""

from __future__ import annotations

from apportion.errors import InputError

LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1


def check(name: str, value: int, least: int = 1, most: int = LARGEST_INT) -> None:
    """Raise `InputError` unless `value` is a whole number within these."""
    # bool is an int to Python, and not what anyone means by a number.
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise InputError(f"{name} is {value!r}: allowed is a whole number from {least} to {most}")
