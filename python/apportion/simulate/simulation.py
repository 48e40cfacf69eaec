"""The queries of a log in several scenarios, beside what was measured."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from apportion.errors import ApportionError
from apportion.eventlog import Application, Query
from apportion.simulate.fit import Model, fit
from apportion.simulate.replay import Outcome, measured, replay
from apportion.simulate.scenarios import Scenario
from apportion.simulate.workload import Workload, workload

MEASURED = "logged"


@dataclasses.dataclass(frozen=True)
class Row:
    """A scenario, or what was measured, with an outcome for each query."""

    name: str
    scenario: Scenario | None
    """None for what was measured."""
    outcomes: list[Outcome]

    @property
    def total(self) -> Outcome:
        """All queries, one after the other."""
        return Outcome(
            makespan=sum(each.makespan for each in self.outcomes),
            tasks=sum(each.tasks for each in self.outcomes),
            slot_seconds=sum(each.slot_seconds for each in self.outcomes),
            largest_task_bytes=max(each.largest_task_bytes for each in self.outcomes),
            slots=max(each.slots for each in self.outcomes),
            reruns=sum(each.reruns for each in self.outcomes),
        )

    @property
    def notes(self) -> dict[str, int]:
        """What could not be simulated as asked for, and in how many stages or queries."""
        return dict(Counter(note for each in self.outcomes for note in each.notes))


@dataclasses.dataclass(frozen=True)
class Simulation:
    """What came out. The rows begin with what was measured and the replay of the log."""

    workloads: list[Workload]
    model: Model
    rows: list[Row]
    left_out: list[str]
    """Queries that cannot be simulated, and why."""

    def as_json(self) -> dict[str, Any]:
        """Return all of it, but the times of single tasks, as data for JSON."""
        return {
            "fit": {
                **dataclasses.asdict(self.model.quality),
                "overhead_seconds": self.model.overhead,
                "stages_with_a_line_of_their_own": self.model.own_lines,
                "handover_seconds": self.model.handover,
                "launch_seconds": self.model.launch,
            },
            "scenarios": [_row_as_json(row, self.workloads) for row in self.rows],
            "left_out": self.left_out,
        }


def simulate(
    application: Application,
    scenarios: Iterable[Scenario],
    queries: Sequence[Query] | None = None,
    progress: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> Simulation:
    """Run queries of a log (None: all) again, as logged and in each scenario.

    `progress` is given the names of the scenarios, and yields each of them when its turn comes.

    Raises `ApportionError` where there is nothing to simulate, for two scenarios of one name, and
    as `replay` does.
    """
    chosen = list(application.queries.values()) if queries is None else queries
    found = [(query, workload(application, query)) for query in chosen]
    workloads = [each for _, each in found if each]
    left_out = [
        f"query {query.id}: it {_why_left_out(query)}" for query, each in found if each is None
    ]
    if not workloads:
        raise ApportionError(
            "; ".join(["there is no query to simulate", *left_out[:3]])
            + (f"; and {len(left_out) - 3} more" if len(left_out) > 3 else "")
            + "".join(f"; left out: {each}" for each in application.skipped)
        )
    model = fit(workloads)
    by_name = _by_name([Scenario("replay"), *scenarios])
    rows = [Row(MEASURED, None, [measured(each) for each in workloads])]
    for name in progress(list(by_name)):
        outcomes = [replay(each, model, by_name[name]) for each in workloads]
        rows.append(Row(name, by_name[name], outcomes))
    return Simulation(workloads, model, rows, left_out)


def _by_name(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    found: dict[str, Scenario] = {}
    for scenario in scenarios:
        if scenario.name in found or scenario.name == MEASURED:
            raise ApportionError(f"there is a scenario {scenario.name} already: take another name")
        found[scenario.name] = scenario
    return found


def _why_left_out(query: Query) -> str:
    if query.completed is None or query.submitted is None:
        return "has not ended, as far as the log goes"
    return "ran no task"


def _row_as_json(row: Row, workloads: Sequence[Workload]) -> dict[str, Any]:
    return {
        "name": row.name,
        "scenario": dataclasses.asdict(row.scenario) if row.scenario else None,
        **_outcome_as_json(row.total),
        "notes": row.notes,
        "queries": [
            {
                "query": workload.query,
                "description": workload.description,
                **_outcome_as_json(outcome),
                "stages": [
                    {
                        "name": stage.name,
                        "tasks": stage.tasks,
                        "task_seconds": stage.task_seconds,
                        "largest_task_bytes": stage.largest_task_bytes,
                        "as_logged": stage.is_as_logged,
                    }
                    for stage in outcome.stages
                ],
            }
            for workload, outcome in zip(workloads, row.outcomes, strict=True)
        ],
    }


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "makespan_seconds": outcome.makespan,
        "tasks": outcome.tasks,
        "slot_seconds": outcome.slot_seconds,
        "largest_task_bytes": outcome.largest_task_bytes,
        "slots": outcome.slots,
        "reruns": outcome.reruns,
    }
