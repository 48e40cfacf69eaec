"""Simulation of a log in several scenarios, compared with the measured run."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from apportion.errors import ApportionError
from apportion.logs.eventlog import Application, Query
from apportion.logs.simulate.fit import Model, fit
from apportion.logs.simulate.replay import Outcome, measured, replay
from apportion.logs.simulate.scenarios import AS_LOGGED, Scenario
from apportion.logs.simulate.workload import Workload, workload
from apportion.settings import PREFIX

MEASURED = "logged"
_NONE = "there is no query to simulate"
_NONE_IN_LOG = f"{_NONE}: the log has no SQL query"


@dataclasses.dataclass(frozen=True)
class Row:
    """A scenario, or the measured run, with an outcome for each query."""

    name: str
    scenario: Scenario | None
    """None for the measured run."""
    outcomes: list[Outcome]

    @property
    def total(self) -> Outcome:
        """Outcome of all queries, one after the other."""
        return Outcome(
            makespan=sum(outcome.makespan for outcome in self.outcomes),
            tasks=sum(outcome.tasks for outcome in self.outcomes),
            slot_seconds=sum(outcome.slot_seconds for outcome in self.outcomes),
            largest_task_bytes=max(outcome.largest_task_bytes for outcome in self.outcomes),
            slots=max(outcome.slots for outcome in self.outcomes),
            reruns=sum(outcome.reruns for outcome in self.outcomes),
        )

    @property
    def notes(self) -> dict[str, int]:
        """Differences between the scenario and the simulation, with the number of each."""
        return dict(Counter(note for outcome in self.outcomes for note in outcome.notes))


@dataclasses.dataclass(frozen=True)
class Simulation:
    """Results. The first two rows are the measured run and its replay."""

    workloads: list[Workload]
    model: Model
    rows: list[Row]
    left_out: list[str]
    """Queries that are left out, with the reasons."""
    has_estimated_slots: bool = False
    """Whether the task slots of the log are an estimate, as in `Application`."""

    @property
    def unused_confs(self) -> list[str]:
        """Confs of Spark that scenarios change, but that no simulation read."""
        changed = {
            key
            for row in self.rows
            for key, value in (row.scenario.conf.items() if row.scenario else ())
            if any(ran.confs.get(key) != value for ran in self.workloads)
        }
        read = {key for row in self.rows for ran in row.outcomes for key in ran.read_confs}
        return sorted(key for key in changed - read if not key.startswith(PREFIX))

    def as_json(self) -> dict[str, Any]:
        """Return the results as data for JSON, without the times of single tasks."""
        return {
            "fit": {
                **dataclasses.asdict(self.model.quality),
                "overhead_seconds": self.model.overhead,
                "separately_fitted_stages": self.model.own_lines,
                "handover_seconds": self.model.handover,
                "launch_seconds": self.model.launch,
            },
            "scenarios": [_row_as_json(row, self.workloads) for row in self.rows],
            "left_out": self.left_out,
            "has_estimated_slots": self.has_estimated_slots,
        }


def simulate(
    application: Application,
    scenarios: Iterable[Scenario],
    queries: Sequence[Query] | None = None,
    progress: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> Simulation:
    """Simulate queries of a log, or all of them, as logged and in each scenario.

    `progress` gets the names of the scenarios, and yields each of them before its simulation.

    Raises `ApportionError` if there is nothing to simulate, if two scenarios have the same name,
    and as `replay` does.
    """
    chosen = list(application.queries.values()) if queries is None else queries
    by_query = [(query, workload(application, query)) for query in chosen]
    workloads = [ran for _, ran in by_query if ran]
    left_out = [
        f"query {query.id} is left out: it {_why_left_out(query)}"
        for query, ran in by_query
        if ran is None
    ]
    if not workloads:
        raise ApportionError(
            "; ".join([_NONE if left_out else _NONE_IN_LOG, *left_out[:3]])
            + (f"; and {len(left_out) - 3} more" if len(left_out) > 3 else "")
            + "".join(f"; left out: {reason}" for reason in application.skipped)
        )
    model = fit(workloads)
    by_name = _by_name([AS_LOGGED, *scenarios])
    rows = [Row(MEASURED, None, [measured(ran) for ran in workloads])]
    for name in progress(list(by_name)):
        try:
            outcomes = [replay(ran, model, by_name[name]) for ran in workloads]
        except ApportionError as error:
            raise ApportionError(f"scenario {name}: {error}") from None
        rows.append(Row(name, by_name[name], outcomes))
    return Simulation(workloads, model, rows, left_out, application.has_estimated_slots)


def _by_name(scenarios: Sequence[Scenario]) -> dict[str, Scenario]:
    by_name: dict[str, Scenario] = {}
    for scenario in scenarios:
        if scenario.name in by_name or scenario.name == MEASURED:
            raise ApportionError(
                f"the scenario name {scenario.name} is already in use: choose another name"
            )
        by_name[scenario.name] = scenario
    return by_name


def _why_left_out(query: Query) -> str:
    if query.completed is None or query.submitted is None:
        return "has not ended in this log"
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
                "failed": workload.has_failed,
                **_outcome_as_json(outcome),
                "stages": [
                    {
                        # `replay` adds the stages of limits that the log does not have.
                        "stage": ran.id if ran else None,
                        "name": stage.name,
                        "tasks": stage.tasks,
                        "task_seconds": stage.task_seconds,
                        "largest_task_bytes": stage.largest_task_bytes,
                        "as_logged": stage.is_as_logged,
                        "assumes_equal_partitions": stage.assumes_equal_partitions,
                    }
                    for ran, stage in zip_longest(workload.stages, outcome.stages)
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
