"""`apportion streams`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from apportion._util.units import read_seconds
from apportion.cli.support.console import fail, note, out, writing
from apportion.cli.support.options import Force, Output, OutputFormat, choose_format
from apportion.cli.support.outputs import check_outputs, json_text
from apportion.errors import ApportionError, did_you_mean
from apportion.streaming import journal, report
from apportion.streaming.journal import History
from apportion.streaming.simulation import StreamSimulation, parse_policy, simulate

EXAMPLES = """\
More examples:

- `apportion streams /checkpoints/orders --follow`: watch a running stream
- `apportion streams LOG --policy load:0.8 --policy lag:5min --slots 16`: compare policies for a \
stream that ran without Apportion
"""


def streams_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT|LOG",
            help="Checkpoint of a stream that Apportion controls, an event log, or a file with the "
            "JSON of a StreamingQueryProgress in each line.",
        ),
    ],
    stream: Annotated[
        str | None, typer.Option(help="Name or id of one stream. Default: all streams.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show changes until you press Ctrl-C.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.2,
            max=86_400,
            metavar="SECONDS",
            help="For --follow: time between reads. Default: 2.",
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Simulate the stream under a policy: fixed:8, load:0.8 or lag:5min. Repeatable.",
        ),
    ] = None,
    slots: Annotated[
        int | None,
        typer.Option(min=1, help="For --policy: task slots. Default: as in the journal."),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(help="For --policy: interval of the trigger. Default: as in the journal."),
    ] = None,
    stabilization: Annotated[
        str | None,
        typer.Option(help="For --policy: time for which a load must be steady. Default: 5min."),
    ] = None,
    cooldown: Annotated[
        str | None,
        typer.Option(help="For --policy: shortest time between two rescales. Default: 10min."),
    ] = None,
    format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Show streams that rescale, and simulate other policies.

    With `--policy`, the batches of the log run again under other policies. Row *logged* is the
    measured run. Row *replay* is a simulation of it, and shows how far to trust the other rows.

    Exit codes: 0 shown, 2 wrong usage or a log without a stateful stream.
    """
    chosen = choose_format(format, output, ["text", "json"])
    times = {"--trigger": trigger, "--stabilization": stabilization, "--cooldown": cooldown}
    for option, value in {"--slots": slots, **times}.items():
        if value is not None and not policies:
            fail(f"{option} has no effect without --policy")
    if follow:
        if policies or output or chosen == "json":
            fail("--follow: not with --policy, --output and --format json")
        _follow(source, stream, 2 if every is None else every)
        return
    if every is not None:
        fail("--every has no effect without --follow")
    check_outputs("streams", [("--output", output)], [source], force)
    histories, skipped = _read(source, stream)
    if policies:
        wanted = [parse_policy(each) for each in policies]
        interval = None if trigger is None else _seconds("--trigger", trigger)
        steady = _seconds("--stabilization", "5min" if stabilization is None else stabilization)
        between = _seconds("--cooldown", "10min" if cooldown is None else cooldown)
        results = [
            simulate(
                each, wanted, slots=slots, trigger=interval, stabilization=steady, cooldown=between
            )
            for each in histories
        ]
        content = [dataclasses.asdict(each) for each in results]
        shown = Group(*(part for each in results for part in _simulation(each)))
    else:
        content = [report.summary(each) for each in histories]
        shown = _view(histories)
    with writing(output) as console:
        if chosen == "json":
            console.write(json_text("streams", {"streams": content}))
        else:
            console.print(shown)
    for left_out in skipped:
        note(f"Left out: {left_out}")


def _read(source: str, stream: str | None) -> tuple[list[History], list[str]]:
    histories, skipped = journal.read(source)
    if stream is None:
        return histories, skipped
    chosen = [each for each in histories if stream in _names(each)]
    if not chosen:
        names = [each.stream for each in histories]
        raise ApportionError(
            f"{source} has no stream {stream}, but {', '.join(names)}.{did_you_mean(stream, names)}"
        )
    return chosen, skipped


def _names(history: History) -> tuple[str, ...]:
    short = history.stream.removesuffix(f" ({history.query_id[:8]})")
    return history.stream, history.query_id, short


def _view(histories: Sequence[History]) -> Group:
    return Group(*(part for each in histories for part in (report.text(each), Text())))


def _simulation(simulation: StreamSimulation) -> list[RenderableType]:
    plot = "\n".join(report.runs_plot(simulation))
    lines = [Text(line) for line in report.notes(simulation)]
    return [report.runs_table(simulation), Text(plot), Text(), *lines, Text()]


def _follow(source: str, stream: str | None, every: float) -> None:
    """Show the stream again and again. The first read can fail, and later ones wait."""
    shown = _view(_read(source, stream)[0])
    try:
        with Live(shown, console=out, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                time.sleep(every)
                # Some file systems have no journal for a moment while it is replaced.
                with suppress(ApportionError):
                    live.update(_view(_read(source, stream)[0]), refresh=True)
    except KeyboardInterrupt:
        return


def _seconds(option: str, text: str) -> float:
    seconds = read_seconds(text)
    if seconds < 0:
        fail(f"{option} is {text}: write a time such as 30s or 5min")
    return float(seconds)
