"""Short forms of the long columns of a decision: what `io.apportion.report.ShortForm` writes."""

from __future__ import annotations

import re

# Logs may hold anything: a few bytes must not become a large list.
_MOST = 1 << 20
_RUN = re.compile(r"(\d{1,10})-(\d{1,10})(?:/(\d{1,10}))?", re.ASCII)


def spread(sums: list[int], width: int, subpartitions: int) -> list[int]:
    """Return about the bytes that sums over `width` neighbours were made of.

    Each sum is divided equally, so that the total stays the same. Raises `ValueError` for sums
    that do not fit the number of subpartitions.
    """
    if width == 1:
        return sums
    if not 1 < width <= subpartitions <= _MOST or len(sums) != -(-subpartitions // width):
        raise ValueError("sums of bytes do not fit the number of subpartitions")
    found: list[int] = []
    for total in sums:
        size = min(width, subpartitions - len(found))
        share, rest = divmod(total, size)
        found += [share + 1] * rest + [share] * (size - rest)
    return found


def ranges(text: str) -> list[tuple[int, int]]:
    """Return the ranges of a text: `0-8/4,8-9` is `(0, 4), (4, 8), (8, 9)`.

    Raises `ValueError` for another text, and for more ranges than a shuffle can have.
    """
    found: list[tuple[int, int]] = []
    for run in text.split(",") if text else ():
        match = _RUN.fullmatch(run)
        start, end, width = (int(group or 0) for group in match.groups()) if match else (0, 0, 0)
        if not match or end < start or (width and (end - start) % width):
            raise ValueError(f"ranges are {run!r}")
        if len(found) + ((end - start) // width if width else 1) > _MOST:
            raise ValueError("there are too many ranges")
        starts = range(start, end, width) if width else (start,)
        found += [(each, each + width if width else end) for each in starts]
    return found
