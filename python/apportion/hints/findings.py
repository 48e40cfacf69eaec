"""The findings of the linter, their codes and their severity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from apportion.sql.hint_comments import Argument, Hint, HintComment
from apportion.sql.tokens import Token

Severity = Literal["error", "warning"]

# The codes are stable, because CI configurations name them. An error is a statement that fails in
# Spark, or an Apportion hint that cannot be used. A warning is a statement that runs, but not as
# intended. docs/lint-rules.md repeats this table.
CODES: dict[str, tuple[Severity, str]] = {
    "APH001": ("error", "a string, quoted name, comment, hint or template is never closed"),
    "APH002": ("error", "parentheses do not match"),
    "APH101": ("error", "a hint comment where Spark does not allow one"),
    "APH102": ("warning", "an ordinary comment that looks like a hint"),
    "APH103": ("warning", "more than one hint comment in a block"),
    "APH104": ("error", "a hint comment that Spark cannot parse"),
    "APH201": ("error", "an unknown hint, probably a misspelled one"),
    "APH202": ("warning", "an unknown hint"),
    "APH301": ("error", "a wrong number of arguments"),
    "APH302": ("error", "an argument that is not a number"),
    "APH303": ("error", "a number out of range"),
    "APH304": ("error", "a minimum above the maximum"),
    "APH305": ("error", "no power of two between minimum and maximum"),
    "APH306": ("error", "an argument that is not a size"),
    "APH307": ("error", "an argument that is not a ratio between 0 and 1"),
    "APH308": ("error", "an unknown argument of RANGES"),
    "APH309": ("error", "an argument that is not a table name"),
    "APH310": ("error", "a table or alias that the block does not have"),
    "APH311": ("warning", "a hint that appears more than once in a block"),
    "APH312": ("error", "an argument that is not a time"),
    "APH313": ("warning", "a hint for the whole query in a part of it"),
    "APH314": ("error", "a hint for a table that the schema does not have"),
    "APH315": ("warning", "a hint for shuffles of a block that shuffles nothing"),
    "APH316": ("warning", "a number of tasks outside of the bounds of the surrounding block"),
    "APH401": ("error", "arguments of a Spark hint that make Spark fail"),
    "APH402": ("warning", "a Spark hint for a table or alias that the block does not have"),
    "APH403": ("warning", "a join hint that another hint overrides"),
    "APH404": ("warning", "a join hint without a join"),
    "APH405": ("warning", "a repartition hint that another hint overrides"),
}


class Complaint(NamedTuple):
    """A finding about `sql[start:end]`, without line and column."""

    code: str
    start: int
    end: int
    message: str
    suggestion: str | None = None


def sentence(finding: Complaint | Finding) -> str:
    """Return the message of a finding with its suggestion."""
    return finding.message + (f" ({finding.suggestion})" if finding.suggestion else "")


def complain(
    code: str,
    place: Argument | Hint | HintComment | Token,
    message: str,
    suggestion: str | None = None,
) -> Complaint:
    """Return a finding about a part of the text."""
    return Complaint(code, place.start, place.end, message, suggestion)


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem with the hints of a text, about `sql[offset : offset + length]`.

    `line` and `column` count from 1. `column`, `offset` and `length` count characters. `code` is a
    key of `CODES`. `suggestion` is a possible correction, or None. `statement` is the number of the
    statement, counted from 1.
    """

    line: int
    column: int
    code: str
    message: str
    suggestion: str | None
    severity: Severity
    offset: int
    length: int
    statement: int
