"""What the linter says: the findings, their codes, and how bad each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]

# Stable: people name them in their CI. An error is what fails in Spark, or a hint of Apportion's
# that cannot be used; a warning is what runs, but not as it was meant.
CODES: dict[str, tuple[Severity, str]] = {
    "APH001": ("error", "a string, quoted name, comment, hint or template is never closed"),
    "APH002": ("error", "parentheses do not match"),
    "APH003": ("warning", "the statement could not be parsed, so its tables are not known"),
    "APH101": ("error", "a hint comment in a place where Spark reads none"),
    "APH102": ("warning", "an ordinary comment that was meant as a hint"),
    "APH103": ("warning", "more than one hint comment in a block"),
    "APH104": ("error", "a hint comment that Spark cannot parse"),
    "APH201": ("error", "an unknown hint with a name near a known one"),
    "APH202": ("warning", "an unknown hint"),
    "APH301": ("error", "a wrong number of arguments"),
    "APH302": ("error", "not a number"),
    "APH303": ("error", "a number out of range"),
    "APH304": ("error", "a minimum above the maximum"),
    "APH305": ("error", "no power of two between minimum and maximum"),
    "APH306": ("error", "not a data volume"),
    "APH307": ("error", "not a ratio between 0 and 1"),
    "APH308": ("error", "an unknown word for RANGES"),
    "APH309": ("error", "not the name of a table"),
    "APH310": ("error", "a table that the block does not have"),
    "APH311": ("warning", "a hint that is set twice in a block"),
    "APH401": ("error", "arguments of one of Spark's hints with which Spark fails"),
    "APH402": ("warning", "a table in one of Spark's hints that the block does not have"),
    "APH403": ("warning", "a join hint that another one overrides"),
    "APH404": ("warning", "a join hint without a join"),
    "APH405": ("warning", "a repartition hint that another one overrides"),
}


class Complaint(NamedTuple):
    """A finding before its place is looked up: about `sql[start:end]`."""

    code: str
    start: int
    end: int
    message: str
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with the hints of a text.

    `line` and `column` count from 1, `column`, `offset` and `length` in characters; the finding is
    about `sql[offset : offset + length]`. `code` is a key of `CODES`. `suggestion` says what to
    write instead, or is None.
    """

    line: int
    column: int
    code: str
    message: str
    suggestion: str | None
    severity: Severity
    offset: int
    length: int
