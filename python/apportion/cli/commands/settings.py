"""`apportion settings`."""

from __future__ import annotations

import dataclasses
import json
from itertools import groupby
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from apportion.cli.support.console import fail, out
from apportion.cli.support.options import Format
from apportion.errors import did_you_mean
from apportion.settings import Setting, registry

EXAMPLES = """\
More examples:

- `apportion settings parallelism`: list the settings with this text in their name or category
"""


def settings_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="Part of a name or category. Default: all settings."),
    ] = None,
    format: Format = "text",
) -> None:
    """List settings with their defaults and allowed values.

    Exit codes: 0 shown, 2 no setting has this text.
    """
    chosen = [setting for setting in registry().values() if not name or _matches(setting, name)]
    if name and not chosen:
        fail(f"no setting has {name!r} in its name.{did_you_mean(name, registry())}")
    if format == "json":
        entries = [{"keyword": each.keyword, **dataclasses.asdict(each)} for each in chosen]
        print(json.dumps(entries, indent=2))
        return
    for category, entries_of in groupby(chosen, key=lambda setting: setting.category):
        out.print(Text(category, style="bold underline"))
        for setting in entries_of:
            out.print(Text.assemble("\n", (setting.keyword, "bold"), f"  ({setting.key})"))
            values = f"default: {setting.default_text}; allowed: {setting.allowed_text}"
            out.print(Padding(Text(values), (0, 0, 0, 2)))
            out.print(Padding(Text(setting.doc), (0, 0, 0, 2)))
        out.print()
    out.print(
        "Set them in Python with apportion.get_or_create(min_parallelism=4), in SQL with "
        "SET spark.apportion.minParallelism = 4, or at submit time with "
        "--conf spark.apportion.minParallelism=4. Write sizes as 64MB, 1g, or a number of bytes. "
        "Write times as 30s, 5min, or a number of seconds."
    )


def _matches(setting: Setting, text: str) -> bool:
    names = (setting.keyword, setting.key, setting.category)
    return any(text.lower() in each.lower() for each in names)
