"""What Apportion raises: every message names the thing, what is allowed, and the next step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ApportionError(Exception):
    """An error that whoever runs the program can act on: its text is the whole story."""


class SettingError(ApportionError, ValueError):
    """A setting that is unknown, or a value that it does not allow."""


class InputError(ApportionError, ValueError):
    """An input of `decide` that is no list of byte counts, an argument of `apportion.keys`."""


class QueryError(ApportionError):
    """A query that failed: Spark's own message, without plan and stack."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean <the nearest known name>?`, or nothing when none is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f" Did you mean {by_lower_case[nearest[0]]}?" if nearest else ""
