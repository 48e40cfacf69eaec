"""Checks of the parts of a rule. `PolicyFile.scala` makes the same checks in Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from apportion import settings as registry
from apportion.errors import ApportionError, SettingError, did_you_mean
from apportion.hints import grammar
from apportion.hints.findings import sentence
from apportion.policies import expressions
from apportion.redaction import without_secrets
from apportion.settings import PREFIX, Setting, Settings
from apportion.sql.blocks import read
from apportion.sql.hint_comments import Hint

KEYS = ("name", "match", "settings", "hints", "blocks", "force")
CONDITIONS = (
    "fingerprint", "user", "application", "jobTag", "table", "sql", "writes", "catalog"
)  # fmt: skip
# Words that Spark reads as numbers, such as 12 and 1e5, are not names.
_PART = r"(?:(?!\d+(?:e\d+)?(?:[lsydf]|bd)?\b)\w+|`(?:[^`]|``)+`)"
IDENTIFIER = re.compile(rf"{_PART}(?:\.{_PART})*", re.ASCII | re.IGNORECASE)
_NUMBERS = ("int", "size", "double")
_DIVIDED = re.compile(r"[0-9][\s_]")
_LARGEST_SHOWN = 200
_T = TypeVar("_T")


class PolicyError(ApportionError, ValueError):
    """A policy file or a rule is wrong."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = [without_secrets(problem) for problem in problems]
        """One sentence for each wrong part."""


def find_wrong_keys(node: object, where: str, known: Sequence[str]) -> list[str]:
    """Return a problem for each unknown key, or for data without keys."""
    allowed = ", ".join(known)
    if not isinstance(node, Mapping):
        return [f"{where} must have keys and values. Allowed keys: {allowed}"]
    unknown = [str(key) for key in node if key not in known]
    return [
        f"{where} has the unknown key {cut(key)}.{did_you_mean(key, known)} Allowed: {allowed}"
        for key in unknown
    ]


def checked_rule(node: object) -> dict[str, Any]:
    """Return the keys and values of a rule as it is in a file.

    Raises `PolicyError` with the problems of all parts.
    """
    problems = find_wrong_keys(node, "the rule", KEYS)
    if not isinstance(node, Mapping):
        raise PolicyError(*problems)
    parts = [(key, node.get(key)) for key in _PARTS if key in node or key == "match"]
    values = dict(_checked_all(_checked_part, parts, problems))
    if values.keys().isdisjoint(("settings", "hints", "blocks")):
        raise PolicyError("it sets nothing. Add settings, hints or blocks")
    return values


def _checked_all(
    check: Callable[..., _T], parts: Iterable[tuple[object, object]], problems: Iterable[str] = ()
) -> list[_T]:
    """Return the results of a check for all parts, which are pairs of a name and a value.

    Raises `PolicyError` with the problems of all parts, after the given ones.
    """
    found = [*problems]
    results: list[_T] = []
    for name, value in parts:
        try:
            results.append(check(name, value))
        except PolicyError as error:
            found += error.problems
    if found:
        raise PolicyError(*found)
    return results


def _checked_part(key: str, node: object) -> tuple[str, object]:
    return key, _PARTS[key](node)


def _checked_name(node: object) -> str:
    if not isinstance(node, str):
        raise PolicyError("name must be text")
    return node


def _checked_force(node: object) -> bool:
    if not isinstance(node, bool):
        raise PolicyError(f"force is {shown(node)}. Allowed: true, false")
    return node


def _checked_match(node: object) -> dict[str, str | list[str]]:
    if node is None:
        raise PolicyError('it has no match. To match every query, write user: "*" under match')
    problems = find_wrong_keys(node, "match", CONDITIONS)
    pairs = node.items() if isinstance(node, Mapping) else ()
    known = [(name, value) for name, value in pairs if name in CONDITIONS]
    match = dict(_checked_all(_checked_condition, known, problems))
    if not match:
        raise PolicyError(f"match has no conditions. Allowed: {', '.join(CONDITIONS)}")
    return match


def _checked_condition(name: str, value: object) -> tuple[str, str | list[str]]:
    texts = [value] if isinstance(value, str) else value
    if (
        not isinstance(texts, list | tuple)
        or not texts
        or not all(isinstance(text, str) and text.strip() for text in texts)
    ):
        raise PolicyError(f"{name} is {shown(value)}. Allowed: text, or a list of texts")
    if name == "sql":
        if len(texts) != 1:
            raise PolicyError("sql takes one regular expression")
        try:
            expressions.check(texts[0])
        except ValueError as error:
            raise PolicyError(
                f"sql is '{cut(texts[0])}', which is not a regular expression: {error}"
            ) from None
    return name, value if isinstance(value, str) else list(texts)


def _checked_settings(node: object) -> dict[str, bool | int | float | str]:
    if not isinstance(node, Mapping) or not node:
        raise PolicyError("settings must have names and values")
    found = _checked_all(_checked_setting, node.items())
    _check_contradictions({setting.keyword: checked for setting, checked in found})
    # Text such as 64MB reads better than a number of bytes.
    return {
        setting.name: value if isinstance(value, str) else checked
        for (setting, checked), value in zip(found, node.values(), strict=True)
    }


def _checked_setting(name: object, value: object) -> tuple[Setting, bool | int | float | str]:
    setting = _setting(str(name))
    if value is None or isinstance(value, list | tuple | Mapping):
        raise PolicyError(f"{setting.name} is {shown(value)}. Allowed: one value")
    text = cut(value) if isinstance(value, str) else shown(value)
    try:
        checked = setting.check(value)
    except SettingError:
        raise PolicyError(f"{setting.name} is {text}. Allowed: {setting.allowed_text}") from None
    # Spark reads the text itself, and there a space or an underscore is no part of a number.
    if isinstance(value, str) and setting.type in _NUMBERS and _DIVIDED.search(value.strip()):
        allowed = f"{setting.allowed_text}, without spaces and underscores"
        raise PolicyError(f"{setting.name} is {text}. Allowed: {allowed}")
    if setting.key == registry.ENABLED and checked is True:
        raise PolicyError(
            f"{setting.name} is true. Allowed: false. A rule cannot switch Apportion on"
        )
    return setting, checked


def _setting(name: str) -> Setting:
    try:
        setting = registry.find(PREFIX + name.removeprefix(PREFIX))
    except SettingError:
        usable = [each for each in registry.registry().values() if each.not_in_policies is None]
        suggestion = did_you_mean(name.removeprefix(PREFIX), [each.name for each in usable])
        raise PolicyError(f"unknown setting {cut(name)}.{suggestion}") from None
    if setting.not_in_policies is not None:
        raise PolicyError(f"a rule cannot set {setting.name}: {setting.not_in_policies}")
    return setting


def _check_contradictions(keywords: Mapping[str, Any]) -> None:
    known = registry.registry()
    # As Spark does, compare a bound with the default of the other one.
    defaults = {bound: known[bound].default for bound in ("min_parallelism", "max_parallelism")}
    try:
        Settings.from_kwargs(**defaults | {k: v for k, v in keywords.items() if k in known})
    except SettingError as error:
        raise PolicyError(str(error)) from None
    least, most = (keywords.get(f"resources_{bound}_slots") for bound in ("min", "max"))
    if least is not None and most not in (None, -1) and least > most:
        raise PolicyError(
            f"resources.minSlots is {least} and resources.maxSlots is {most}: "
            "the first must not be above the second"
        )


def _checked_hints(value: object, where: str = "hints") -> str:
    if not isinstance(value, str):
        raise PolicyError(f"{where} is {shown(value)}. Allowed: text, such as PARALLELISM(8)")
    problems = [f"{where}: {each}" for hint in _hints(value, where) for each in _complaints(hint)]
    if problems:
        raise PolicyError(*problems)
    return value


def _complaints(hint: Hint) -> Iterable[str]:
    if hint.name not in grammar.APPORTION:
        name = hint.text.split("(")[0].strip()
        yield f"unknown hint {cut(name)}. Allowed: {', '.join(grammar.APPORTION)}"
        return
    for complaint in grammar.check(hint):
        yield f"hint {cut(hint.text)}: {sentence(complaint)}"


def _hints(value: str, where: str) -> Iterable[Hint]:
    has_comment = "*/" in value or "/*" in value
    statements = [] if has_comment else read(f"SELECT /*+ {value} */ 1").statements
    comments = [comment for each in statements for comment, _ in each.comments]
    inner = [token for comment in comments for token in comment.inner]
    # Nothing replaces a template or a parameter in a policy file.
    is_open = any(token.has_template or token.word in (":", "?") for token in inner)
    if len(comments) != 1 or is_open or comments[0].stray or not comments[0].hints:
        raise PolicyError(
            f"{where}: cannot read the hints '{cut(value)}'. Write PARALLELISM(8), "
            "RANGES(balanced), for example"
        )
    return comments[0].hints


def _checked_blocks(node: object) -> dict[str, str]:
    if not isinstance(node, Mapping) or not node:
        raise PolicyError("blocks must have names of blocks, each with hints")
    return dict(_checked_all(_checked_block, node.items()))


def _checked_block(name: object, hints: object) -> tuple[str, str]:
    if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
        raise PolicyError(f"block {cut(str(name))} is not a name")
    return name, _checked_hints(hints, f"block {cut(name)}")


_PARTS: Mapping[str, Callable[[object], object]] = {
    "name": _checked_name,
    "match": _checked_match,
    "settings": _checked_settings,
    "hints": _checked_hints,
    "blocks": _checked_blocks,
    "force": _checked_force,
}


def shown(value: object) -> str:
    """Return a value as in JSON for a message, cut after some characters."""
    try:
        return cut(json.dumps(value, ensure_ascii=False, default=str, skipkeys=True))
    except RecursionError:
        return "nested too deeply"


def cut(text: str) -> str:
    """Return a text for a message, cut after some characters."""
    return text if len(text) <= _LARGEST_SHOWN else f"{text[:_LARGEST_SHOWN]}..."
