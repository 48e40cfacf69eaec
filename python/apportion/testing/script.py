"""Parser of `.sql` files with named statements and directives in comments.

| directive | meaning |
|---|---|
| `-- name: TEXT` | starts a statement: its SQL is the rest of the block |
| `-- setup` | starts one statement without a golden entry: it runs once, before those below it |
| `-- set: KEY = VALUE` | a setting for this statement or setup, reset after it |
| `-- error: TEXT` | the statement fails, with TEXT in its message (Spark's includes a condition) |
| `-- order: kept` | rows are compared in order (default: `sorted`) |
| `-- decisions: off` | decisions are not compared (default: `on`) |
| `-- digits: N` | floating-point values are compared to N significant digits, 1 to 17 |
| `-- spark: >= X.Y` | the statement is skipped on other Spark versions; also `< X.Y` |

Write directives above the SQL of their block. Above the first block, `set`, `order`, `decisions`
and `digits` apply to the whole file. A block is one SQL statement, with or without a final `;`.

A directive is any comment line that starts with a lower-case word and a colon, even inside a string
that spans lines. Start an ordinary comment with `---` if it looks like a directive.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apportion.errors import ApportionError
from apportion.sql.statements import split_tokens


class ScriptError(ApportionError):
    """An invalid `.sql` file. The message has one line per problem, with file and line."""


@dataclass(frozen=True)
class Block:
    """One SQL statement to run. `line` is the line number of its header, starting from 1."""

    line: int
    sql: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Options:
    """Options for the comparison of a statement.

    `error` is the expected part of the error message, or None if the statement must succeed.
    `digits` is None if floating-point values are compared exactly. `spark` is None for all
    versions.
    """

    error: str | None = None
    ordered: bool = False
    decisions: bool = True
    digits: int | None = None
    spark: SparkRange | None = None


@dataclass(frozen=True)
class SparkRange:
    """Range of Spark versions: from a version on, or below it."""

    comparison: str
    version: tuple[int, int]

    def has(self, version: str) -> bool:
        """Return whether a version such as `4.1.3` is in the range."""
        major, minor = version.split(".")[:2]
        is_newer = (int(major), int(minor)) >= self.version
        return is_newer == (self.comparison == ">=")

    def __str__(self) -> str:
        return f"{self.comparison} {self.version[0]}.{self.version[1]}"


@dataclass(frozen=True)
class Statement(Block):
    """Statement to test. `setups` are all setup blocks above it, in order."""

    name: str
    setups: tuple[Block, ...]
    options: Options


@dataclass(frozen=True)
class Script:
    """Parsed `.sql` file. `settings` apply to all blocks."""

    settings: Mapping[str, str]
    statements: tuple[Statement, ...]


def parse(text: str, path: str) -> Script:
    """Parse the text of a `.sql` file. `path` is used only in messages.

    Raises `ScriptError` with all problems.
    """
    problems = _Problems(path)
    top, *blocks = _sections(text)
    if top.has_sql:
        problems.add(top.sql_line, "SQL above the first block: begin it with '-- name: ...'")
    for section in (top, *blocks):
        _check_words(section, problems)
    settings = _settings(top, problems)
    defaults = _options(top, Options(), problems)

    setups: list[Block] = []
    statements: dict[str, Statement] = {}
    for section in blocks:
        block = Block(section.line, section.sql, _settings(section, problems))
        if not section.has_sql:
            problems.add(section.line, f"{section.title} has no SQL")
        # Spark reports SQL that cannot be split.
        elif not (parts := split_tokens(section.sql)).problems and len(parts.statements) > 1:
            found = f"{section.title} has {len(parts.statements)} statements"
            problems.add(section.line, f"{found}: begin each with its own header")
        if section.kind == "setup":
            setups.append(block)
            continue
        options = _options(section, defaults, problems)
        statement = Statement(
            block.line, block.sql, block.settings, section.name, tuple(setups), options
        )
        if section.name in statements:
            first = statements[section.name].line
            problems.add(section.line, f"{section.title} has the same name as line {first}")
        statements.setdefault(section.name, statement)
    problems.raise_any()
    return Script(settings, tuple(statements.values()))


@dataclass(frozen=True)
class _Directive:
    line: int
    word: str
    value: str
    has_colon: bool = True


_TOP = ("set", "order", "decisions", "digits")
_ALLOWED = {"top": _TOP, "setup": ("set",), "name": (*_TOP, "error", "spark")}
_WORDS = ("name", "setup", "set", "error", "order", "decisions", "digits", "spark")
_VALUES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "order": ("ordered", "sorted or kept", {"sorted": False, "kept": True}),
    "decisions": ("decisions", "on or off", {"on": True, "off": False}),
    "digits": ("digits", "1 to 17", {str(digits): digits for digits in range(1, 18)}),
}
_SPARK = re.compile(r"(>=|<)\s*(\d+)\.(\d+)")
_ASSIGNMENT = re.compile(r"[\w.]+\s*=.*")
_COMMENT = re.compile(r"\s*--\s*(?P<word>[A-Za-z][\w-]*)\s*(?P<rest>.*)")
_NOT_SQL = re.compile(r"--[^\n]*|/\*(?!\+)[\s\S]*?(?:\*/|\Z)|[\s;]")


@dataclass
class _Section:
    """Lines below a header (`-- name:` or `-- setup`), or above the first header ("top")."""

    kind: str
    line: int
    name: str = ""
    directives: list[_Directive] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    sql_line: int = 0

    @property
    def sql(self) -> str:
        return "\n".join(self.lines).strip()

    @property
    def has_sql(self) -> bool:
        return bool(_NOT_SQL.sub("", self.sql))

    @property
    def title(self) -> str:
        return f"statement {self.name!r}" if self.kind == "name" else "the setup"


class _Problems:
    def __init__(self, path: str) -> None:
        self._path = path
        self._problems: list[tuple[int, str]] = []

    def add(self, line: int, message: str) -> None:
        self._problems.append((line, message))

    def raise_any(self) -> None:
        if self._problems:
            lines = (f"{self._path}:{line}: {message}" for line, message in sorted(self._problems))
            raise ScriptError("\n".join(lines))


def _sections(text: str) -> list[_Section]:
    """Split the text at its headers. The first section is the top, which can be empty."""
    sections = [_Section("top", 1)]
    # str.splitlines would also divide lines at characters that SQL has in its strings.
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        section = sections[-1]
        directive = _directive(number, line)
        if directive is None:
            section.lines.append(line)
            if not section.sql_line and section.has_sql:
                section.sql_line = number
        elif directive.word in ("name", "setup"):
            sections.append(_Section(directive.word, number, directive.value))
        else:
            section.directives.append(directive)
    return sections


def _directive(number: int, line: str) -> _Directive | None:
    match = _COMMENT.fullmatch(line)
    if not match:
        return None
    word, rest = match["word"], match["rest"].strip()
    # `-- SPDX-License-Identifier: ...` is a comment, but `-- Name: ...` is a misspelt directive.
    if rest.startswith(":") and (word.islower() or word.lower() in _WORDS):
        return _Directive(number, word, rest[1:].strip())
    if not rest and word in _WORDS:
        return _Directive(number, word, "")
    # Otherwise, a test could pass without its setting, or without comparing the order.
    is_value = word in _VALUES and rest in _VALUES[word][2]
    if is_value or (word == "set" and _ASSIGNMENT.fullmatch(rest)):
        return _Directive(number, word, rest, has_colon=False)
    return None


def _check_words(section: _Section, problems: _Problems) -> None:
    if section.kind == "name" and not section.name:
        problems.add(section.line, "'-- name:' without a name")
    if section.kind == "setup" and section.name:
        problems.add(section.line, f"'-- setup' takes no value, not {section.name!r}")
    for directive in section.directives:
        word = directive.word
        if word not in _WORDS:
            near = difflib.get_close_matches(word.lower(), _WORDS, n=1)
            meant = f", did you mean '{near[0]}'?" if near else "."
            problems.add(
                directive.line,
                f"unknown directive '{word}'{meant} Allowed are {_listed(_WORDS)} "
                "(start an ordinary comment with '---')",
            )
        elif not directive.has_colon:
            problems.add(
                directive.line,
                f"'{word}' has no colon: write '-- {word}: {directive.value}' "
                "(start an ordinary comment with '---')",
            )
        elif word not in _ALLOWED[section.kind]:
            where = "in a setup" if section.kind == "setup" else "above the first block"
            allowed = _listed(_ALLOWED[section.kind])
            problems.add(directive.line, f"'{word}' is not allowed {where}, only {allowed}")
        elif section.kind != "top" and 0 < section.sql_line < directive.line:
            problems.add(
                directive.line,
                f"'{word}' is below its SQL: move it above line {section.sql_line}",
            )


def _settings(section: _Section, problems: _Problems) -> Mapping[str, str]:
    settings: dict[str, str] = {}
    for directive in section.directives:
        if directive.word == "set":
            key, equals, value = (part.strip() for part in directive.value.partition("="))
            if not key or not equals:
                problems.add(
                    directive.line, f"'set: {directive.value}' must have the form 'KEY = VALUE'"
                )
            elif key in settings:
                problems.add(directive.line, f"{key} is set twice in this block")
            settings[key] = value
    return settings


def _options(section: _Section, defaults: Options, problems: _Problems) -> Options:
    given: dict[str, _Directive] = {}
    for directive in section.directives:
        if directive.word in (*_VALUES, "error", "spark"):
            if directive.word in given:
                problems.add(directive.line, f"'{directive.word}' is given twice in this block")
            given[directive.word] = directive
    changes: dict[str, Any] = {}
    for word, directive in given.items():
        if word not in _VALUES:
            continue
        option, allowed, values = _VALUES[word]
        if directive.value in values:
            changes[option] = values[directive.value]
        else:
            problems.add(
                directive.line,
                f"'{word}: {directive.value}' is not allowed: write {allowed}",
            )
    for directive in section.directives:
        if directive.word == "error":
            if not directive.value:
                problems.add(directive.line, "'error:' needs the expected condition or text")
            changes["error"] = directive.value
        if directive.word == "spark":
            if not (match := _SPARK.fullmatch(directive.value)):
                problems.add(
                    directive.line,
                    f"'spark: {directive.value}' must have the form '>= X.Y' or '< X.Y'",
                )
                continue
            changes["spark"] = SparkRange(match[1], (int(match[2]), int(match[3])))
    return replace(defaults, **changes)


def _listed(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
