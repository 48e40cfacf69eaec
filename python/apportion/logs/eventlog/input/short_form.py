"""Decoder for the short forms of long columns, which `io.apportion.report.ShortForm` writes."""

from __future__ import annotations

import re

# Limit for the length of a list. In a malformed log, a few bytes could otherwise fill the memory.
_MAX_LENGTH = 1 << 20
_RUN = re.compile(r"(\d{1,10})-(\d{1,10})(?:/(\d{1,10}))?", re.ASCII)


def spread(sums: list[int], width: int, subpartitions: int) -> list[int]:
    """Return approximate bytes of each subpartition from sums over `width` neighbours.

    Each sum is divided equally, so the total stays the same. Raises `ValueError` for sums that do
    not fit the number of subpartitions.
    """
    if width == 1:
        return sums
    if not 1 < width <= subpartitions <= _MAX_LENGTH or len(sums) != -(-subpartitions // width):
        raise ValueError("sums of bytes do not fit the number of subpartitions")
    sizes: list[int] = []
    for total in sums:
        count = min(width, subpartitions - len(sizes))
        share, rest = divmod(total, count)
        sizes += [share + 1] * rest + [share] * (count - rest)
    return sizes


def ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of a text. For example, `0-8/4,8-9` is `(0, 4), (4, 8), (8, 9)`.

    Raises `ValueError` for another text, and for more ranges than a shuffle can have.
    """
    spans: list[tuple[int, int]] = []
    for run in text.split(",") if text else ():
        match = _RUN.fullmatch(run)
        start, end, width = (int(group or 0) for group in match.groups()) if match else (0, 0, 0)
        if not match or end < start or (width and (end - start) % width):
            raise ValueError(f"ranges are {run!r}")
        if len(spans) + ((end - start) // width if width else 1) > _MAX_LENGTH:
            raise ValueError("there are too many ranges")
        starts = range(start, end, width) if width else (start,)
        spans += [(first, first + width if width else end) for first in starts]
    return spans
