"""YAML and JSON of policy files, read as Jackson does in Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import yaml
from yaml.reader import Reader

_SCALARS = (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", "tTfF"),
    ("int", r"(?:0|[-+]?[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
)


def read(text: str, *, is_json: bool) -> Any:
    """Return the data in a text. Raises `ValueError` if it cannot be read."""
    try:
        data = _json(text) if is_json else yaml.load(text, _Loader)
        # Text with half of a surrogate pair cannot be shown.
        json.dumps(data, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    return data


def to_json(data: Any) -> str:
    """Return data as JSON."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def to_yaml(entries: Iterable[tuple[str, dict[str, Any]]], key: str) -> str:
    """Return a mapping with one list in YAML, from its entries with the comments above them."""
    parts = []
    for comment, entry in entries:
        lines = Reader.NON_PRINTABLE.sub("?", comment).splitlines()
        parts += [f"# {line}".rstrip() + "\n" for line in lines]
        parts.append(
            yaml.dump([entry], Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=2**30)
        )
    return "".join([f"{key}:\n", *parts]) if parts else f"{key}: []\n"


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_mapping, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _mapping(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"Duplicate field '{key}'")
        found[key] = value
    return found


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads keys as text, and scalars without dates: `on` and `yes` are text."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        # Spark reads an alias as text, and ignores most tags. Aliases of aliases fill the memory.
        if isinstance(event, yaml.AliasEvent):
            raise _error(f"cannot use the alias *{event.anchor}", event)
        if event.tag not in (None, "tag:yaml.org,2002:str"):
            raise _error(f"cannot use the tag {event.tag}", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("a key must be text", key)
        return {**_mapping([(k.value, self.construct_object(v, True)) for k, v in node.value])}


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
