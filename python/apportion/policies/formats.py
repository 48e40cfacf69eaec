"""YAML and JSON of policy files, read as Jackson does in Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import yaml
from yaml.reader import Reader

# SnakeYAML's resolver, which Jackson uses. PyYAML's does not take 1e3 for a number, but dates.
_WORDS = "yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE"
_EXPONENT = "[eE][-+]?[0-9]+"
_SCALARS = (
    ("bool", f"(?:{_WORDS})", "yYnNoOtTfF"),
    (
        "int",
        "[-+]?(?:0b[01][01_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|0(?:[0-7_]*[0-7])?|[1-9][0-9_]*)",
        "-+0123456789",
    ),
    (
        "float",
        rf"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?{_EXPONENT}|[0-9][0-9_]*\.[0-9_]*"
        rf"|\.[0-9][0-9_]*(?:{_EXPONENT})?|\.(?:inf|Inf|INF|nan|NaN|NAN))",
        "-+0123456789.",
    ),
    ("null", "(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
)


def read(text: str, *, is_json: bool) -> Any:
    """Return the data in a text. Raises `ValueError` if it cannot be read."""
    try:
        data = json.loads(text, object_pairs_hook=_mapping) if is_json else yaml.load(text, _Loader)
        # Half of a surrogate pair cannot be shown, and Spark reads no infinite number.
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    return data


def to_yaml(rules: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """Return a file in YAML, from its rules with the comments above them."""
    parts = []
    for comment, rule in rules:
        lines = Reader.NON_PRINTABLE.sub("?", comment).splitlines()
        parts += [f"# {line}".rstrip() + "\n" for line in lines]
        parts.append(
            yaml.dump([rule], Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=2**30)
        )
    return "".join(["rules:\n", *parts]) if parts else "rules: []\n"


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"Duplicate field '{key}'")
        found[key] = value
    return found


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads keys as text, and scalars as SnakeYAML does."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        # Spark reads an alias as text, and ignores most tags. Aliases of aliases fill the memory.
        if isinstance(event, yaml.AliasEvent):
            raise _error(f"cannot use the alias *{event.anchor}", event)
        if event.tag not in (None, "tag:yaml.org,2002:str"):
            raise _error(f"cannot use the tag {event.tag}", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("a key must be text", key)
        return _mapping(
            [(key.value, self.construct_object(value, True)) for key, value in node.value]
        )


def _error(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes each text that a reader could take for something else."""

    def represent_text(self, text: str) -> Any:
        # In other quotes, a line break such as U+0085 becomes a space.
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _Dumper.represent_text)


for _tag, _pattern, _first in _SCALARS:
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_tag}", re.compile(f"^{_pattern}$"), list(_first)
        )
