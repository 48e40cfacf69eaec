"""The programs that measure: `python -m measurements NAME`."""

from __future__ import annotations

import typer

from measurements import results
from measurements.checks import (
    cluster_logs,
    deadlines,
    file_sizes,
    heap_growth,
    large_broadcasts,
    largest_tasks,
    memory,
    plain_logs,
    plans,
    rules,
    streams,
)
from measurements.speed import driver, queries, slots

PROGRAMS = (
    results, queries, slots, driver, plans, largest_tasks, memory, file_sizes, plain_logs,
    cluster_logs, deadlines, streams, large_broadcasts, heap_growth, rules,
)  # fmt: skip

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")
for program in PROGRAMS:
    name = program.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name)(program.main)

if __name__ == "__main__":
    app()
