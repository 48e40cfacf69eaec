"""`apportion policies`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion._util.units import count_text
from apportion.cli.support.console import err, note, out
from apportion.policies.checks import PolicyError
from apportion.policies.files import Problem, check, load
from apportion.policies.rules import Policies, Rule
from apportion.redaction import one_line

_HAS_PROBLEMS = 1
_IS_UNREADABLE = 2

EXAMPLES = """\
More examples:

- `apportion policies show policies.yaml`: list the rules in the order in which they count
"""


def policies_command(
    action: Annotated[
        Literal["check", "show"],
        typer.Argument(help="check finds wrong rules. show lists the rules.", show_default=False),
    ],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Policy files, in YAML or JSON.")
    ],
) -> None:
    """Check or show policy files.

    Spark leaves out each wrong rule, and applies the others. It does not use a file that it cannot
    read. Of rare regular expressions, only Spark can tell whether they are right. They have a line,
    but are no problem.

    Exit codes: 0 no problems, 1 problems, 2 wrong usage or a file that cannot be read.
    """
    problems: list[Problem] = []
    unreadable: list[str] = []
    read = 0
    for file in files:
        try:
            found = check(file)
            if action == "show" and not any(each.is_certain for each in found):
                _show(load(file))
        except PolicyError as error:
            unreadable.append(str(error))
        else:
            problems += found
            read += 1
    certain = [problem for problem in problems if problem.is_certain]
    for problem in problems if action == "check" else certain:
        _print(str(problem))
    for message in unreadable:
        note(f"Error: {one_line(message)}")
    if action == "check" and read:
        err.print(_summary(certain, len(problems) - len(certain), read), markup=False)
    if unreadable:
        raise typer.Exit(_IS_UNREADABLE)
    if certain:
        raise typer.Exit(_HAS_PROBLEMS)


def _summary(certain: list[Problem], undecided: int, read: int) -> str:
    files = count_text(read, "file")
    left = f", {count_text(undecided, 'rule')} for Spark to check" if undecided else ""
    if not certain:
        return f"{files}, no {'other ' if undecided else ''}problems{left}"
    wrong = len({problem.file for problem in certain})
    return f"{count_text(len(certain), 'problem')} in {wrong} of {files}{left}"


def _show(policies: Policies) -> None:
    numbered = list(enumerate(policies.rules, 1))
    # Forced rules count before all others.
    for number, rule in sorted(numbered, key=lambda pair: not pair[1].force):
        title = f"rule {number}" + (f" ({rule.name})" if rule.name else "")
        forced = ", forced" if rule.force else ""
        _print(f"{title}{forced}")
        for line in _lines(rule):
            _print(f"  {line}")


def _print(line: str) -> None:
    out.print(one_line(line), markup=False, highlight=False, soft_wrap=True)


def _lines(rule: Rule) -> list[str]:
    conditions = [
        f"{name} is {value if isinstance(value, str) else ' or '.join(value)}"
        for name, value in rule.match.items()
    ]
    values = [
        f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in rule.settings.items()
    ]
    hints = [rule.hints] if rule.hints else []
    blocks = [f"{text} on {block}" for block, text in rule.blocks.items()]
    return [f"if {', and '.join(conditions)}", f"set {', '.join([*values, *hints, *blocks])}"]
