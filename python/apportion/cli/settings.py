"""`apportion settings`."""

from __future__ import annotations

from itertools import groupby

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apportion.cli.support.console import out
from apportion.settings import registry


def settings() -> None:
    """List all settings by category, with their names in Python and in Spark's conf.

    ```text
    $ apportion settings
    Tasks per stage
    Setting                             Default   Allowed          Meaning
    data_volume_per_task                not set   1 byte or more   Target size per task: ...
    spark.apportion.dataVolumePerTask
    ```
    """
    for category, entries in groupby(registry().values(), key=lambda setting: setting.category):
        table = Table("Setting", "Default", "Allowed", "Meaning", show_lines=True)
        table.columns[0].no_wrap = True
        table.columns[2].max_width = 24
        table.columns[3].overflow = "fold"
        for setting in entries:
            table.add_row(
                f"{setting.keyword}\n[dim]{setting.key}",
                escape(setting.default_text),
                escape(setting.allowed_text),
                escape(setting.doc),
            )
        out.print(Text(category, style="bold"))
        out.print(table)
    out.print(
        "Set them in Python with apportion.get_or_create(min_parallelism=4), in SQL with "
        "SET spark.apportion.minParallelism = 4, or at submit time with "
        "--conf spark.apportion.minParallelism=4. Write sizes as 64MB, 1g, or a number of bytes. "
        "Write times as 30s, 5min, or a number of seconds."
    )
