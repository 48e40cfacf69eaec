"""Typed settings of Apportion, checked before they are given to Spark."""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from apportion._util.checks import LARGEST_INT, LARGEST_LONG, power_down, power_up
from apportion._util.units import read_bytes, read_seconds
from apportion.errors import ApportionError, SettingError, did_you_mean
from apportion.keywords import SettingsFields

PREFIX = "spark.apportion."
ENABLED = f"{PREFIX}enabled"

# `Category.Internal` in Scala.
_INTERNAL = "Internal"
_COMMA = re.compile(r",(?=[\w.]+=)")


@dataclasses.dataclass(frozen=True)
class Setting:
    """An entry of `settings.json`, the export of the extension's settings registry."""

    name: str
    """Name without the prefix, such as `sources.maxParallelism`."""
    key: str
    """Name in Spark's conf, such as `spark.apportion.sources.maxParallelism`."""
    category: str
    """Title of the section in the documentation; `Internal` for settings that no page lists."""
    type: Literal["boolean", "int", "size", "duration", "double", "choice", "list", "text"]
    default: bool | int | float | str | None
    """Default value; sizes in bytes, times in seconds, None if the setting has no default."""
    default_text: str
    """Default for people, with a unit, such as `1 MiB`."""
    allowed: Mapping[str, Any]
    """Bounds (`min`, `or`, `above`, `below`), `choices` or a `pattern`."""
    allowed_text: str
    """Description of the allowed values."""
    static: bool
    """Whether the setting cannot change while Spark runs."""
    not_in_policies: str | None
    """Reason why a rule of a policy file cannot set it; None if a rule can."""
    doc: str
    """Description of the setting."""
    since: str
    """First version of Apportion with this setting."""

    @property
    def keyword(self) -> str:
        """Name as a Python keyword: in snake case."""
        return _snake_case(self.name)

    def check(self, value: object) -> bool | int | float | str:
        """Return the normalized value: bytes for a size, seconds for a time, choices in lower case.

        Raises `SettingError` if the value is not allowed.
        """
        # numpy's numbers, and text from config files and variables.
        if hasattr(value, "item"):
            # Arrays and columns of Spark have no single value.
            with suppress(TypeError, ValueError):
                value = value.item()
        if isinstance(value, str) and self.type in ("boolean", "int", "double"):
            value = _from_text(self.type, value.strip())
        # bool is a subclass of int.
        if isinstance(value, bool) == (self.type == "boolean"):
            match self.type, value:
                case "boolean", bool():
                    return value
                case "int", int() if self._within(value, LARGEST_INT):
                    return value
                case "size", int() if self._within(value, LARGEST_LONG):
                    return value
                case "size", str() if self._within(size := read_bytes(value), LARGEST_LONG):
                    return size
                case "duration", int() if self._within(value, LARGEST_INT):
                    return value
                case "duration", str() if self._within(time := read_seconds(value), LARGEST_INT):
                    return time
                case "double", (int() | float()) if self._between(value):
                    return float(value)
                case "choice", str() if value.lower() in self.allowed["choices"]:
                    return value.lower()
                case "list", str() if set(names := _names(value)) <= {*self.allowed["choices"]}:
                    return ",".join(names)
                case "text", str() if value.strip() and self._matches(value):
                    return value
        raise SettingError(f"{self.keyword} is {value!r}: {self._allowed()} ({self.key})")

    def _allowed(self) -> str:
        if self.type == "size":
            return (
                f"allowed is a size of {self.allowed_text}, a number of bytes or text like '64MB'"
            )
        if self.type == "duration":
            return f"allowed is {self.allowed_text}, a number or text like '30s' or '5min'"
        if self.type == "choice":
            return f"allowed is one of {self.allowed_text}"
        return f"allowed is {self.allowed_text}"

    def _matches(self, value: str) -> bool:
        pattern = self.allowed.get("pattern")
        return pattern is None or re.fullmatch(pattern, value) is not None

    def _within(self, value: int, largest: int) -> bool:
        return self.allowed["min"] <= value <= largest or value == self.allowed.get("or")

    def _between(self, value: float) -> bool:
        return bool(self.allowed["above"] < value < self.allowed["below"])


@dataclasses.dataclass(frozen=True)
class Settings(SettingsFields):
    """Values for Apportion's settings; None keeps the value of the session.

    `apportion settings` and the page Settings of the documentation describe each field.

    Sizes are numbers of bytes, or text such as "64MB", "1g" or "64MiB" with binary units. Fields
    contain them as bytes. Times are numbers of seconds, or text such as "30s" or "5min". Fields
    contain them as seconds.

    Raises `SettingError` for a value that is not allowed. Also raises it for a minimum and a
    maximum with no power of two between them, unless exact balanced ranges need none.
    """

    def __post_init__(self) -> None:
        for keyword, setting in registry().items():
            value = getattr(self, keyword)
            if value is not None:
                object.__setattr__(self, keyword, setting.check(value))
        self._check_bounds()

    @classmethod
    def from_kwargs(cls, **settings: Any) -> Settings:
        """Return `Settings(**settings)`, but raise `SettingError` for an unknown name."""
        for keyword in settings:
            if keyword not in registry():
                raise _unknown(keyword)
        return cls(**settings)

    def merged(self, **settings: Any) -> Settings:
        """Return a copy with these settings replaced."""
        return Settings.from_kwargs(**{**self.given(), **settings})

    def given(self) -> dict[str, Any]:
        """Return the settings that are not None, by keyword."""
        return {k: v for k, v in dataclasses.asdict(self).items() if v is not None}

    def to_conf(self) -> dict[str, str]:
        """Return the settings that are not None as Spark's conf: key to text."""
        return {registry()[keyword].key: _text(value) for keyword, value in self.given().items()}

    def _check_bounds(self) -> None:
        # With only one bound given, the other comes from the session; the extension checks both.
        if self.min_parallelism is None or self.max_parallelism is None:
            return
        if self.ranges == "balanced" and self.rounding in ("exact", "waves"):
            if self.min_parallelism > self.max_parallelism:
                raise SettingError(
                    f"min_parallelism is {self.min_parallelism} and max_parallelism is "
                    f"{self.max_parallelism}: the first must not be above the second"
                )
            return
        raised, lowered = power_up(self.min_parallelism), power_down(self.max_parallelism)
        if lowered < raised:
            raise SettingError(
                f"min_parallelism is {self.min_parallelism} and max_parallelism is "
                f"{self.max_parallelism}: there is no power of two between them. Lower "
                f"the first to {lowered} or less, or raise the second to {raised} or more"
            )


def registry() -> dict[str, Setting]:
    """Return the documented settings by keyword, in the order of their categories."""
    return _settings()[0]


@cache
def _settings() -> tuple[dict[str, Setting], list[Setting]]:
    """Return the documented settings by keyword, and all settings."""
    text = importlib.resources.files("apportion").joinpath("settings.json").read_text("utf-8")
    settings = [
        Setting(**{_snake_case(field): value for field, value in entry.items()})
        for entry in json.loads(text)
    ]
    documented = (setting for setting in settings if setting.category != _INTERNAL)
    return {setting.keyword: setting for setting in documented}, settings


def find(name: str) -> Setting:
    """Return the setting with a keyword (`min_parallelism`), a name (`minParallelism`) or a key.

    Settings that no page lists are found too.

    Raises `SettingError`, with the nearest known name, for an unknown name.
    """
    for setting in _settings()[1]:
        if name in (setting.keyword, setting.name, setting.key):
            return setting
    raise _unknown(name)


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Return Spark's conf for texts NAME=VALUE. The last text for a name counts.

    NAME is a setting of Apportion, in any form that `find` accepts, or the full key of another
    Spark conf, which starts with `spark.`.

    Raises `SettingError` for an unknown setting of Apportion and for a value that is not allowed.
    """
    settings: dict[str, Any] = {}
    others: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SettingError(f"{assignment!r} has no value: write NAME=VALUE")
        if name.startswith("spark.") and not name.startswith(PREFIX):
            others[name] = value
        else:
            setting = find(name)
            checked = setting.check(value)
            if setting.category == _INTERNAL:
                others[setting.key] = _text(checked)
            else:
                settings[setting.keyword] = checked
    return others | Settings.from_kwargs(**settings).to_conf()


def split_variant(text: str, option: str) -> tuple[str, list[str]]:
    """Return the name and the assignments in the value of `option`, NAME:KEY=VALUE,KEY=VALUE.

    Raises `ApportionError` if `text` does not have that form.
    """
    name, _, assignments = text.partition(":")
    if not re.fullmatch(r"[\w.-]+", name) or not assignments:
        raise ApportionError(f"{option} {text}: write NAME:KEY=VALUE,KEY=VALUE")
    return name, _COMMA.split(assignments)


def check_static(conf: Mapping[str, str], running: Mapping[str, str]) -> None:
    """Check that `conf` does not change static settings of a running session.

    Raises `SettingError` for the first static setting with another value than in `running`.
    """
    for setting in registry().values():
        if setting.static and conf.get(setting.key) not in (None, running.get(setting.key)):
            raise SettingError(
                f"{setting.keyword} cannot be changed while Spark runs ({setting.key}). Set it "
                f"before Spark starts: in the session's builder or with spark-submit --conf"
            )


def _unknown(name: str) -> SettingError:
    short = _snake_case(name.removeprefix(PREFIX)).strip("_")
    similar = [known for known in registry() if len(short) > 3 and short in known][:5]
    others = f" Similar: {', '.join(similar)}." if similar else ""
    return SettingError(
        f"unknown setting {name!r}.{did_you_mean(short, registry())}{others} `apportion settings` "
        "lists all settings"
    )


def _snake_case(name: str) -> str:
    return re.sub(r"[A-Z]", lambda capital: "_" + capital[0].lower(), name.replace(".", "_"))


def _names(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_text(kind: str, text: str) -> object:
    """Return the value of `text` for a type of setting, or `text` itself if it has none."""
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return {"int": int, "double": float}.get(kind, str)(text)
    except ValueError:
        return text
