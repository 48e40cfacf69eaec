"""The known hints: their names, arguments, checks and meanings. No other module repeats them.

`HintGrammar.scala` reads the same hints in Spark. `jvm/src/test/resources/wrong_hints.golden.txt`
keeps both equal: it holds the messages of the Scala side, and `python/tests/hints/test_lint.py`
compares them with the messages here. Change both sides together.

PARALLELISM has a form with two numbers instead of two hints MIN_PARALLELISM and MAX_PARALLELISM, so
that a block cannot take the two bounds from different places.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from apportion._util.checks import power_down, power_up
from apportion._util.units import count_text
from apportion.hints.findings import Complaint
from apportion.sql.hint_comments import Argument, Hint

LARGEST_COUNT = 2**31 - 1
_LARGEST_VOLUME = 2**63 - 1
_VOLUME = re.compile(r"\s*(\d{1,19})\s*(?:b|([kmgtp])(?:i?b)?)\s*", re.ASCII | re.IGNORECASE)
_TIME = re.compile(
    r"\s*(\d{1,9})\s*(?:(s)(?:ec|econds?)?|(m)(?:in|inutes?)?|(h)(?:ours?)?|(d)(?:ays?)?)\s*",
    re.ASCII | re.IGNORECASE,
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_RANGES = ("even", "balanced")

Check = Callable[[Hint, Argument], Complaint | None]
HintKey = tuple[str, tuple[str, ...]]


class Parameter(NamedTuple):
    """One parameter of a hint: its name, and the check that reports a wrong argument."""

    name: str
    check: Check


class Form(NamedTuple):
    """One form of a hint: its parameters, an example, and the meaning of the example."""

    parameters: tuple[Parameter, ...]
    example: str
    meaning: str


def _check_count(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind != "integer":
        number = argument.string.strip() if argument.kind == "string" else ""
        return _complain(
            "APH302",
            argument,
            f"{hint.name} takes a whole number, not {argument.text}",
            _suggest_argument(hint, argument, number) if number.isdecimal() else None,
        )
    if not 1 <= argument.integer <= LARGEST_COUNT:
        message = f"{hint.name} takes a number from 1 to {LARGEST_COUNT}, not {argument.text}"
        return _complain("APH303", argument, message)
    return None


def _check_minimum(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind == "integer" and argument.integer == 0:
        return None
    complaint = _check_count(hint, argument)
    if complaint is None or complaint.code != "APH303":
        return complaint
    message = f"{hint.name} takes a number from 0 to {LARGEST_COUNT}, not {argument.text}"
    return complaint._replace(message=message)


def read_time(text: str) -> int | None:
    """Return the seconds of a time such as "10 min", or None if the text is not a time."""
    match = _TIME.fullmatch(text)
    return int(match[1]) * _SECONDS[match[match.lastindex or 0].lower()] if match else None


def is_allowed_time(seconds: int) -> bool:
    """Tell whether a query can have this time to finish."""
    return 1 <= seconds <= 365 * _SECONDS["d"]


def _check_time(hint: Hint, argument: Argument) -> Complaint | None:
    seconds = read_time(argument.string) if argument.kind == "string" else None
    if seconds is None:
        unquoted = argument.kind == "name" and read_time(argument.text) is not None
        return _complain(
            "APH312",
            argument,
            f"{hint.name} takes a quoted time with a unit (s, sec, m, min, h, hours, d, days), "
            f"such as '10 min', not {argument.text}",
            _suggest_argument(hint, argument, f"'{argument.text}'") if unquoted else None,
        )
    if not is_allowed_time(seconds):
        message = f"{hint.name} takes a time from 1 second to 365 days, not {argument.text}"
        return _complain("APH312", argument, message)
    return None


def _check_volume(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind == "integer":
        bytes, unit = argument.integer, ""
    elif argument.kind == "string" and (match := _VOLUME.fullmatch(argument.string)):
        bytes, unit = int(match[1]), match[2] or ""
    else:
        unquoted = argument.kind == "name" and _VOLUME.fullmatch(argument.text)
        return _complain(
            "APH306",
            argument,
            f"{hint.name} takes a quoted size with a unit (b, kb, mb, gb, tb, pb), such as "
            f"'256MB', or a number of bytes, not {argument.text}",
            _suggest_argument(hint, argument, f"'{argument.text}'") if unquoted else None,
        )
    if not 1 <= bytes << 10 * " kmgtp".index(unit.lower() or " ") <= _LARGEST_VOLUME:
        message = f"{hint.name} takes a size from 1 byte to 8191 pb, not {argument.text}"
        return _complain("APH306", argument, message)
    return None


def _check_ratio(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind not in ("integer", "decimal"):
        message = f"{hint.name} takes a number above 0 and below 1, not {argument.text}"
        return _complain("APH302", argument, message)
    if 0 < read_decimal(argument) < 1:
        return None
    message = f"{hint.name} takes a number above 0 and below 1, not {argument.text}"
    return _complain("APH307", argument, message)


def _check_ranges(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind in ("name", "string") and argument.string.lower() in _RANGES:
        return None
    nearest = find_nearest(argument.string, _RANGES)
    return _complain(
        "APH308",
        argument,
        f"{hint.name} takes {' or '.join(_RANGES)}, not {argument.text}",
        _suggest_argument(hint, argument, nearest) if nearest else None,
    )


def _check_table(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind in ("name", "string"):
        return None
    swapped = argument.kind == "integer" and hint.arguments[1].kind == "name"
    corrected = f"{hint.name}({hint.arguments[1].text}, {argument.text})"
    return _complain(
        "APH309",
        argument,
        f"{hint.name} takes a table of its block as first argument, not {argument.text}",
        f"write {corrected}" if swapped else None,
    )


# All hints of Apportion.
APPORTION: dict[str, tuple[Form, ...]] = {
    "PARALLELISM": (
        Form((Parameter("n", _check_count),), "PARALLELISM(8)", "the block's stages use 8 tasks"),
        Form(
            (Parameter("min", _check_count), Parameter("max", _check_count)),
            "PARALLELISM(4, 64)",
            "the block's stages use from 4 to 64 tasks",
        ),
    ),
    "DATA_VOLUME": (
        Form(
            (Parameter("volume", _check_volume),),
            "DATA_VOLUME('256MB')",
            "the target size per task in the block is 256 MiB",
        ),
    ),
    "BROADCAST_RATIO": (
        Form(
            (Parameter("ratio", _check_ratio),),
            "BROADCAST_RATIO(0.3)",
            "broadcast tables may use up to 30 % of the target size per task",
        ),
    ),
    "RANGES": (
        Form(
            (Parameter("even|balanced", _check_ranges),),
            "RANGES(balanced)",
            "each task reads about the same number of bytes (`even`: of shuffle partitions)",
        ),
    ),
    "SLOTS": (
        Form(
            (
                Parameter("min", _check_minimum),
                Parameter("target", _check_count),
                Parameter("max", _check_count),
            ),
            "SLOTS(1, 16, 64)",
            "the block's stages declare these numbers of task slots",
        ),
    ),
    "FINISH_WITHIN": (
        Form(
            (Parameter("time", _check_time),),
            "FINISH_WITHIN('10 min')",
            "the query gets the slots with which it ends within 10 minutes",
        ),
    ),
    "SOURCE_PARALLELISM": (
        Form(
            (Parameter("n", _check_count),),
            "SOURCE_PARALLELISM(16)",
            "every scan of the block uses 16 tasks",
        ),
        Form(
            (Parameter("table", _check_table), Parameter("n", _check_count)),
            "SOURCE_PARALLELISM(t, 16)",
            "the scan of t, a table or alias of the block, uses 16 tasks",
        ),
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
    if name in _ALSO_CALLED:
        return _ALSO_CALLED[name]
    return find_nearest(name, KNOWN)


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
    if form is None:
        return ()
    pairs = zip(form.parameters, hint.arguments, strict=True)
    return tuple(argument for parameter, argument in pairs if parameter.check is _check_table)


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
    elif hint.name in JOIN_STRATEGIES:
        yield from _check_join_strategy(hint)
    elif hint.name in REPARTITIONS:
        yield from _check_repartition(hint)
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
        usage = " or ".join(_format_usage(hint.name, form) for form in APPORTION[hint.name])
        message = f"{hint.name} has {arguments}, expected {usage}"
        examples = " or ".join(form.example for form in APPORTION[hint.name])
        suggestion = f"write {examples}, for example"
        yield Complaint("APH301", hint.start, hint.end, message, suggestion)
        return
    results = [
        parameter.check(hint, argument)
        for parameter, argument in zip(form.parameters, hint.arguments, strict=True)
        if argument.kind != "open"
    ]
    complaints = [complaint for complaint in results if complaint is not None]
    yield from complaints
    if not complaints and hint.name == "PARALLELISM" and len(hint.arguments) == 2:
        yield from _check_bounds(hint)
    if not complaints and hint.name == "SLOTS":
        yield from _check_ascending(hint)


def _format_usage(name: str, form: Form) -> str:
    return f"{name}({', '.join(parameter.name for parameter in form.parameters)})"


def _check_bounds(hint: Hint) -> Iterator[Complaint]:
    if any(argument.kind != "integer" for argument in hint.arguments):
        return
    low, high = (argument.integer for argument in hint.arguments)
    if low > high:
        message = f"{hint.name} has a minimum ({low}) above its maximum ({high})"
        yield Complaint(
            "APH304", hint.start, hint.end, message, f"write {hint.name}({high}, {low})"
        )
        return
    raised, lowered = power_up(low), power_down(high)
    if raised > lowered:
        message = (
            f"{hint.name} needs a power of two within its bounds, but there is none from {low} "
            f"to {high}"
        )
        suggestion = f"write {hint.name}({lowered}, {high})"
        if raised <= LARGEST_COUNT:
            suggestion += f" or {hint.name}({low}, {raised})"
        yield Complaint("APH305", hint.start, hint.end, message, suggestion)


def _check_ascending(hint: Hint) -> Iterator[Complaint]:
    if any(argument.kind != "integer" for argument in hint.arguments):
        return
    numbers = [argument.integer for argument in hint.arguments]
    names = ("minimum", "target", "maximum")
    for place in range(2):
        if numbers[place] > numbers[place + 1]:
            message = (
                f"{hint.name} has a {names[place]} ({numbers[place]}) above its "
                f"{names[place + 1]} ({numbers[place + 1]})"
            )
            ordered = ", ".join(map(str, sorted(numbers)))
            suggestion = f"write {hint.name}({ordered})"
            yield Complaint("APH304", hint.start, hint.end, message, suggestion)
            return


def _check_join_strategy(hint: Hint) -> Iterator[Complaint]:
    for argument in hint.arguments:
        if argument.kind not in ("name", "string", "open"):
            message = f"{hint.name} takes table names; Spark fails on {argument.text}"
            yield _complain("APH401", argument, message)


def _check_repartition(hint: Hint) -> Iterator[Complaint]:
    first, *rest = hint.arguments or [None]
    if hint.name == COALESCE and (first is None or rest or not _is_partition_count(first)):
        message = f"{hint.name} takes exactly one number of partitions; Spark fails otherwise"
        suggestion = f"write {hint.name}(8), for example"
        yield Complaint("APH401", hint.start, hint.end, message, suggestion)
        return
    for argument in hint.arguments:
        if argument is first and _is_partition_count(argument):
            if argument.kind == "integer" and not 1 <= argument.integer <= LARGEST_COUNT:
                message = (
                    f"{hint.name} takes a number of partitions from 1 to {LARGEST_COUNT}; Spark "
                    f"fails on {argument.text}"
                )
                yield _complain("APH401", argument, message)
        elif argument.kind not in ("name", "string", "open"):
            message = (
                f"{hint.name} takes an optional number of partitions, then column names; Spark "
                f"fails on {argument.text}"
            )
            yield _complain("APH401", argument, message)


def _is_partition_count(argument: Argument) -> bool:
    """Tell whether Spark reads an argument as a number of partitions: 8, 8S or 8Y."""
    if argument.kind == "decimal":
        return argument.text.lstrip("-")[:-1].isdecimal() and argument.text[-1] in "sSyY"
    return argument.kind in ("integer", "open")


def _suggest_argument(hint: Hint, argument: Argument, text: str) -> str:
    start, end = argument.start - hint.start, argument.end - hint.start
    return f"write {hint.text[:start]}{text}{hint.text[end:]}"


def _complain(
    code: str, argument: Argument, message: str, suggestion: str | None = None
) -> Complaint:
    return Complaint(code, argument.start, argument.end, message, suggestion)
