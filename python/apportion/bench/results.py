"""The runs of a benchmark, and the file that keeps them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from apportion.bench.environment import Environment
from apportion.bench.plans import PlanCounts
from apportion.bench.variants import Variant
from apportion.errors import ApportionError

_FORMAT = "apportion bench 1"
_Described = TypeVar("_Described", "Conditions", Environment)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a query; a reduce task is one of a stage that reads a shuffle."""

    seconds: float
    task_millis: int
    """Run time of all tasks."""
    tasks: int
    reduce_tasks: int
    shuffle_bytes: int
    """What all reduce tasks read."""
    largest_task_bytes: int
    """What the largest reduce task read."""
    blocks_written: int
    """Of each shuffle, the tasks that write it times its subpartitions."""
    spilled_bytes: int = 0
    """Bytes that tasks spilled to disk."""
    limited_decisions: int = 0
    """Decisions that wanted more tasks than the shuffle has partitions."""
    limit_factor: float | None = None
    """The most tasks wanted per partition among them; None where no decision was limited."""

    @property
    def mean_task_bytes(self) -> float:
        """What a reduce task read on average; 0 where there is none."""
        return self.shuffle_bytes / self.reduce_tasks if self.reduce_tasks else 0.0


@dataclasses.dataclass(frozen=True)
class QueryResult:
    """What one query gave."""

    sql: str
    runs: dict[str, list[Run]] = dataclasses.field(default_factory=dict)
    """The runs under each variant, round by round."""
    failures: dict[str, str] = dataclasses.field(default_factory=dict)
    """The variants that it failed under, with the first line of the error."""
    different: list[str] = dataclasses.field(default_factory=list)
    """The variants with another result than the baseline's."""
    plans: dict[str, PlanCounts] = dataclasses.field(default_factory=dict)
    """What the plan of each variant holds, if that was asked for."""


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What the runs of a result have in common, by the user's choice."""

    suite: str
    scale: float | None
    """None for SQL files."""
    tables: str | None
    """The directory of --tables."""
    variants: list[Variant]
    """The first is the baseline."""
    rounds: int
    warmups: int
    check: bool
    conf: dict[str, str]
    """What the session was started with."""
    plans: bool = False
    """Whether plans are compared."""


@dataclasses.dataclass(frozen=True)
class Results:
    """The queries that have been run so far, all under the same conditions."""

    conditions: Conditions
    environment: Environment
    queries: dict[str, QueryResult] = dataclasses.field(default_factory=dict)

    def save(self, file: Path, summary: Mapping[str, Any] | None = None) -> None:
        """Write all to `file` as JSON: whole, or not at all.

        Raises `ApportionError` when it cannot be written.
        """
        content = {"format": _FORMAT, **dataclasses.asdict(self), "summary": summary}
        beside = file.with_name(f".{file.name}.new")
        try:
            beside.write_text(json.dumps(content, indent=1), "utf-8")
            beside.replace(file)
        except OSError as error:
            raise ApportionError(f"cannot write {file}: {error.strerror}") from error


def load(file: Path) -> Results:
    """Return the results in `file`.

    Raises `ApportionError` when it cannot be read, or was not written by `Results.save`.
    """
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise ApportionError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise ApportionError(f"{file} is not JSON, or only a part of it: {error}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != _FORMAT:
        raise ApportionError(
            f"{file} is no result of apportion bench: its format is {found!r}, not {_FORMAT!r}"
        )
    try:
        return _results(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ApportionError(
            f"{file} is no whole result of apportion bench: {error!r}. Somebody changed it"
        ) from error


def resume(file: Path, start: Results, queries: Mapping[str, str]) -> Results:
    """Return the results in `file` to go on with, or `start` when there is no such file.

    Raises `ApportionError` when they were measured otherwise than `start` will be, or have another
    text for one of `queries`, and as `load` does.
    """
    if not file.exists():
        return start
    found = load(file)
    different = [
        *_differences(found.conditions, start.conditions),
        *_differences(found.environment, start.environment),
        *(
            f"another text of query {name}"
            for name, sql in queries.items()
            if name in found.queries and found.queries[name].sql != sql
        ),
    ]
    if different:
        raise ApportionError(
            f"{file} was measured with {'; '.join(different)}. Give another file with --json, or "
            "start this one over with --fresh"
        )
    return found


def _differences(before: _Described, now: _Described) -> Iterator[str]:
    for field in dataclasses.fields(now):
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old != new:
            yield f"{field.name} {_shown(old)}, not {_shown(new)}"


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _results(content: dict[str, Any]) -> Results:
    conditions = dict(content["conditions"])
    variants = [Variant(**each) for each in conditions.pop("variants")]
    results = Results(
        Conditions(variants=variants, **conditions),
        Environment(**content["environment"]),
        {name: _query(each) for name, each in content["queries"].items()},
    )
    for name, query in results.queries.items():
        for variant in variants:
            runs = query.runs.get(variant.name, [])
            if variant.name not in query.failures and len(runs) != results.conditions.rounds:
                raise ValueError(f"{len(runs)} runs of query {name} under {variant.name}")
    return results


def _query(content: dict[str, Any]) -> QueryResult:
    runs = {name: [Run(**run) for run in runs] for name, runs in content["runs"].items()}
    plans = {name: PlanCounts(**counts) for name, counts in content.get("plans", {}).items()}
    return QueryResult(**{**content, "runs": runs, "plans": plans})
