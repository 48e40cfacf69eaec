"""Checks of the parts of a rule. `PolicyFile.scala` makes the same checks in Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apportion import settings as registry
from apportion.errors import ApportionError, SettingError, did_you_mean
from apportion.hints import grammar
from apportion.settings import PREFIX, Setting, Settings
from apportion.sql.blocks import read
from apportion.sql.hint_comments import Hint

CONDITIONS = (
    "fingerprint", "user", "application", "jobTag", "table", "sql", "writes", "catalog"
)  # fmt: skip
_IDENTIFIER = re.compile(r"(?:\w+|`(?:[^`]|``)+`)(?:\.(?:\w+|`(?:[^`]|``)+`))*", re.ASCII)
# Syntax of Java's regular expressions that Python does not have.
_ONLY_IN_JAVA = re.compile(r"\\[pPQEhRXGz]|\(\?<[A-Za-z]|[+*?}]\+|&&|\[[^\]]*\[")
_LARGEST_SHOWN = 200


class PolicyError(ApportionError, ValueError):
    """A policy file or a rule is wrong."""


def check_keys(node: object, where: str, known: Sequence[str]) -> Mapping[str, Any]:
    """Return a mapping with known keys only.

    Raises `PolicyError` for anything else.
    """
    allowed = ", ".join(known)
    if not isinstance(node, Mapping):
        raise PolicyError(f"{where} must have keys and values. Allowed keys: {allowed}")
    for key in node:
        if key not in known:
            raise PolicyError(
                f"{where} has the unknown key {key}.{did_you_mean(str(key), known)} "
                f"Allowed: {allowed}"
            )
    return node


def checked_match(node: object) -> dict[str, str | list[str]]:
    """Return conditions by name. Raises `PolicyError` if one is wrong, or if there is none."""
    if node is None:
        raise PolicyError('it has no match. To match every query, write user: "*" under match')
    conditions = check_keys(node, "match", CONDITIONS)
    if not conditions:
        raise PolicyError(f"match has no conditions. Allowed: {', '.join(CONDITIONS)}")
    match: dict[str, str | list[str]] = {}
    for name, value in conditions.items():
        texts = [value] if isinstance(value, str) else value
        if (
            not isinstance(texts, list | tuple)
            or not texts
            or not all(isinstance(text, str) and text.strip() for text in texts)
        ):
            raise PolicyError(f"{name} is {shown(value)}. Allowed: text, or a list of texts")
        if name == "sql":
            _check_expression(list(texts))
        match[name] = value if isinstance(value, str) else list(texts)
    return match


def _check_expression(texts: Sequence[str]) -> None:
    if len(texts) != 1:
        raise PolicyError("sql takes one regular expression")
    (text,) = texts
    problem = "Java has no (?P" if "(?P" in text else None
    try:
        re.compile(text)
    except re.error as error:
        problem = problem or (None if _ONLY_IN_JAVA.search(text) else str(error))
    if problem:
        raise PolicyError(f"sql is {text!r}, which is not a regular expression: {problem}")


def checked_settings(node: object) -> dict[str, bool | int | float | str]:
    """Return settings by name. Raises `PolicyError` for a name or a value that is not allowed."""
    if node is None:
        return {}
    if not isinstance(node, Mapping) or not node:
        raise PolicyError("settings must have names and values")
    values: dict[str, bool | int | float | str] = {}
    keywords: dict[str, Any] = {}
    for name, value in node.items():
        setting = _setting(str(name))
        if value is None or isinstance(value, list | tuple | Mapping):
            raise PolicyError(f"{name} is {shown(value)}. Allowed: one value")
        try:
            checked = setting.check(value)
        except SettingError:
            raise PolicyError(
                f"{setting.name} is {value}. Allowed: {setting.allowed_text}"
            ) from None
        if setting.key == registry.ENABLED and checked is True:
            raise PolicyError(
                f"{setting.name} is true. Allowed: false. A rule cannot switch Apportion on"
            )
        # Text such as 64MB reads better than a number of bytes.
        values[setting.name] = value if isinstance(value, str) else checked
        keywords[setting.keyword] = checked
    _check_contradictions(keywords)
    return values


def _setting(name: str) -> Setting:
    usable = [each for each in registry.registry().values() if each.not_in_policies is None]
    known = {each.name: each for each in registry.registry().values()}
    setting = known.get(name.removeprefix(PREFIX))
    if setting is None:
        short = name.removeprefix(PREFIX)
        suggestion = did_you_mean(short, [each.name for each in usable])
        raise PolicyError(f"unknown setting {name}.{suggestion}")
    if setting.not_in_policies is not None:
        raise PolicyError(f"a rule cannot set {setting.name}: {setting.not_in_policies}")
    return setting


def _check_contradictions(keywords: Mapping[str, Any]) -> None:
    try:
        Settings.from_kwargs(**keywords)
    except SettingError as error:
        raise PolicyError(str(error)) from None
    least, most = (keywords.get(f"resources_{bound}_slots") for bound in ("min", "max"))
    if least is not None and most not in (None, -1) and least > most:
        raise PolicyError(
            f"resources.minSlots is {least} and resources.maxSlots is {most}: "
            "the first must not be above the second"
        )


def checked_hints(value: object, where: str) -> str | None:
    """Return the text of hints. Raises `PolicyError`, which begins with `where`, if it is wrong."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise PolicyError(f"{where} is {shown(value)}. Allowed: text, such as PARALLELISM(8)")
    for hint in _hints(value, where):
        if hint.name not in grammar.APPORTION:
            name = hint.text.split("(")[0].strip()
            allowed = ", ".join(grammar.APPORTION)
            raise PolicyError(f"{where}: unknown hint {name}. Allowed: {allowed}")
        for complaint in grammar.check(hint):
            suggestion = f" ({complaint.suggestion})" if complaint.suggestion else ""
            raise PolicyError(f"{where}: hint {hint.text}: {complaint.message}{suggestion}")
    return value


def _hints(value: str, where: str) -> Iterable[Hint]:
    has_comment = "*/" in value or "/*" in value
    statements = [] if has_comment else read(f"SELECT /*+ {value} */ 1").statements
    comments = [comment for each in statements for comment, _ in each.comments]
    if len(comments) != 1 or comments[0].stray or not comments[0].hints:
        raise PolicyError(
            f"{where}: cannot read the hints {value!r}. Write PARALLELISM(8), RANGES(balanced), "
            "for example"
        )
    return comments[0].hints


def checked_blocks(node: object) -> dict[str, str]:
    """Return hints by the names of blocks. Raises `PolicyError` if one is wrong."""
    if node is None:
        return {}
    if not isinstance(node, Mapping) or not node:
        raise PolicyError("blocks must have names of blocks, each with hints")
    blocks = {}
    for name, hints in node.items():
        if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
            raise PolicyError(f"block {name} is not a name")
        if hints is None:
            raise PolicyError(f"block {name} is null. Allowed: text, such as PARALLELISM(8)")
        blocks[name] = checked_hints(hints, f"block {name}") or ""
    return blocks


def shown(value: object) -> str:
    """Return a value for a message, cut after some characters."""
    return ("null" if value is None else str(value))[:_LARGEST_SHOWN]
