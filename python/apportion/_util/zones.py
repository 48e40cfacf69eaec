"""Time zones by the names that Java knows."""

from __future__ import annotations

import datetime
import functools
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SESSION_ZONE = "spark.sql.session.timeZone"
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?\d{2})?")


@functools.lru_cache(maxsize=64)
def time_zone(name: str) -> datetime.tzinfo:
    """Return a time zone, or UTC for a zone that only Java knows.

    >>> time_zone("GMT+02:30")
    datetime.timezone(datetime.timedelta(seconds=9000))
    """
    offset = _OFFSET.fullmatch(name)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        delta = sign * datetime.timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        # Python allows less than a day, and Java 18 hours.
        in_range = abs(delta) < datetime.timedelta(days=1)
        return datetime.timezone(delta if in_range else datetime.timedelta())
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return datetime.timezone.utc
