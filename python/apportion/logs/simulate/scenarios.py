"""Scenarios: other settings, slots, lost executors, and sizes of the data."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence

from apportion.errors import ApportionError, SettingError
from apportion.logs.simulate.scheduler import MAX_SLOTS, Loss
from apportion.settings import ENABLED, parse_assignments, split_variant

_LOSS = re.compile(r"(?P<executors>\d{1,9})@(?P<seconds>\d{1,9}(?:\.\d{1,9})?)s?")
PLAIN = "spark"
"""Name of the scenario without Apportion."""
_NAME = "--scenario"


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Changes to a log for a simulation. The defaults change nothing."""

    name: str
    conf: dict[str, str] = dataclasses.field(default_factory=dict)
    slots: int | None = None
    executor_slots: int | None = None
    """Task slots per executor."""
    losses: tuple[Loss, ...] = ()
    """Lost executors, with times from the start of each query."""
    scale: float = 1.0
    """Factor for the bytes of all files and shuffles."""

    def __post_init__(self) -> None:
        for name, value in (("slots", self.slots), ("executor_slots", self.executor_slots)):
            if value is not None and not 1 <= value <= MAX_SLOTS:
                raise ApportionError(f"{name} is {value}: allowed is 1 to {MAX_SLOTS:,}")
        if not (math.isfinite(self.scale) and 0 < self.scale <= 1e9):
            raise ApportionError(f"scale is {self.scale:g}: allowed is above 0, up to 1e9")


AS_LOGGED = Scenario("replay")


def spark(common: Scenario) -> Scenario:
    """Return a scenario with Spark's own rules, on the slots and data of `common`."""
    return dataclasses.replace(common, name=PLAIN, conf={**common.conf, ENABLED: "false"})


def with_assignments(base: Scenario, name: str, assignments: Iterable[str]) -> Scenario:
    """Return a copy of `base` with a new name and changes.

    Assignments are NAME=VALUE, where NAME is a setting, `slots`, `executor_slots`, `lose` or
    `scale`. Raises `ApportionError` for an assignment that is not allowed.
    """
    changed = dataclasses.replace(base, name=name)
    # All settings are checked together, because some of them can contradict each other.
    settings = [f"{key}={value}" for key, value in base.conf.items()]
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        match key:
            case "slots":
                changed = dataclasses.replace(changed, slots=_number(key, value))
            case "executor_slots":
                changed = dataclasses.replace(changed, executor_slots=_number(key, value))
            case "scale":
                changed = dataclasses.replace(changed, scale=_factor(value))
            case "lose":
                changed = dataclasses.replace(changed, losses=losses(value.split("+")))
            case _:
                settings.append(assignment)
    return dataclasses.replace(changed, conf=parse_assignments(settings))


def parse(text: str, common: Scenario) -> Scenario:
    """Return the scenario for a text such as `wide:slots=160,data_volume_per_task=16MB`.

    Raises `ApportionError` if the text has another form, or a value is not allowed.
    """
    name, assignments = split_variant(text, _NAME)
    try:
        return with_assignments(common, name, assignments)
    except SettingError as error:
        raise SettingError(f"{_NAME} {text}: {error}") from None
    except ApportionError as error:
        raise ApportionError(f"{_NAME} {text}: {error}") from None


def losses(texts: Sequence[str]) -> tuple[Loss, ...]:
    """Return the losses for texts such as `2@30`: two executors after 30 seconds.

    Raises `ApportionError` if a text has another form.
    """
    parsed = []
    for text in texts:
        match = _LOSS.fullmatch(text)
        if not match or not int(match["executors"]):
            raise ApportionError(
                f"lose is {text!r}: write EXECUTORS@SECONDS, such as 2@30 to lose two executors "
                "30 seconds after a query starts"
            )
        parsed.append(Loss(int(match["executors"]), float(match["seconds"])))
    return tuple(parsed)


def _number(key: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ApportionError(f"{key} is {text!r}: allowed is a whole number, 1 or more")
    return int(text)


def _factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ApportionError(f"scale is {text!r}: allowed is a number above 0") from None
