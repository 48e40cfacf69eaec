"""The known hints: their names, arguments and checks. No other module repeats them.

`HintGrammar.scala` reads the same hints in Spark. `jvm/src/test/resources/wrong_hints.golden.txt`
keeps both equal: it holds the messages of the Scala side, and `python/tests/hints/test_lint.py`
compares them with the messages here. Change both sides together.

PARALLELISM has a form with two numbers instead of two hints MIN_PARALLELISM and MAX_PARALLELISM, so
that a block cannot take the two bounds from different places.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from apportion._util.checks import LARGEST_INT, power_down, power_up
from apportion._util.units import count_text
from apportion.hints.findings import Complaint, complain
from apportion.sql.hint_comments import Argument, Hint

_VOLUME = re.compile(r"\s*(\d{1,19})\s*(?:b|([kmgtp])(?:i?b)?)\s*", re.ASCII | re.IGNORECASE)
_LONG = re.compile(r"([0-9]{1,19})[lL]")
_TIME = re.compile(
    r"\s*(\d{1,9})\s*(?:(s)(?:ec|econds?)?|(m)(?:in|inutes?)?|(h)(?:ours?)?|(d)(?:ays?)?)\s*",
    re.ASCII | re.IGNORECASE,
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_RANGES = ("even", "balanced")
_BETWEEN_0_AND_1 = "a number above 0 and below 1"

HintKey = tuple[str, tuple[str, ...]]


class Form(NamedTuple):
    """One form of a hint: the names of its parameters, and an example."""

    parameters: tuple[str, ...]
    example: str


class _Type(NamedTuple):
    """The values of a parameter, above `low` and below `high`, and the messages about others."""

    low: int
    high: int
    form: str
    form_code: str
    range: str = ""
    range_code: str = ""


# Parameters with other names are counts.
_TYPES = {
    "": _Type(0, 2**31, "a whole number", "APH302", f"a number from 1 to {LARGEST_INT}", "APH303"),
    "min slots": _Type(
        -1, 2**31, "a whole number", "APH302", f"a number from 0 to {LARGEST_INT}", "APH303"
    ),
    "volume": _Type(
        0,
        2**63,
        "a quoted size with a unit (b, kb, mb, gb, tb, pb), such as '256MB', or a number of bytes",
        "APH306",
        "a size from 1 byte to 8191 pb",
        "APH306",
    ),
    "ratio": _Type(0, 1, _BETWEEN_0_AND_1, "APH302", _BETWEEN_0_AND_1, "APH307"),
    "even|balanced": _Type(0, 2, " or ".join(_RANGES), "APH308"),
    "time": _Type(
        0,
        365 * _SECONDS["d"] + 1,
        "a quoted time with a unit (s, sec, m, min, h, hours, d, days), such as '10 min'",
        "APH312",
        "a time from 1 second to 365 days",
        "APH312",
    ),
    "table": _Type(0, 2, "a table of its block as first argument", "APH309"),
}


def read_time(text: str) -> int | None:
    """Return the seconds of a time such as "10 min", or None if the text is not a time."""
    match = _TIME.fullmatch(text)
    return int(match[1]) * _SECONDS[match[match.lastindex or 0].lower()] if match else None


def is_allowed_time(seconds: int) -> bool:
    """Tell whether a query can have this time to finish."""
    return _TYPES["time"].low < seconds < _TYPES["time"].high


def _read_value(parameter: str, argument: Argument) -> float | None:
    """Return the value of an argument, 1 for a name, or None if the form is wrong."""
    is_string = argument.kind == "string"
    if parameter == "ratio":
        return read_decimal(argument) if argument.kind in ("integer", "decimal") else None
    if parameter in ("table", "even|balanced"):
        is_known = parameter == "table" or argument.string.lower() in _RANGES
        return 1 if is_known and (is_string or argument.kind == "name") else None
    if parameter == "time":
        return read_time(argument.string) if is_string else None
    size = _VOLUME.fullmatch(argument.string) if is_string and parameter == "volume" else None
    if size:
        return int(size[1]) << 10 * " kmgtp".index((size[2] or " ").lower())
    if parameter == "volume" and (long := _LONG.fullmatch(argument.text)):
        return int(long[1])
    return argument.integer if argument.kind == "integer" else None


# All hints of Apportion. docs/hints.md has their meanings.
APPORTION: dict[str, tuple[Form, ...]] = {
    "PARALLELISM": (
        Form(("n",), "PARALLELISM(8)"),
        Form(("min", "max"), "PARALLELISM(4, 64)"),
    ),
    "DATA_VOLUME": (Form(("volume",), "DATA_VOLUME('256MB')"),),
    "BROADCAST_RATIO": (Form(("ratio",), "BROADCAST_RATIO(0.3)"),),
    "RANGES": (Form(("even|balanced",), "RANGES(balanced)"),),
    "SLOTS": (Form(("min", "target", "max"), "SLOTS(1, 16, 64)"),),
    "FINISH_WITHIN": (Form(("time",), "FINISH_WITHIN('10 min')"),),
    "SOURCE_PARALLELISM": (
        Form(("n",), "SOURCE_PARALLELISM(16)"),
        Form(("table", "n"), "SOURCE_PARALLELISM(t, 16)"),
    ),
}
# Spark's join strategies by hint. The strategies are in the order in which Spark prefers them when
# the two sides of a join have different hints.
JOIN_STRATEGIES: dict[str, str] = {
    "BROADCAST": "BROADCAST",
    "BROADCASTJOIN": "BROADCAST",
    "MAPJOIN": "BROADCAST",
    "SHUFFLE_MERGE": "SHUFFLE_MERGE",
    "MERGE": "SHUFFLE_MERGE",
    "MERGEJOIN": "SHUFFLE_MERGE",
    "SHUFFLE_HASH": "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL": "SHUFFLE_REPLICATE_NL",
}
PREFERENCE = tuple(dict.fromkeys(JOIN_STRATEGIES.values()))
COALESCE = "COALESCE"
REPARTITIONS = (COALESCE, "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")
KNOWN = (*APPORTION, *JOIN_STRATEGIES, *REPARTITIONS)
_HINTS_OF_DATABRICKS = ("RANGE_JOIN", "SKEW")

# Likely names that differ too much from the known name for `find_nearest`.
_ALSO_CALLED = {
    "MIN_PARALLELISM": "PARALLELISM(min, max)",
    "MAX_PARALLELISM": "PARALLELISM(min, max)",
}


def suggest_hint(name: str) -> str | None:
    """Return the known hint that is probably meant by an unknown name, or None."""
    return _ALSO_CALLED.get(name) or find_nearest(name, KNOWN)


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`, or None. Ignore case and underscores."""
    by_letters = {candidate.replace("_", "").lower(): candidate for candidate in known}
    letters = name.replace("_", "").lower()
    matches = difflib.get_close_matches(letters, by_letters, n=1, cutoff=0.75)
    return by_letters[matches[0]] if matches else None


def get_key(hint: Hint) -> HintKey:
    """Return the name of a hint and the parts of its table. A block uses one hint per key."""
    if hint.name == "SOURCE_PARALLELISM" and len(hint.arguments) > 1:
        return hint.name, hint.arguments[0].parts
    return hint.name, ()


def get_tables(hint: Hint) -> tuple[Argument, ...]:
    """Return the arguments of a hint that name tables."""
    if hint.name in JOIN_STRATEGIES:
        return hint.arguments
    form = _find_form(hint)
    return hint.arguments[:1] if form and form.parameters[0] == "table" else ()


def select_used(hints: Iterable[Hint]) -> dict[HintKey, Hint]:
    """Return the hints of a block that Apportion uses: the first valid hint of each key."""
    used: dict[HintKey, Hint] = {}
    for hint in hints:
        if hint.name in APPORTION and not any(check(hint)):
            used.setdefault(get_key(hint), hint)
    return used


def read_values(hint: Hint) -> tuple[int | float | str, ...]:
    """Return the arguments of a valid hint as numbers and texts."""
    return tuple(
        argument.integer
        if argument.kind == "integer"
        else read_decimal(argument)
        if argument.kind == "decimal"
        else argument.string
        for argument in hint.arguments
    )


def read_decimal(argument: Argument) -> float:
    """Return the value of a number, with or without a suffix of its type."""
    return float("".join(token.text for token in argument.tokens).rstrip("bBdDfFlLsSyY"))


def check(hint: Hint) -> Iterator[Complaint]:
    """Yield the problems with the name and the arguments of a hint."""
    if hint.name in APPORTION:
        yield from _check_arguments(hint)
    elif hint.name in KNOWN:
        yield from _check_spark(hint)
    else:
        yield _report_unknown(hint)


def _find_form(hint: Hint) -> Form | None:
    forms = (f for f in APPORTION.get(hint.name, ()) if len(f.parameters) == len(hint.arguments))
    return next(forms, None)


def _report_unknown(hint: Hint) -> Complaint:
    name = hint.text.split("(")[0].rstrip()
    name_end = hint.start + len(name)
    if hint.name in _HINTS_OF_DATABRICKS:
        message = f"{name} is a hint of Databricks: Spark ignores it and only logs a warning"
        return Complaint("APH202", hint.start, name_end, message)
    suggestion = suggest_hint(hint.name)
    message = f"unknown hint {name}: Spark ignores it and only logs a warning"
    if suggestion is None:
        message += ", unless an extension defines it"
        return Complaint("APH202", hint.start, name_end, message)
    return Complaint("APH201", hint.start, name_end, message, f"did you mean {suggestion}?")


def _check_arguments(hint: Hint) -> Iterator[Complaint]:
    form = _find_form(hint)
    if form is None:
        count = len(hint.arguments)
        arguments = count_text(count, "argument") if count else "no arguments"
        forms = (", ".join(form.parameters) for form in APPORTION[hint.name])
        usage = " or ".join(f"{hint.name}({parameters})" for parameters in forms)
        message = f"{hint.name} has {arguments}, expected {usage}"
        examples = " or ".join(form.example for form in APPORTION[hint.name])
        suggestion = f"write {examples}, for example"
        yield complain("APH301", hint, message, suggestion)
        return
    complaints = [
        complaint
        for name, argument in zip(form.parameters, hint.arguments, strict=True)
        if argument.kind != "open"
        for complaint in _check_argument(hint, name, argument)
    ]
    yield from complaints
    if not complaints and all(argument.kind == "integer" for argument in hint.arguments):
        yield from _check_ascending(hint, form)


def _check_argument(hint: Hint, parameter: str, argument: Argument) -> Iterator[Complaint]:
    is_slots = (hint.name, parameter) == ("SLOTS", "min")
    type = _TYPES["min slots" if is_slots else parameter if parameter in _TYPES else ""]
    value = _read_value(parameter, argument)
    if value is None:
        message = f"{hint.name} takes {type.form}, not {argument.text}"
        corrected = _correct(hint, parameter, argument)
        yield complain(type.form_code, argument, message, corrected and f"write {corrected}")
    elif not type.low < value < type.high:
        message = f"{hint.name} takes {type.range}, not {argument.text}"
        yield complain(type.range_code, argument, message)


def _correct(hint: Hint, parameter: str, argument: Argument) -> str | None:
    """Return the hint with the argument that is probably meant, or None."""
    correct: str | None = None
    if parameter == "table":
        is_swapped = argument.kind == "integer" and hint.arguments[1].kind == "name"
        return f"{hint.name}({hint.arguments[1].text}, {argument.text})" if is_swapped else None
    if parameter == "even|balanced":
        correct = find_nearest(argument.string, _RANGES)
    elif parameter in ("time", "volume"):
        is_quotable = (_TIME if parameter == "time" else _VOLUME).fullmatch(argument.text)
        correct = f"'{argument.text}'" if argument.kind == "name" and is_quotable else None
    elif argument.kind == "string" and argument.string.strip().isdecimal():
        correct = argument.string.strip() if parameter != "ratio" else None
    start, end = argument.start - hint.start, argument.end - hint.start
    return f"{hint.text[:start]}{correct}{hint.text[end:]}" if correct else None


def _check_ascending(hint: Hint, form: Form) -> Iterator[Complaint]:
    names = {"min": "minimum", "max": "maximum"}
    bounds = [
        (names.get(name, name), argument.integer)
        for name, argument in zip(form.parameters, hint.arguments, strict=True)
        if name in ("min", "target", "max")
    ]
    for (name, number), (next_name, following) in itertools.pairwise(bounds):
        if number > following:
            ordered = ", ".join(map(str, sorted(number for _, number in bounds)))
            message = f"{hint.name} has a {name} ({number}) above its {next_name} ({following})"
            yield complain("APH304", hint, message, f"write {hint.name}({ordered})")
            return
    if hint.name == "PARALLELISM" and bounds:
        (_, low), (_, high) = bounds
        raised, lowered = power_up(low), power_down(high)
        if raised > lowered:
            message = (
                f"{hint.name} needs a power of two within its bounds, but there is none from {low} "
                f"to {high}"
            )
            suggestion = f"write {hint.name}({lowered}, {high})"
            if raised <= LARGEST_INT:
                suggestion += f" or {hint.name}({low}, {raised})"
            yield complain("APH305", hint, message, suggestion)


def _check_spark(hint: Hint) -> Iterator[Complaint]:
    """Yield the arguments that make Spark fail."""
    takes, counts = "table names", 0
    if hint.name in REPARTITIONS:
        takes = "an optional number of partitions, then column names"
        counts = int(bool(hint.arguments) and _is_partition_count(hint.arguments[0]))
    if hint.name == COALESCE and (counts, len(hint.arguments)) != (1, 1):
        message = f"{hint.name} takes exactly one number of partitions; Spark fails otherwise"
        suggestion = f"write {hint.name}(8), for example"
        yield complain("APH401", hint, message, suggestion)
        return
    for argument in hint.arguments[:counts]:
        if argument.kind == "integer" and not 1 <= argument.integer <= LARGEST_INT:
            takes_count = f"{hint.name} takes a number of partitions from 1 to {LARGEST_INT}"
            yield complain("APH401", argument, f"{takes_count}; Spark fails on {argument.text}")
    for argument in hint.arguments[counts:]:
        if argument.kind not in ("name", "string", "open"):
            message = f"{hint.name} takes {takes}; Spark fails on {argument.text}"
            yield complain("APH401", argument, message)


def _is_partition_count(argument: Argument) -> bool:
    """Tell whether Spark reads an argument as a number of partitions: 8, 8S or 8Y."""
    if argument.kind == "decimal":
        return argument.text.lstrip("-")[:-1].isdecimal() and argument.text[-1] in "sSyY"
    return argument.kind in ("integer", "open")
