"""A simulation as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from apportion._util.units import count_text, size_text
from apportion.simulate.replay import NO_DECISION, Outcome
from apportion.simulate.simulation import Row, Simulation

_LONGEST = 40


def scenarios_table(simulation: Simulation) -> Table:
    """Return a line for each scenario: all queries together, one after the other."""
    table = Table(title=_title(simulation), title_justify="left")
    table.add_column("Scenario")
    for column in (
        "Makespan, s", "Times faster", "Tasks", "Slot-seconds", "Largest task", "Slots", "Used",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    logged = simulation.rows[0].total
    for row in simulation.rows:
        total = row.total
        table.add_row(
            escape(_label(row)),
            f"{total.makespan:,.2f}",
            f"{logged.makespan / total.makespan:.2f}" if total.makespan else "-",
            f"{total.tasks:,}" + (f" + {total.reruns:,}" if total.reruns else ""),
            f"{total.slot_seconds:,.1f}",
            size_text(total.largest_task_bytes),
            f"{total.slots:,}",
            _used(total, row),
        )
    return table


def queries_table(simulation: Simulation) -> Table:
    """Return a line for each query: its makespan, and its tasks, in each scenario."""
    table = _side_by_side(simulation, "Makespan, s (tasks)", "Query")
    for place, workload in enumerate(simulation.workloads):
        cells = (row.outcomes[place] for row in simulation.rows)
        table.add_row(
            escape(f"{workload.query}: {_shortened(workload.description)}"),
            *(f"{each.makespan:,.2f} ({each.tasks:,})" for each in cells),
        )
    return table


def stages_table(simulation: Simulation) -> Table:
    """Return a line for each stage of the only query: its tasks in each scenario."""
    table = _side_by_side(simulation, "Tasks of each stage (seconds of all of them)", "Stage")
    for place, stage in enumerate(simulation.workloads[0].stages):
        cells = (row.outcomes[0].stages[place] for row in simulation.rows)
        table.add_row(
            escape(f"{stage.name} ({stage.id})"),
            *(f"{each.tasks:,} ({each.task_seconds:,.2f})" for each in cells),
        )
    return table


def fit_text(simulation: Simulation) -> str:
    """Return how well the times of tasks were fitted, in a sentence."""
    model, quality = simulation.model, simulation.model.quality
    stages = sum(len(workload.stages) for workload in simulation.workloads)
    explained = "" if quality.r_squared is None else f", R² {quality.r_squared:.2f}"
    return (
        f"Fit of {count_text(quality.tasks, 'task')} in {count_text(stages, 'stage')}: "
        f"median error {quality.median_error:.0%}{explained}. "
        f"Overhead of a task {model.overhead * 1000:.0f} ms; "
        f"{count_text(model.own_lines, 'stage')} with a line of its own."
    )


def notes(simulation: Simulation) -> Iterator[str]:
    """Yield what could not be simulated as asked for."""
    queries = simulation.workloads
    undecided = sum(each.reads_shuffles and not each.was_decided for each in queries)
    if undecided:
        yield (
            f"{undecided} of {len(queries)} queries ran without Apportion. Its decisions alone "
            "log the bytes of subpartitions, so that stages that read shuffles keep their tasks: "
            "only slots, losses and scale are replayed for them. Record the log with Apportion's "
            "extension to try other numbers of tasks"
        )
    for row in simulation.rows:
        for note, count in row.notes.items():
            if not undecided or NO_DECISION not in note:
                yield f"{row.name}: {note}" + (f" ({count} times)" if count > 1 else "")
    yield from simulation.left_out


def _side_by_side(simulation: Simulation, title: str, what: str) -> Table:
    """An empty table with a column for each scenario."""
    table = Table(title=title, title_justify="left")
    table.add_column(what)
    for row in simulation.rows:
        table.add_column(escape(row.name), justify="right")
    return table


def _title(simulation: Simulation) -> str:
    queries = len(simulation.workloads)
    return count_text(queries, "query") + ("" if queries == 1 else ", one after the other")


def _label(row: Row) -> str:
    if row.scenario is None:
        return f"{row.name} (measured)"
    parts = [f"{key.removeprefix('spark.')}={value}" for key, value in row.scenario.conf.items()]
    if row.scenario.scale != 1:
        parts.append(f"x{row.scenario.scale:g} bytes")
    parts += [f"lose {loss.executors}@{loss.seconds:g}s" for loss in row.scenario.losses]
    return f"{row.name} ({', '.join(parts)})" if parts else row.name


def _used(total: Outcome, row: Row) -> str:
    """The part of the time for which slots are held, while they are there."""
    offered = sum(each.makespan * each.slots for each in row.outcomes)
    lost = row.scenario.losses if row.scenario else ()
    return f"{total.slot_seconds / offered:.0%}" if offered and not lost else "-"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
