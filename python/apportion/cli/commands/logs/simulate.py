"""`apportion simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apportion._util.figures import check
from apportion.cli.support.console import Console, note, writing
from apportion.cli.support.options import Force, Output, OutputFormat, PlotFile, choose_format
from apportion.cli.support.outputs import check_outputs, json_text
from apportion.cli.support.progress import counted, waiting
from apportion.cli.support.spark_session import set_option
from apportion.logs import eventlog
from apportion.logs.eventlog.input.files import logs
from apportion.logs.simulate import plot, report
from apportion.logs.simulate.scenarios import Scenario, losses, parse, spark, with_assignments
from apportion.logs.simulate.simulation import Simulation, simulate

EXAMPLES = """\
More examples:

- `apportion simulate LOG --scale 1000 --slots 400 --lose 5@60`: simulate 1000 times the data on \
400 slots, and lose 5 executors after a minute
- `apportion simulate LOG --scenario "few:slots=80" --scenario "many:slots=320,mode=active" \
--plot slots.png`: compare two clusters, and draw a plot
"""


def simulate_command(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Event log: a file, - for standard input, or the directory of a rolling log.",
        ),
    ],
    query: Annotated[
        list[int] | None,
        typer.Option(
            help="Number of a query in Spark's UI. Repeatable. Default: all queries of the log."
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None, set_option("Setting for all scenarios except the replay.")
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of task slots. Default: as in the log."),
    ] = None,
    executor_slots: Annotated[
        int | None,
        typer.Option(metavar="N", help="Task slots per executor. Default: as in the log."),
    ] = None,
    lose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N@SECONDS",
            help="Lose N executors this many seconds after a query starts. Repeatable.",
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option(metavar="X", help="Multiply the bytes of all files and shuffles by X.")
    ] = 1.0,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            metavar="NAME:KEY=VALUE,...",
            help="Additional scenario, on top of the options above. Keys are settings, and slots, "
            "executor_slots, scale, lose=N@SECONDS+N@SECONDS. Repeatable.",
        ),
    ] = None,
    plot_file: PlotFile = None,
    format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Replay an event log with other settings, slots or data sizes.

    Rows of the result:

    - *logged*: the measured run
    - *replay*: a simulation of the measured run. Its error tells you how much to trust other rows.
    - *set*: with `--set`, `--slots`, `--executor-slots`, `--lose` and `--scale`
    - one row for each `--scenario`
    - *spark*: Spark's own rules on the same slots and data

    Exit codes: 0 shown, 2 wrong usage or a log that cannot be read.
    """
    chosen = choose_format(format, output, ["text", "json"])
    if plot_file:
        check(plot_file)
    check_outputs("simulate", [("--output", output), ("--plot", plot_file)], logs(log), force)
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
        _print(result, chosen, console)
    if plot_file:
        plot.draw(result, plot_file)
        note(f"Plot: {plot_file}")
    for key in result.unused_confs:
        note(f"{key} changes nothing: the simulation does not use it")
    for left_out in application.skipped:
        note(f"Left out: {left_out}")


def _print(result: Simulation, format: str, console: Console) -> None:
    if format == "json":
        console.write(json_text("simulate", result.as_json()))
        return
    single = len(result.workloads) == 1
    console.print(report.stages_table(result) if single else report.queries_table(result))
    console.print(report.scenarios_table(result))
    console.print(report.fit_text(result), markup=False, soft_wrap=True)
    for sentence in report.notes(result):
        console.print(f"Note: {sentence}", markup=False, soft_wrap=True)
