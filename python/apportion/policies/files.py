"""Reading and checking policy files."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from apportion.policies import checks
from apportion.policies.checks import PolicyError
from apportion.policies.rules import KEYS, Policies, Rule


def load(path: str | Path) -> Policies:
    """Return the rules of a file.

    Raises `PolicyError` with all problems if the file or a rule is wrong.
    """
    rules, problems = _read(Path(path))
    if problems:
        raise PolicyError("\n".join(problems))
    return Policies(rules)


def check(path: str | Path) -> list[str]:
    """Return the problems of a file. Spark leaves out each rule with a problem.

    Raises `PolicyError` if the file cannot be read at all. Spark then keeps its earlier rules.
    """
    return _read(Path(path))[1]


def _read(path: Path) -> tuple[list[Rule], list[str]]:
    try:
        text = path.read_text("utf-8")
        root = _json(text) if path.suffix == ".json" else _yaml(text)
        entries = checks.check_keys(root, "the file", ("rules",)).get("rules")
        if not isinstance(entries, list):
            raise PolicyError("the file needs a list of rules with the key rules")
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise PolicyError(f"{path}: {reason}") from None
    rules, problems = [], []
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        title = f"rule {number}" + (f" ({name})" if isinstance(name, str) else "")
        try:
            rules.append(_rule(entry))
        except PolicyError as error:
            problems.append(f"{path}: {title}: {error}")
    return rules, problems


def _rule(entry: object) -> Rule:
    keys = checks.check_keys(entry, "the rule", KEYS)
    # Python's keywords are not names in a file, and empty parts are mistakes.
    checks.checked_match(keys.get("match"))
    checks.checked_settings(_given(keys, "settings"))
    checks.checked_blocks(_given(keys, "blocks"))
    if "name" in keys and not isinstance(keys["name"], str):
        raise PolicyError("name must be text")
    if "hints" in keys and not isinstance(keys["hints"], str):
        raise PolicyError(
            f"hints is {checks.shown(keys['hints'])}. Allowed: text, such as PARALLELISM(8)"
        )
    return Rule(**keys)


def _given(keys: Any, key: str) -> object:
    return (keys[key] or ()) if key in keys else None


def _json(text: str) -> object:
    return json.loads(text, object_pairs_hook=_without_duplicates)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise PolicyError(f"Duplicate field '{key}'")
        found[key] = value
    return found


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads scalars as Jackson does in Spark: no dates, and `on` or `yes` are text."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        pairs = [(self.construct_object(key, True), value) for key, value in node.value]
        _without_duplicates([(str(key), value) for key, value in pairs])
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


for _tag, _pattern, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", "tTfF"),
    ("int", r"(?:0|[-+]?[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^{_pattern}$"), list(_first)
    )


def _yaml(text: str) -> object:
    return yaml.load(text, _Loader)
