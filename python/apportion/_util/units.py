"""Human-readable sizes and counts."""

from __future__ import annotations


def size_text(size: int) -> str:
    """Return a number of bytes in the largest unit that it fills.

    >>> size_text(1536)
    '1.5 KiB'
    >>> size_text(64 << 20)
    '64 MiB'
    """
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def count_text(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural if needed.

    >>> count_text(2, "task")
    '2 tasks'
    >>> count_text(0, "query")
    '0 queries'
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
