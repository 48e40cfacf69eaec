"""The commands of docs/deploying.md."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import commands

# What a test adds to them.
HERE = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
# What is decided, into one task.
QUERY = "SELECT id % 7 AS key, count(*) FROM range(0, 100, 1, 2) GROUP BY id % 7"
REASONS = "SELECT reason FROM apportion_decisions()"


def options(jar: str | Path, *words: str) -> list[str]:
    """Return the options of the page's first command that begins with a word and has the others."""
    first = next(
        command
        for name, command in commands()
        if name.startswith("deploying.md") and command[0] == words[0] and {*words} <= {*command}
    )
    return [*HERE, *(word.replace("$(apportion jar)", str(jar)) for word in first[1:])]
