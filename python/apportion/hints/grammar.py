"""The hints that are known: names, arguments, what each argument must be, and what they mean.

PARALLELISM has a two-number form rather than two hints MIN_PARALLELISM and MAX_PARALLELISM: the
bounds are read together, and no block can have one of them from here and the other from there.
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
_RANGES = ("even", "balanced")

Check = Callable[[Hint, Argument], Complaint | None]


class Parameter(NamedTuple):
    """One parameter of a hint: how it is called, and what finds fault with an argument for it."""

    name: str
    check: Check


class Form(NamedTuple):
    """One way to write a hint, and what it does."""

    parameters: tuple[Parameter, ...]
    example: str
    meaning: str


def _count(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind != "integer":
        number = argument.string.strip() if argument.kind == "string" else ""
        return _complain(
            "APH302",
            argument,
            f"{hint.name} takes a whole number, not {argument.text}",
            _instead(hint, argument, number) if number.isdecimal() else None,
        )
    if not 1 <= argument.integer <= LARGEST_COUNT:
        message = f"{hint.name} takes a number from 1 to {LARGEST_COUNT}, not {argument.text}"
        return _complain("APH303", argument, message)
    return None


def _volume(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind == "integer":
        bytes, unit = argument.integer, ""
    elif argument.kind == "string" and (match := _VOLUME.fullmatch(argument.string)):
        bytes, unit = int(match[1]), match[2] or ""
    else:
        unquoted = argument.kind == "name" and _VOLUME.fullmatch(argument.text)
        return _complain(
            "APH306",
            argument,
            f"{hint.name} takes a size with its unit in quotes, as '256MB' (units b, kb, mb, gb, "
            f"tb, pb), or a number of bytes, not {argument.text}",
            _instead(hint, argument, f"'{argument.text}'") if unquoted else None,
        )
    if not 1 <= bytes << 10 * " kmgtp".index(unit.lower() or " ") <= _LARGEST_VOLUME:
        message = f"{hint.name} takes a size from 1 byte to 8191 pb, not {argument.text}"
        return _complain("APH306", argument, message)
    return None


def _ratio(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind not in ("integer", "decimal"):
        message = f"{hint.name} takes a number above 0 and below 1, not {argument.text}"
        return _complain("APH302", argument, message)
    digits = "".join(token.text for token in argument.tokens)
    value = float(digits.rstrip("bBdDfFlLsSyY"))
    if 0 < value < 1:
        return None
    percent = f"{value / 100:g}" if 1 < value < 100 else ""
    return _complain(
        "APH307",
        argument,
        f"{hint.name} takes a number above 0 and below 1, not {argument.text}",
        _instead(hint, argument, percent) if percent else None,
    )


def _word(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind in ("name", "string") and argument.string.lower() in _RANGES:
        return None
    meant = near(argument.string, _RANGES)
    return _complain(
        "APH308",
        argument,
        f"{hint.name} takes one of {', '.join(_RANGES)}, not {argument.text}",
        _instead(hint, argument, meant) if meant else None,
    )


def _table(hint: Hint, argument: Argument) -> Complaint | None:
    if argument.kind in ("name", "string"):
        return None
    swapped = argument.kind == "integer" and hint.arguments[1].kind == "name"
    turned = f"{hint.name}({hint.arguments[1].text}, {argument.text})"
    return _complain(
        "APH309",
        argument,
        f"{hint.name} takes a table of its block first, not {argument.text}",
        f"write {turned}" if swapped else None,
    )


# Every hint of Apportion, one entry each.
APPORTION: dict[str, tuple[Form, ...]] = {
    "PARALLELISM": (
        Form((Parameter("n", _count),), "PARALLELISM(8)", "the block's stages use 8 tasks"),
        Form(
            (Parameter("min", _count), Parameter("max", _count)),
            "PARALLELISM(4, 64)",
            "the number of tasks is decided from 4 to 64",
        ),
    ),
    "DATA_VOLUME": (
        Form(
            (Parameter("volume", _volume),),
            "DATA_VOLUME('256MB')",
            "the bytes that one task of the block should read",
        ),
    ),
    "BROADCAST_RATIO": (
        Form(
            (Parameter("ratio", _ratio),),
            "BROADCAST_RATIO(0.3)",
            "the share of that volume which broadcast tables may take",
        ),
    ),
    "RANGES": (
        Form(
            (Parameter("even|balanced", _word),),
            "RANGES(balanced)",
            "ranges of equally many subpartitions, or of about as many bytes",
        ),
    ),
    "SOURCE_PARALLELISM": (
        Form(
            (Parameter("n", _count),),
            "SOURCE_PARALLELISM(16)",
            "every scan of the block uses 16 tasks",
        ),
        Form(
            (Parameter("table", _table), Parameter("n", _count)),
            "SOURCE_PARALLELISM(t, 16)",
            "the scan of t, a table or alias of the block, uses 16 tasks",
        ),
    ),
}

# Spark's join strategies by hint, and the order in which Spark prefers them when the two sides
# of a join ask for different ones.
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
REPARTITIONS = ("COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")
KNOWN = (*APPORTION, *JOIN_STRATEGIES, *REPARTITIONS)

# Likely names that are spelt too differently to be found near.
_ALSO_CALLED = {
    "MIN_PARALLELISM": "PARALLELISM(min, max)",
    "MAX_PARALLELISM": "PARALLELISM(min, max)",
}


def usage(name: str) -> str:
    """Return how a hint of Apportion's is written, such as `PARALLELISM(n) or ...(min, max)`."""
    forms = (", ".join(p.name for p in form.parameters) for form in APPORTION[name])
    return " or ".join(f"{name}({parameters})" for parameters in forms)


def nearest(name: str) -> str | None:
    """Return the known hint that an unknown name was probably meant to be."""
    if name in _ALSO_CALLED:
        return _ALSO_CALLED[name]
    return near(name, KNOWN)


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to `name`, in whatever case, with or without underscores."""
    by_letters = {candidate.replace("_", "").lower(): candidate for candidate in known}
    letters = name.replace("_", "").lower()
    found = difflib.get_close_matches(letters, by_letters, n=1, cutoff=0.75)
    return by_letters[found[0]] if found else None


def key(hint: Hint) -> tuple[str, tuple[str, ...]]:
    """Return what a block can have only one of: the hint, for one table where it names one."""
    if hint.name == "SOURCE_PARALLELISM" and len(hint.arguments) > 1:
        return hint.name, hint.arguments[0].parts
    return hint.name, ()


def used(hints: Iterable[Hint]) -> dict[tuple[str, tuple[str, ...]], Hint]:
    """Return the hints of a block that Apportion uses: right ones, the first of each."""
    found: dict[tuple[str, tuple[str, ...]], Hint] = {}
    for hint in hints:
        if hint.name in APPORTION and not any(check(hint)):
            found.setdefault(key(hint), hint)
    return found


def check(hint: Hint) -> Iterator[Complaint]:
    """Yield what is wrong with a hint by itself: its name and its arguments."""
    if hint.name in APPORTION:
        yield from _check_arguments(hint)
    elif hint.name in JOIN_STRATEGIES:
        yield from _check_join_strategy(hint)
    elif hint.name in REPARTITIONS:
        yield from _check_repartition(hint)
    else:
        yield _unknown(hint)


def _unknown(hint: Hint) -> Complaint:
    name = hint.text.split("(")[0].rstrip()
    name_end = hint.start + len(name)
    meant = nearest(hint.name)
    dropped = "Spark drops it with no more than a line in the log"
    if meant is None:
        message = f"unknown hint {name}: {dropped}, unless an extension knows it"
        return Complaint("APH202", hint.start, name_end, message)
    message = f"unknown hint {name}: {dropped}"
    return Complaint("APH201", hint.start, name_end, message, f"did you mean {meant}?")


def _check_arguments(hint: Hint) -> Iterator[Complaint]:
    forms = {len(form.parameters): form for form in APPORTION[hint.name]}
    form = forms.get(len(hint.arguments))
    if form is None:
        given = len(hint.arguments)
        counted = count_text(given, "argument") if given else "no arguments"
        message = f"{hint.name} has {counted}: it is written {usage(hint.name)}"
        example = " or ".join(form.example for form in APPORTION[hint.name])
        yield Complaint("APH301", hint.start, hint.end, message, f"for example {example}")
        return
    complaints = [
        parameter.check(hint, argument)
        for parameter, argument in zip(form.parameters, hint.arguments, strict=True)
        if argument.kind != "open"
    ]
    found = [complaint for complaint in complaints if complaint is not None]
    yield from found
    if not found and hint.name == "PARALLELISM" and len(hint.arguments) == 2:
        yield from _check_bounds(hint)


def _check_bounds(hint: Hint) -> Iterator[Complaint]:
    if any(argument.kind != "integer" for argument in hint.arguments):
        return
    low, high = (argument.integer for argument in hint.arguments)
    if low > high:
        message = f"{hint.name} has a minimum of {low} above its maximum of {high}"
        yield Complaint(
            "APH304", hint.start, hint.end, message, f"write {hint.name}({high}, {low})"
        )
        return
    raised, lowered = power_up(low), power_down(high)
    if raised > lowered:
        message = f"{hint.name} has no power of two between {low} and {high}"
        write = f"write {hint.name}({lowered}, {high})"
        if raised <= LARGEST_COUNT:
            write += f" or {hint.name}({low}, {raised})"
        yield Complaint("APH305", hint.start, hint.end, message, write)


def _check_join_strategy(hint: Hint) -> Iterator[Complaint]:
    for argument in hint.arguments:
        if argument.kind not in ("name", "string", "open"):
            message = f"{hint.name} takes names of tables: Spark fails at {argument.text}"
            yield _complain("APH401", argument, message)


def _check_repartition(hint: Hint) -> Iterator[Complaint]:
    first, *rest = hint.arguments or [None]
    if hint.name == "COALESCE" and (first is None or rest or not _is_partitions(first)):
        message = "COALESCE takes one number of partitions: Spark fails without it, or with more"
        yield Complaint("APH401", hint.start, hint.end, message, "for example COALESCE(8)")
        return
    for argument in hint.arguments:
        if argument is first and _is_partitions(argument):
            if argument.kind == "integer" and not 1 <= argument.integer <= LARGEST_COUNT:
                message = f"{hint.name} takes 1 partition or more: Spark fails at {argument.text}"
                yield _complain("APH401", argument, message)
        elif argument.kind not in ("name", "string", "open"):
            message = (
                f"{hint.name} takes a number of partitions first, then names of columns: "
                f"Spark fails at {argument.text}"
            )
            yield _complain("APH401", argument, message)


def _is_partitions(argument: Argument) -> bool:
    """Tell whether Spark reads this as a number of partitions: 8, 8S or 8Y."""
    if argument.kind == "decimal":
        return argument.text.lstrip("-")[:-1].isdecimal() and argument.text[-1] in "sSyY"
    return argument.kind in ("integer", "open")


def _instead(hint: Hint, argument: Argument, text: str) -> str:
    start, end = argument.start - hint.start, argument.end - hint.start
    return f"write {hint.text[:start]}{text}{hint.text[end:]}"


def _complain(
    code: str, argument: Argument, message: str, suggestion: str | None = None
) -> Complaint:
    return Complaint(code, argument.start, argument.end, message, suggestion)
