"""Input and output of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from apportion.doctor.conf import Conf
from apportion.redaction import without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """Result of a check."""

    check: str
    looked_at: str
    """Value or file that was examined."""
    verdict: Verdict = "ok"
    advice: str = ""
    """What to do, or additional information."""

    def __post_init__(self) -> None:
        for field in ("looked_at", "advice"):
            object.__setattr__(self, field, without_secrets(getattr(self, field)))


@dataclass(frozen=True)
class Setup:
    """Conf to examine, and the running session if there is one."""

    conf: Conf
    session: SparkSession | None = None


Check = Callable[[Setup], Iterable[Finding]]
"""A check yields no finding if there is nothing to examine."""
