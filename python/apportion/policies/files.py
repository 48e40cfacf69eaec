"""Reading and checking policy files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from apportion.policies import formats
from apportion.policies.checks import PolicyError, checked_rule, cut, find_wrong_keys
from apportion.policies.rules import Policies, Rule

# Spark does not read larger files.
_MOST_BYTES = 16 << 20


@dataclasses.dataclass(frozen=True)
class Problem:
    """A wrong part of a rule. Spark leaves out each rule with a problem."""

    file: str
    rule: int
    """Place of the rule in the file, from 1."""
    name: str | None
    """Name of the rule."""
    message: str
    is_certain: bool = True
    """Whether Spark finds the same problem; False if only Java can tell about the rule's `sql`."""

    def __str__(self) -> str:
        named = f" ({self.name})" if self.name is not None else ""
        return f"{self.file}: rule {self.rule}{named}: {self.message}"


def load(path: str | Path) -> Policies:
    """Return the rules of a file.

    Raises `PolicyError` with all problems if the file or a rule is wrong.
    """
    rules, problems = _read(Path(path))
    if certain := [str(problem) for problem in problems if problem.is_certain]:
        raise PolicyError(*certain)
    return Policies(rules)


def check(path: str | Path) -> list[Problem]:
    """Return the problems of a file, by rule.

    Raises `PolicyError` if the file cannot be read at all. Spark then keeps its earlier rules.
    """
    return _read(Path(path))[1]


def _read(path: Path) -> tuple[list[Rule], list[Problem]]:
    try:
        if (size := path.stat().st_size) > _MOST_BYTES:
            raise PolicyError(f"it has {size} bytes. Allowed: at most {_MOST_BYTES}")
        root = formats.read(path.read_text("utf-8"), is_json=path.suffix == ".json")
        if wrong := find_wrong_keys(root, "the file", ("rules",)):
            raise PolicyError(*wrong)
        entries = root.get("rules")
        if not isinstance(entries, list):
            raise PolicyError("the file needs a list of rules with the key rules")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise PolicyError(f"{path}: {reason}") from None
    rules: list[Rule] = []
    problems: list[Problem] = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        place = str(path), number, name if isinstance(name, str) else None
        try:
            rule = Rule(**checked_rule(entry))
        except PolicyError as error:
            problems += [Problem(*place, message) for message in error.problems]
            continue
        rules.append(rule)
        if not rule.is_certain:
            sql = cut("".join(rule.match["sql"]))
            message = f"sql is '{sql}'. Only Spark can check this regular expression"
            problems.append(Problem(*place, message, is_certain=False))
    return rules, problems
