"""What a check is given, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from apportion.doctor.conf import Conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """What a check looked at, and how it is: `advice` says what to do, or what to know."""

    check: str
    looked_at: str
    verdict: Verdict = "ok"
    advice: str = ""


@dataclass(frozen=True)
class Setup:
    """What is examined: a conf, with the session that has it if one runs."""

    conf: Conf
    session: SparkSession | None = None


Check = Callable[[Setup], Iterable[Finding]]
"""Yields no finding where it has nothing to look at."""
