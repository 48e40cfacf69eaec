"""Quantities for people."""

from __future__ import annotations


def size_text(size: int) -> str:
    """Return bytes in the largest unit that they fill.

    >>> size_text(1536)
    '1.5 KiB'
    """
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} PiB"


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun in the plural if it needs to be.

    >>> count_text(2, "task")
    '2 tasks'
    >>> count_text(0, "query")
    '0 queries'
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
