"""Streams and their simulations for a terminal and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from apportion._util.tables import FittedTable
from apportion._util.units import count_text, number_text, seconds_text, size_text
from apportion.logs.stream_record import StreamRecord
from apportion.streaming.journal import History
from apportion.streaming.simulation import Run, StreamSimulation

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40
_PLOT_WIDTH = 60
_LABEL = 12


def text(history: History, records: int = 10) -> RenderableType:
    """Return the load, state and partitions of a stream, and its last changes with reasons.

    A stream that ran without Apportion has no reasons.
    """
    title = Text(history.stream, style="bold")
    if not history.records:
        partitions = count_text(history.batches[-1].partitions or 0, "state partition")
        return Group(
            title, Text(f"  {len(history.batches)} batches without Apportion, {partitions}")
        )
    last = history.records[-1]
    body = Text("\n").join(Text(line) for line in _lines(history, last))
    changes = [each for each in history.records if each.event in ("rescale", "failure")]
    parts: list[RenderableType] = [title, Padding(body, (0, 0, 0, 2))]
    if changes:
        parts += [Text(), _changes(changes[-records:])]
    return Group(*parts)


def summary(history: History) -> dict[str, Any]:
    """Return the records of a stream as data for JSON."""
    return {
        "stream": history.stream,
        "query_id": history.query_id,
        "records": [record.to_json() for record in history.records],
        "batches": len(history.batches) or sum(r.event == "batch" for r in history.records),
    }


def _lines(history: History, last: StreamRecord) -> Iterator[str]:
    trigger = last.trigger_millis
    of = "" if trigger is None else f" of a {seconds_text(trigger / 1000)} trigger"
    state = "ended" if last.event == "ended" else "running"
    yield f"{'Stream':<{_LABEL}}{state}, batch {last.batch}, {last.at:%Y-%m-%d %H:%M:%S} UTC"
    yield f"{'Batch time':<{_LABEL}}{seconds_text(last.batch_millis / 1000)}{of}"
    yield (
        f"{'Rows':<{_LABEL}}{last.input_rows_per_second:,.0f} per second arrive, "
        f"{last.processed_rows_per_second:,.0f} are processed, {_backlog(last.backlog_rows)}"
    )
    each = last.state_bytes // max(1, last.partitions)
    yield (
        f"{'State':<{_LABEL}}{last.state_rows:,} rows, {size_text(last.state_bytes)}, "
        f"{size_text(each)} per partition"
    )
    batches = [each for each in history.records if each.event in ("batch", "rescale")]
    # An end and a failure decide nothing.
    decided = batches[-1] if batches else last
    aim = "" if decided.target == last.partitions else f", target {decided.target}"
    yield (
        f"{'Partitions':<{_LABEL}}{last.partitions}{aim}, "
        f"{count_text(last.slots, 'task slot')}, policy {last.policy}"
    )
    if len(batches) > 1:
        begin = batches[0].at.timestamp()
        ends = [record.at.timestamp() - begin for record in batches]
        times = [record.batch_millis / 1000 for record in batches]
        numbers = [float(record.partitions) for record in batches]
        yield f"{'':<{_LABEL}}{sparkline(ends, numbers)} {_range(numbers)} partitions"
        yield (
            f"{'':<{_LABEL}}{sparkline(ends, times)} {seconds_text(min(times))} to "
            f"{seconds_text(max(times))} per batch"
        )
    if batches and decided.reason:
        yield f"{'Decision':<{_LABEL}}{decided.reason}"
    if last.event == "ended":
        yield f"{'End':<{_LABEL}}{last.reason}"


def _backlog(rows: int | None) -> str:
    return "backlog unknown" if rows is None else f"{rows:,} wait"


def _range(numbers: Sequence[float]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def _changes(records: Sequence[StreamRecord]) -> FittedTable:
    columns = ("Time, UTC", "Event", "Pause", "Stop", "Repartition", "Start", "Reason")
    table = FittedTable("Changes of the state partitions", columns, right=range(2, 6))
    for record in records:
        millis = (
            record.pause_millis, record.stop_millis, record.repartition_millis, record.start_millis
        )  # fmt: skip
        table.add_row(
            f"{record.at:%H:%M:%S}",
            record.event,
            *("-" if each is None else seconds_text(each / 1000) for each in millis),
            record.reason,
        )
    return table


def sparkline(times: Sequence[float], values: Sequence[float], width: int = _WIDTH) -> str:
    """Return a line of bars over time. Each value holds from its time to the next.

    A bar is the largest value of its part of the time.

    >>> sparkline([0, 1, 2, 3], [1, 8, 8, 4], width=4)
    '▁██▄'
    """
    end, most = times[-1] - times[0], max(values) or 1.0
    width = min(width, len(times)) if end > 0 else 1
    tops = [0.0] * width
    for place, (time, value) in enumerate(zip(times, values, strict=True)):
        until = times[place + 1] if place + 1 < len(times) else times[-1]
        first = _bar(time - times[0], end, width)
        for bar in range(first, max(first + 1, _bar(until - times[0], end, width))):
            tops[bar] = max(tops[bar], value)
    return "".join(_BARS[max(0, round(top / most * len(_BARS)) - 1)] for top in tops)


def _bar(time: float, end: float, width: int) -> int:
    return min(width - 1, int(time / end * width)) if end > 0 else 0


def runs_table(simulation: StreamSimulation) -> FittedTable:
    """Return a table with a row for each simulated run."""
    columns = (
        "Policy", "Rescales", "Pauses", "Worst lag", "Late batches", "Partition-hours", "Partitions"
    )  # fmt: skip
    table = FittedTable(simulation.stream, columns, right=range(1, len(columns)))
    for run in simulation.runs:
        table.add_row(
            "logged (measured)" if run.name == "logged" else run.name,
            str(run.rescales),
            seconds_text(run.pauses),
            seconds_text(run.worst_lag),
            "-" if run.late is None else f"{run.late:.0%}",
            number_text(run.partition_hours),
            _range([float(number) for _, number in run.partitions]),
        )
    return table


def runs_plot(simulation: StreamSimulation) -> Iterator[str]:
    """Yield a line for each run: its state partitions over time, on one scale."""
    label = max(len(run.name) for run in simulation.runs)
    longest = max(run.seconds for run in simulation.runs)
    most = max(number for run in simulation.runs for _, number in run.partitions)
    for run in simulation.runs:
        yield f"{run.name:<{label}} {_steps(run, longest, most)}".rstrip()
    yield f"{'':<{label}} state partitions, 1 to {most}, over {seconds_text(longest)}"


def _steps(run: Run, longest: float, most: int) -> str:
    width = _PLOT_WIDTH
    bars = []
    for bar in range(width):
        time = (bar + 0.5) * longest / width
        if time > run.seconds:
            break
        number = [number for begin, number in run.partitions if begin <= time][-1]
        bars.append(_BARS[max(0, round(number / most * len(_BARS)) - 1)])
    return "".join(bars)


def notes(simulation: StreamSimulation) -> Iterator[str]:
    """Yield the model, its error, and what it assumes."""
    model = simulation.model
    yield (
        f"Model: {seconds_text(model.overhead)} per batch, {seconds_text(model.task)} per task, "
        f"{model.row * 1e6:,.1f} µs per row, on {count_text(simulation.slots, 'slot')}. Median "
        f"error {model.median_error:.0%}, worst {model.worst_error:.0%}, over "
        f"{model.samples} batches of the log"
    )
    if not model.knows_tasks:
        yield (
            "Note: all batches of the log have the same number of waves of tasks, so the cost of a "
            "task is unknown and taken as 0. Policies with more partitions look better than they "
            "are"
        )
    if simulation.pauses_measured:
        yield (
            f"Pause of a rescale: {seconds_text(simulation.pause)}, the median of "
            f"{count_text(simulation.pauses_measured, 'rescale')} in the log"
        )
    else:
        yield (
            f"Note: the log has no rescale. A pause of {seconds_text(simulation.pause)} is assumed"
        )
    yield (
        f"Policies: stabilization {seconds_text(simulation.stabilization)}, cooldown "
        f"{seconds_text(simulation.cooldown)}. The log does not have the times of the stream: set "
        "them with --stabilization and --cooldown"
    )
