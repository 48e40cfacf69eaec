"""Tables and notes of a simulation for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from apportion._util.tables import FittedTable
from apportion._util.units import count_text, size_text
from apportion.logs.eventlog.model import ESTIMATED_SLOTS
from apportion.logs.simulate.replay import NO_DECISION, Outcome, StageOutcome
from apportion.logs.simulate.scenarios import PLAIN
from apportion.logs.simulate.simulation import Row, Simulation

# A description can be the text of a query.
_MAX_DESCRIPTION = 160
# Mark of predictions that assume equal shuffle partitions.
BOUND = "*"


def scenarios_table(simulation: Simulation) -> FittedTable:
    """Return a table with a row for each scenario: all queries, one after the other."""
    columns = (
        "Scenario", "Makespan, s", "Times faster", "Tasks", "Slot-seconds", "Largest task", "Slots",
        "Used",
    )  # fmt: skip
    queries = len(simulation.workloads)
    title = count_text(queries, "query") + ("" if queries == 1 else ", one after the other")
    table = FittedTable(title, columns, right=range(1, len(columns)))
    logged = simulation.rows[0].total
    for row in _shown(simulation):
        total = row.total
        table.add_row(
            _label(row),
            f"{total.makespan:,.2f}",
            f"{logged.makespan / total.makespan:.2f}" if total.makespan else "-",
            f"{total.tasks:,}" + (f" + {total.reruns:,}" if total.reruns else ""),
            f"{total.slot_seconds:,.1f}",
            size_text(total.largest_task_bytes),
            f"{total.slots:,}",
            _used(total, row),
        )
    return table


def queries_table(simulation: Simulation) -> FittedTable:
    """Return a table with a row for each query: its makespan and tasks in each scenario."""
    table = _side_by_side(simulation, "Makespan, s (tasks)", "Query")
    for place, workload in enumerate(simulation.workloads):
        outcomes = (row.outcomes[place] for row in _shown(simulation))
        table.add_row(
            f"{workload.query}: {_shortened(workload.description)}",
            *(
                f"{outcome.makespan:,.2f} ({outcome.tasks:,}){_mark(outcome)}"
                for outcome in outcomes
            ),
        )
    return table


def stages_table(simulation: Simulation) -> FittedTable:
    """Return a table with a row for each stage of the only query: its tasks in each scenario."""
    table = _side_by_side(simulation, "Tasks of each stage (total seconds)", "Stage")
    by_place = zip_longest(*(row.outcomes[0].stages for row in _shown(simulation)))
    # `replay` adds the stages of limits that the log does not have.
    for stage, outcomes in zip_longest(simulation.workloads[0].stages, by_place):
        number = f"stage {stage.id}" if stage else "added stage"
        name = next(outcome.name for outcome in outcomes if outcome)
        table.add_row(
            number + (f" ({name})" if name else ""),
            *(
                f"{outcome.tasks:,} ({outcome.task_seconds:,.2f}){_mark(outcome)}"
                if outcome
                else "-"
                for outcome in outcomes
            ),
        )
    return table


def fit_text(simulation: Simulation) -> str:
    """Return the quality of the fit and its main parameters, in words."""
    model, quality = simulation.model, simulation.model.quality
    stages = sum(len(workload.stages) for workload in simulation.workloads)
    explained = "" if quality.r_squared is None else f", R² {quality.r_squared:.2f}"
    return (
        f"Fit of {count_text(quality.tasks, 'task')} in {count_text(stages, 'stage')}: "
        f"median error {quality.median_error:.0%}{explained}. "
        f"Overhead per task: {model.overhead * 1000:.0f} ms. "
        f"Fitted separately: {count_text(model.own_lines, 'stage')}."
    )


def notes(simulation: Simulation) -> Iterator[str]:
    """Yield the differences between the scenarios and the simulation."""
    queries = simulation.workloads
    undecided = sum(
        any(stage.reads_shuffle for stage in ran.stages) and not ran.was_decided for ran in queries
    )
    if undecided:
        yield (
            f"the log has no decisions for the shuffles of {undecided} of "
            f"{count_text(len(queries), 'query')}, and so no bytes of their partitions. "
            "`apportion advise LOG` shows stages that waste time. To simulate partitions of "
            "different sizes, record the log with Apportion enabled"
        )
    if any(outcome.assumes_equal_partitions for row in simulation.rows for outcome in row.outcomes):
        yield (
            f"{BOUND} assumes equal shuffle partitions, because only their total bytes are known. "
            "The largest task and the times are lower bounds"
        )
    if simulation.has_estimated_slots:
        yield ESTIMATED_SLOTS
    for ran in queries:
        if ran.has_failed:
            yield f"query {ran.query} failed, so the simulation has only the tasks until then"
        if ran.profiles > 1:
            yield (
                f"the stages of query {ran.query} have {ran.profiles} resource profiles. The "
                "simulation runs all of them on the same slots"
            )
        if ran.most_slots > ran.slots:
            yield (
                f"query {ran.query} started with {count_text(ran.slots, 'slot')} and had up to "
                f"{ran.most_slots:,} later. The simulation keeps {ran.slots:,}, unless a scenario "
                "sets another number"
            )
    for row in _shown(simulation):
        for note, count in row.notes.items():
            if not undecided or len(queries) == 1 or NO_DECISION not in note:
                yield f"{row.name}: {note}" + (f" ({count} times)" if count > 1 else "")
    yield from simulation.left_out


def _shown(simulation: Simulation) -> list[Row]:
    """Return the rows without Spark's own tasks, if the queries ran with them."""
    if not all(ran.ran_plain for ran in simulation.workloads):
        return simulation.rows
    _, replayed, *others = simulation.rows
    same = [row for row in others if row.name == PLAIN and row.total == replayed.total]
    return [row for row in simulation.rows if row not in same]


def _side_by_side(simulation: Simulation, title: str, first_column: str) -> FittedTable:
    """Return an empty table with a column for each scenario."""
    columns = [first_column, *(row.name for row in _shown(simulation))]
    return FittedTable(title, columns, right=range(1, len(columns)))


def _mark(outcome: Outcome | StageOutcome) -> str:
    return BOUND if outcome.assumes_equal_partitions else ""


def _label(row: Row) -> str:
    if row.scenario is None:
        return f"{row.name} (measured)"
    parts = [f"{key.removeprefix('spark.')}={value}" for key, value in row.scenario.conf.items()]
    if row.scenario.scale != 1:
        parts.append(f"x{row.scenario.scale:g} bytes")
    parts += [f"lose {loss.executors}@{loss.seconds:g}s" for loss in row.scenario.losses]
    return f"{row.name} ({', '.join(parts)})" if parts else row.name


def _used(total: Outcome, row: Row) -> str:
    """Return the share of the slot time that tasks used; `-` for a scenario with losses."""
    offered = sum(outcome.makespan * outcome.slots for outcome in row.outcomes)
    lost = row.scenario.losses if row.scenario else ()
    return f"{total.slot_seconds / offered:.0%}" if offered and not lost else "-"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_DESCRIPTION else f"{line[: _MAX_DESCRIPTION - 1]}…"
