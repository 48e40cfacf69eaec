"""Errors that Apportion raises. A message names the value, what is allowed, and the next step."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from apportion.redaction import without_secrets


class ApportionError(Exception):
    """Base class of errors that the user can fix. The message is complete without a traceback.

    Messages have no passwords and tokens, because logs and notebooks keep them.
    """

    def __init__(self, message: str) -> None:
        super().__init__(without_secrets(message))

    def _render_traceback_(self) -> list[str]:
        # IPython shows these lines instead of a traceback through the package.
        return [f"{type(self).__name__}: {self}"]


class SettingError(ApportionError, ValueError):
    """An unknown setting, or a value that the setting does not allow."""


class InputError(ApportionError, ValueError):
    """An invalid argument of `decide`, `resources.plan` or `apportion.keys`."""


class QueryError(ApportionError):
    """A query that failed, with Spark's message but without its plan and stack."""


class SparkEndedError(ApportionError):
    """The JVM of Spark has ended, for example because it ran out of memory."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean <nearest known name>?`, or '' if no known name is close."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f" Did you mean {by_lower_case[nearest[0]]}?" if nearest else ""
