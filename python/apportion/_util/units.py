"""Text with sizes, counts and times: written for people, and read from settings."""

from __future__ import annotations

import re
import textwrap

WIDTH = 80
"""Columns of text reports."""
# Shorter times of cores are shown in seconds or minutes.
_LEAST_CORE_HOURS = 360
# Spark accepts 64, 64b, 64k and 64kb. Apportion also accepts 64KiB.
_SIZE = re.compile(r"(\d{1,19})\s*(?:b|([kmgtp])(?:i?b)?)?", re.ASCII)
_UNITS = "bkmgtp"
_TIME = re.compile(r"(\d{1,10})(s|m|min|h|d)?", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def size_text(size: int) -> str:
    """Return a number of bytes in the largest unit that it fills.

    >>> size_text(1536)
    '1.5 KiB'
    >>> size_text(64 << 20)
    '64 MiB'
    >>> size_text((1 << 20) - 1)
    '1 MiB'
    """
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        # The text is rounded, and 1024.0 KiB is 1 MiB.
        if round(amount, 1) < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def amount_text(number: int) -> str:
    """Return a large number in millions or billions.

    >>> [amount_text(each) for each in (950, 28_564_493, 2 * 10**9)]
    ['950', '28.6M', '2B']
    """
    for size, letter in ((10**9, "B"), (10**6, "M")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + letter
    return f"{number:,}"


def count_text(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural if needed.

    >>> count_text(2, "task")
    '2 tasks'
    >>> count_text(0, "query")
    '0 queries'
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def seconds_text(seconds: float) -> str:
    """Return a duration in the unit that fits it.

    >>> seconds_text(0.06)
    '60 ms'
    >>> seconds_text(12.34)
    '12.3 s'
    >>> seconds_text(4000)
    '66.7 min'
    """
    if seconds < 0.95:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 600:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 36_000 else f"{seconds / 3600:.1f} h"


def core_time_text(core_seconds: float) -> str:
    """Return the time of cores in the unit that fits it.

    >>> core_time_text(1.1)
    '1.1 core-seconds'
    >>> core_time_text(7200)
    '2.0 core-hours'
    """
    divisor, unit = core_unit(core_seconds)
    return f"{number_text(core_seconds / divisor)} core-{unit}"


def core_unit(core_seconds: float) -> tuple[int, str]:
    """Return the unit that fits the time of cores: its seconds and its name.

    >>> core_unit(360)
    (3600, 'hours')
    """
    if abs(core_seconds) >= _LEAST_CORE_HOURS:
        return 3600, "hours"
    return (60, "minutes") if abs(core_seconds) >= 60 else (1, "seconds")


def number_text(number: float) -> str:
    """Return a number with two significant digits below 10.

    >>> number_text(0.0123)
    '0.012'
    >>> number_text(123.4)
    '123'
    """
    size = abs(number)
    if size >= 10:
        return f"{number:.0f}"
    return f"{number:.1f}" if size >= 1 else f"{number:.2g}" if size >= 0.0001 else "0"


def wrapped(line: str, indent: str = "", first: str | None = None) -> list[str]:
    """Return a line in pieces of at most 80 columns. Longer words stay whole."""
    return textwrap.wrap(
        line,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def first_line(text: str) -> str:
    r"""Return the first line of a text, such as SQL or an error, with single spaces.

    >>> first_line(" SELECT  1\nFROM t")
    'SELECT 1'
    """
    lines = text.strip().splitlines()
    return " ".join(lines[0].split()) if lines else ""


def read_bytes(text: str) -> int:
    """Return the number of bytes, or -1 if `text` is not a size."""
    match = _SIZE.fullmatch(text.strip().lower())
    if not match:
        return -1
    number, unit = match.groups()
    return int(number) << (10 * _UNITS.index(unit or "b"))


def read_seconds(text: str) -> int:
    """Return the number of seconds, or -1 if `text` is not a time."""
    match = _TIME.fullmatch(text.strip().lower())
    return int(match[1]) * _SECONDS[match[2] or "s"] if match else -1
