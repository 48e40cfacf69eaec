"""Runs of a benchmark, and the JSON file that keeps them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from apportion._util.paths import write_text
from apportion.bench.environment import Environment
from apportion.bench.plans import PlanCounts
from apportion.bench.variants import Variant
from apportion.errors import ApportionError

_FORMAT = "apportion bench 1"
_Described = TypeVar("_Described", "Conditions", Environment)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a query. A reduce task is a task of a stage that reads a shuffle."""

    seconds: float
    task_millis: int
    """Total run time of all tasks."""
    tasks: int
    reduce_tasks: int
    shuffle_bytes: int
    """Bytes read by all reduce tasks."""
    largest_task_bytes: int
    """Bytes read by the largest reduce task."""
    blocks_written: int
    """Blocks of all shuffles. Without adaptive writes, map tasks times subpartitions."""
    spilled_bytes: int = 0
    """Bytes that tasks spilled to disk."""
    limited_decisions: int = 0
    """Number of decisions that wanted more tasks than the shuffle has partitions."""
    limit_factor: float | None = None
    """Most tasks wanted per partition in these decisions; None if no decision was limited."""

    @property
    def mean_task_bytes(self) -> float:
        """Mean bytes read by a reduce task; 0 if there are no reduce tasks."""
        return self.shuffle_bytes / self.reduce_tasks if self.reduce_tasks else 0.0


@dataclasses.dataclass(frozen=True)
class QueryResult:
    """Runs, failures and plans of one query."""

    sql: str
    runs: dict[str, list[Run]] = dataclasses.field(default_factory=dict)
    """Runs of each variant, in the order of the rounds."""
    failures: dict[str, str] = dataclasses.field(default_factory=dict)
    """First line of the error of each variant that failed."""
    different: list[str] = dataclasses.field(default_factory=list)
    """Variants with a different result than the baseline."""
    plans: dict[str, PlanCounts] = dataclasses.field(default_factory=dict)
    """Plan counts of each variant, if plans are compared."""
    spark_ended: bool = False
    """Whether the JVM ended, so that other variants may have no runs."""


@dataclasses.dataclass(frozen=True)
class Conditions:
    """Options of a benchmark. All runs in a file have the same conditions."""

    suite: str
    scale: float | None
    """Scale of the suite; None for SQL files."""
    tables: str | None
    """Directory of --tables."""
    variants: list[Variant]
    """Variants to compare. The first one is the baseline."""
    rounds: int
    warmups: int
    check: bool
    conf: dict[str, str]
    """Confs that the session starts with."""
    plans: bool = False
    """Whether plans are compared."""

    def without_secrets(self) -> Conditions:
        """Return the conditions as they are shown and saved."""
        variants = [variant.without_secrets() for variant in self.variants]
        return dataclasses.replace(self, variants=variants)


@dataclasses.dataclass(frozen=True)
class Results:
    """Results of all queries that have run so far, all under the same conditions."""

    conditions: Conditions
    environment: Environment
    queries: dict[str, QueryResult] = dataclasses.field(default_factory=dict)

    def save(self, file: Path, summary: Mapping[str, Any] | None = None) -> None:
        """Write the results to `file` as JSON, in one atomic step.

        Raises `ApportionError` if the file cannot be written.
        """
        saved = dataclasses.replace(self, conditions=self.conditions.without_secrets())
        content = {"format": _FORMAT, **dataclasses.asdict(saved), "summary": summary}
        try:
            write_text(file, json.dumps(content, indent=1))
        except OSError as error:
            raise ApportionError(f"cannot write {file}: {error.strerror}") from error


def load(file: Path) -> Results:
    """Return the results in `file`.

    Raises `ApportionError` if the file cannot be read, or was not written by `Results.save`.
    """
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise ApportionError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise ApportionError(f"{file} is not complete JSON: {error}") from error
    format = content.get("format") if isinstance(content, dict) else None
    if format != _FORMAT:
        raise ApportionError(
            f"{file} is not a result of apportion bench: its format is {format!r}, not {_FORMAT!r}"
        )
    try:
        return _results(content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ApportionError(
            f"{file} is not a complete result of apportion bench: {error!r}. The file was changed"
        ) from error


def resume(file: Path, start: Results, queries: Mapping[str, str]) -> Results:
    """Return the results in `file` to continue with, or `start` if the file does not exist.

    Raises `ApportionError` if the file has other conditions or another environment than `start`, or
    another text for one of `queries`. Also raises the errors of `load`.
    """
    if not file.exists():
        return start
    saved = load(file)
    different = [
        *_differences(saved.conditions, start.conditions.without_secrets()),
        *_differences(saved.environment, start.environment),
        *(
            f"another text of query {name}"
            for name, sql in queries.items()
            if name in saved.queries and saved.queries[name].sql != sql
        ),
    ]
    if different:
        raise ApportionError(
            f"{file} was measured with {'; '.join(different)}. Choose another file with "
            "--output, or start over with --fresh"
        )
    return saved


def _differences(before: _Described, now: _Described) -> Iterator[str]:
    for field in dataclasses.fields(now):
        old, new = getattr(before, field.name), getattr(now, field.name)
        if old != new:
            yield f"{field.name} {_shown(old)}, not {_shown(new)}"


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _results(content: dict[str, Any]) -> Results:
    conditions = dict(content["conditions"])
    variants = [Variant(**variant) for variant in conditions.pop("variants")]
    results = Results(
        Conditions(variants=variants, **conditions),
        Environment(**content["environment"]),
        {name: _query(query) for name, query in content["queries"].items()},
    )
    for name, query in results.queries.items():
        for variant in variants:
            runs = query.runs.get(variant.name, [])
            has_failed = query.spark_ended or variant.name in query.failures
            if not has_failed and len(runs) != results.conditions.rounds:
                raise ValueError(f"{len(runs)} runs of query {name} under {variant.name}")
    return results


def _query(content: dict[str, Any]) -> QueryResult:
    runs = {name: [Run(**run) for run in runs] for name, runs in content["runs"].items()}
    plans = {name: PlanCounts(**counts) for name, counts in content.get("plans", {}).items()}
    return QueryResult(**{**content, "runs": runs, "plans": plans})
