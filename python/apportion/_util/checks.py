"""Range checks for numbers, and powers of two."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

from apportion.errors import InputError

LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1


def check(name: str, value: object, least: int = 1, most: int = LARGEST_INT) -> int:
    """Return `value` as an int. Raise `InputError` unless it is from `least` to `most`."""
    number = whole_number(value)
    if number is None or not least <= number <= most:
        raise InputError(f"{name} is {value!r}: allowed is a whole number from {least} to {most}")
    return number


def whole_number(value: Any) -> int | None:
    """Return a whole number, which can be one of NumPy, as an int; None for other values."""
    # bool is a subclass of int.
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def is_number(value: object, least: float, most: float) -> bool:
    """Return whether `value` is a number from `least` to `most`."""
    return isinstance(value, Real) and least <= float(value) <= most


def power_down(number: int) -> int:
    """Return the largest power of two at or below `number`; 0 for 0."""
    return 1 << (number.bit_length() - 1) if number > 0 else 0


def power_up(number: int) -> int:
    """Return the smallest power of two at or above `number`; 0 for 0."""
    return 1 << (number - 1).bit_length() if number > 0 else 0


def power_nearest(number: int) -> int:
    """Return the nearest power of two; the larger one if both are equally near."""
    lower, upper = power_down(number), power_up(number)
    return lower if number < (lower + upper) // 2 else upper
