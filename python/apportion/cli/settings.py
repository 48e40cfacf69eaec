"""`apportion settings`."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from apportion._util.units import size_text
from apportion.cli.support.console import out
from apportion.settings import Setting, registry


def settings() -> None:
    """List the settings: for Spark's conf, and as keywords in Python."""
    table = Table("Setting", "Default", "Allowed", "Meaning", show_lines=True)
    table.columns[0].no_wrap = True
    for keyword, setting in registry().items():
        table.add_row(
            f"{keyword}\n[dim]{setting.key}",
            _default(setting),
            escape(setting.allowed_text),
            escape(setting.doc),
        )
    out.print(table)
    out.print(
        "Set them with apportion.get_or_create(min_parallelism=4), in SQL with "
        "SET spark.apportion.minParallelism = 4, or at submit with "
        "--conf spark.apportion.minParallelism=4. Sizes: 64MB, 1g, or a number of bytes."
    )


def _default(setting: Setting) -> str:
    match setting.default:
        case None:
            return "not set"
        case bool(value):
            return str(value).lower()
        case int(value) if setting.type == "size":
            return size_text(value)
        case value:
            return str(value)
