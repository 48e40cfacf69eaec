"""`apportion simulate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from apportion import eventlog
from apportion._util.figures import check
from apportion.cli.support.console import err, writing
from apportion.cli.support.options import Format, Output, PlotFile
from apportion.cli.support.progress import counted, waiting
from apportion.simulate import plot, report
from apportion.simulate.scenarios import Scenario, losses, parse, spark, with_assignments
from apportion.simulate.simulation import Simulation, simulate

EXAMPLES = """\
Examples:

- `apportion simulate LOG`: how well the log is replayed, and Spark's own coalescing beside it
- `apportion simulate LOG --query 7 --set data_volume_per_task=16MB`: one query, smaller tasks
- `apportion simulate LOG --set ranges=balanced --set rounding=waves --slots 160`: on a cluster
- `apportion simulate LOG --scale 1000 --slots 400 --lose 5@60`: 1000 times the data, on 400 \
slots, of which those of 5 executors are lost after a minute
- `apportion simulate LOG --scenario "few:slots=80" --scenario "many:slots=320,mode=active" \
--plot slots.png`: two clusters, drawn
"""


def simulate_command(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="An event log: a file, plain or .zstd, or the directory of a rolling log.",
        ),
    ],
    query: Annotated[
        list[int] | None,
        typer.Option(
            help="A query by its number in Spark's UI; repeatable. Default: all that ran."
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            "--set",
            metavar="NAME=VALUE",
            help="A setting of Apportion (data_volume_per_task=16MB), or one of Spark by its whole "
            "key, for all scenarios but the replay. Repeatable.",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tasks that can run at once. Default: as in the log."),
    ] = None,
    executor_slots: Annotated[
        int | None,
        typer.Option(metavar="N", help="Slots of an executor. Default: as in the log."),
    ] = None,
    lose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N@SECONDS",
            help="N executors are lost so many seconds after a query starts. Repeatable.",
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option(metavar="X", help="Multiplies all bytes, of files and of shuffles.")
    ] = 1.0,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            metavar="NAME:KEY=VALUE,...",
            help="One more scenario, on top of the options above: settings, and slots, "
            "executor_slots, scale, lose=N@SECONDS+N@SECONDS. Repeatable.",
        ),
    ] = None,
    plot_file: PlotFile = None,
    format: Format = "text",
    output: Output = None,
) -> None:
    """Replay an event log with other settings, slots, losses of executors or sizes of the data.

    Shows, side by side: what was measured (logged), the log's own configuration simulated
    (replay), what --set, --slots, --lose and --scale make of it (set), each --scenario, and Spark's
    own coalescing under the same conditions (spark).

    Numbers of tasks come from the subpartitions' bytes in the log. A task takes an overhead and its
    bytes by a throughput, both fitted to the tasks of the log.

    Exit codes: 0 shown, 2 wrong usage or a log that cannot be read.
    """
    if plot_file:
        check(plot_file)
    common = Scenario(
        "set",
        slots=slots,
        executor_slots=executor_slots,
        losses=losses(lose or []),
        scale=scale,
    )
    common = with_assignments(common, "set", assignments or [])
    changed = [common] if common != Scenario("set") else []
    own = [parse(text, common) for text in scenarios or []]
    with waiting(f"Reading {log}"):
        application = eventlog.read(log)
    result = simulate(
        application,
        [*changed, *own, spark(common)],
        application.numbered(query, str(log)) if query else None,
        lambda names: counted(names, "Scenario"),
    )
    with writing(output) as console:
        _print(result, format, console)
    if plot_file:
        plot.draw(result, plot_file)
        err.print(f"Plot: {plot_file}", markup=False, soft_wrap=True)
    for left_out in application.skipped:
        err.print(f"Left out: {left_out}", markup=False, soft_wrap=True)


def _print(result: Simulation, format: str, console: Console) -> None:
    if format == "json":
        console.file.write(json.dumps(result.as_json(), indent=2, ensure_ascii=False) + "\n")
        return
    single = len(result.workloads) == 1
    console.print(report.stages_table(result) if single else report.queries_table(result))
    console.print(report.scenarios_table(result))
    console.print(report.fit_text(result), markup=False, soft_wrap=True)
    for note in report.notes(result):
        console.print(f"Note: {note}", markup=False, soft_wrap=True)
