"""Rules of a policy file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from apportion import settings as registry
from apportion._util.paths import write_text
from apportion.errors import SettingError
from apportion.policies import expressions, formats
from apportion.policies.checks import KEYS, checked_rule


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule: the conditions of a query, and its settings and hints.

    All conditions must hold. A condition with several values holds if one of them matches. Sizes
    and times are written as in `apportion.Settings`.

    Raises `PolicyError` for a wrong part.
    """

    match: Mapping[str, str | Sequence[str]]
    """Conditions by name: `user`, `application`, `jobTag`, `table`, `writes`, `catalog`, `sql` and
    `fingerprint`."""
    settings: Mapping[str, bool | int | float | str] = dataclasses.field(default_factory=dict)
    """Values by the names of settings, such as `maxParallelism` or `max_parallelism`."""
    hints: str | None = None
    """Hints for the whole query, such as `PARALLELISM(8), RANGES(balanced)`."""
    blocks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Hints by the names of common table expressions, views, subqueries or tables."""
    force: bool = False
    """Whether the rule is above the hints in the SQL."""
    name: str | None = None
    comment: str | None = None
    """Text above the rule in the file."""

    def __post_init__(self) -> None:
        given = {
            "name": self.name,
            "match": self.match,
            "settings": _by_name(self.settings) or None,
            "hints": self.hints,
            "blocks": self.blocks or None,
            "force": None if self.force is False else self.force,
        }
        values = checked_rule({key: value for key, value in given.items() if value is not None})
        for field, value in values.items():
            object.__setattr__(self, field, value)

    @property
    def is_certain(self) -> bool:
        """Whether Spark accepts the rule for certain; False if only Java can tell about `sql`."""
        sql = self.match.get("sql", "")
        return expressions.check(sql if isinstance(sql, str) else sql[0])

    def as_data(self) -> dict[str, Any]:
        """Return the keys and values of the rule in a file, without those that are not set."""
        data = {key: getattr(self, key) for key in KEYS}
        return {key: value for key, value in data.items() if value or key == "match"}


def _by_name(settings: object) -> Any:
    """Return the settings with names as in a file, where they were Python's keywords."""
    if not isinstance(settings, Mapping):
        return settings
    names: dict[str, Any] = {}
    for name, value in settings.items():
        try:
            names[registry.find(str(name)).name] = value
        except SettingError:
            names[name] = value
    return names


@dataclasses.dataclass(frozen=True)
class Policies:
    """The rules of a policy file, in their order: the first rule that sets a value counts."""

    rules: Sequence[Rule] = ()

    def to_yaml(self) -> str:
        """Return the text of the file in YAML, with the comments of the rules."""
        return formats.to_yaml((rule.comment or "", rule.as_data()) for rule in self.rules)

    def to_json(self) -> str:
        """Return the text of the file in JSON, which has no comments."""
        data = {"rules": [rule.as_data() for rule in self.rules]}
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file: JSON if its name ends in .json, otherwise YAML.

        The new file replaces the old one in one step, so that Spark never reads half of it.
        """
        target = Path(path)
        write_text(target, self.to_json() if target.suffix == ".json" else self.to_yaml())
