"""Reading and checking policy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apportion.policies import checks, formats
from apportion.policies.checks import PolicyError
from apportion.policies.rules import KEYS, Policies, Rule

# Spark does not read larger files.
_MOST_BYTES = 16 << 20


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
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise PolicyError(f"it has {size} bytes. Allowed: at most {_MOST_BYTES}")
        root = formats.read(path.read_text("utf-8"), is_json=path.suffix == ".json")
        entries = checks.check_keys(root, "the file", ("rules",)).get("rules")
        if not isinstance(entries, list):
            raise PolicyError("the file needs a list of rules with the key rules")
    except (OSError, ValueError) as error:
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
