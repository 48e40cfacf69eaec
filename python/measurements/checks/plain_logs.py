"""Measure how accurate simulations from logs of plain Spark are.

    python -m measurements plain-logs --scale 1

TPC-H and TPC-DS run with Apportion off and on, with its default settings. The runs without it are
the log, and the runs with it show how right the predictions are.
"""

from __future__ import annotations

import dataclasses
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from apportion import eventlog
from apportion._util import cache
from apportion.bench.runner import rotated
from apportion.bench.suites import tpc
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.logs.eventlog import Application, PlanNode, plan_text
from apportion.logs.eventlog.fragments import Fragment, fragments
from apportion.logs.simulate.fit import Model, fit
from apportion.logs.simulate.replay import Outcome, measured, replay
from apportion.logs.simulate.scenarios import Scenario
from apportion.logs.simulate.workload import Workload, workload
from apportion.session import confs
from measurements import raw
from measurements.checks.plans import OFF, ON, SUITES

# Hundreds of queries run in one JVM, some with large broadcasts.
CONF = {"spark.driver.memory": "4g"}
# Operators that only move rows between others, or that depend on the join strategy.
_MOVING = {
    "AQEShuffleRead", "AdaptiveSparkPlan", "ColumnarToRow", "Filter", "InputAdapter", "Project",
    "ResultQueryStage", "ShuffleQueryStage", "Sort", "WholeStageCodegen",
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\b")


@dataclasses.dataclass(frozen=True)
class StagePair:
    """Tasks of a stage. One side is None if only the other plan has the stage."""

    name: str
    predicted: int | None
    measured: int | None

    @property
    def is_exact(self) -> bool:
        """Whether the predicted number of tasks is right."""
        return self.predicted == self.measured

    @property
    def is_within_2(self) -> bool:
        """Whether the predicted number is at least half of the measured one, and at most twice."""
        if self.predicted is None or self.measured is None:
            return False
        return self.measured <= 2 * self.predicted <= 4 * self.measured


def record(
    spark: SparkSession, benchmark: tpc.Benchmark, queries: Mapping[int, str], rounds: int
) -> Iterator[str]:
    """Run queries with Apportion off and on, alternating. Yield the failures.

    The job description of a run is `BENCHMARK QUERY VARIANT ROUND`. Round 0 is the warm-up. The
    session must write an event log.
    """
    for name in counted([str(number) for number in queries], SUITES[benchmark]):
        for number in range(rounds + 1):
            for variant in rotated([OFF, ON], number):
                with confs(spark, variant.conf):
                    description = f"{benchmark} {name} {variant.name} {number}"
                    spark.sparkContext.setJobDescription(description)
                    try:
                        spark.sql(queries[int(name)]).write.format("noop").mode("overwrite").save()
                    except PySparkException as error:
                        yield f"{description}: {str(error).splitlines()[0]}"


@dataclasses.dataclass(frozen=True)
class _Run:
    """A measured run of a query."""

    workload: Workload
    plan: PlanNode | None
    is_warm: bool


def rows(application: Application) -> list[raw.Row]:
    """Return a row for each query of a log that `record` wrote."""
    runs: dict[tuple[str, str], dict[str, list[_Run]]] = defaultdict(lambda: defaultdict(list))
    for query in application.queries.values():
        suite, name, variant, number = [*query.description.split(" "), "", "", "", ""][:4]
        if suite not in SUITES or not number.isdecimal() or query.failure:
            continue
        if ran := workload(application, query):
            runs[suite, name][variant].append(_Run(ran, query.plan, int(number) > 0))
    complete = {key: sides for key, sides in runs.items() if {OFF.name, ON.name} <= sides.keys()}
    for sides in complete.values():
        for variant, rounds in sides.items():
            sides[variant] = rounds = [run for run in rounds if run.is_warm] or rounds
            # The fastest runs are compared, because background load only makes runs slower.
            rounds.sort(key=lambda run: run.workload.seconds)
    if not complete:
        return []
    model = fit([sides[OFF.name][0].workload for sides in complete.values()])
    return [
        {
            "benchmark": suite,
            "master": application.conf.get("spark.master", ""),
            "heap": application.conf.get("spark.driver.memory", "1g"),
            "query": name,
            **_compared(sides[OFF.name][0], sides[ON.name], model),
        }
        for (suite, name), sides in complete.items()
    ]


def _compared(logged: _Run, rounds: Sequence[_Run], model: Model) -> raw.Row:
    """Return the columns that compare a prediction with the runs, from the fastest to the slowest.

    A query that ran only once has no times.
    """
    predicted = replay(logged.workload, model, Scenario(ON.name, ON.conf))
    fastest, slowest = rounds[0], rounds[-1]
    seconds = fastest.workload.seconds
    times = {
        "logged": f"{logged.workload.seconds:.2f}",
        "predicted": f"{predicted.makespan:.2f}",
        "measured": f"{seconds:.2f}",
        "error": f"{abs(predicted.makespan - seconds) / seconds:.3f}",
        "spread": f"{slowest.workload.seconds / seconds - 1:.3f}",
    }
    is_timed = logged.is_warm and fastest.is_warm
    stages = pairs(_tasks(predicted, logged.plan), _tasks(measured(fastest.workload), fastest.plan))
    wrong = [
        f"{pair.name}: {pair.predicted or 0} not {pair.measured or 0}"
        for pair in stages
        if not pair.is_exact
    ]
    return {
        **(times if is_timed else dict.fromkeys(times, "")),
        "stages": len(stages),
        "exact": sum(pair.is_exact for pair in stages),
        "within_2": sum(pair.is_within_2 for pair in stages),
        "wrong_stages": "; ".join(wrong),
    }


@dataclasses.dataclass(frozen=True)
class StageTasks:
    """Number of tasks of a stage, with descriptions of its work."""

    name: str
    tasks: int
    work: tuple[str, ...] = ()
    """The operators of the stage and of all stages below it."""
    operators: tuple[str, ...] = ()
    """The operators of the stage."""
    destination: str = "result"
    """Destination of its rows: shuffle, broadcast, subquery or result."""


def pairs(predicted: Sequence[StageTasks], measured: Sequence[StageTasks]) -> list[StagePair]:
    """Return the stages of two plans in pairs.

    Stages with the same work come first, then the same operators, then the same destination:
    adaptive execution can join in another way or order.
    """
    left, right = list(predicted), list(measured)
    found = []
    for key in ("work", "operators", "destination"):
        for stage in list(right):
            same = [other for other in left if getattr(other, key) == getattr(stage, key)]
            if same:
                left.remove(same[0])
                right.remove(stage)
                found.append(StagePair(stage.name, same[0].tasks, stage.tasks))
    found += [StagePair(stage.name, None, stage.tasks) for stage in right]
    return found + [StagePair(stage.name, stage.tasks, None) for stage in left]


def _tasks(outcome: Outcome, plan: PlanNode | None) -> list[StageTasks]:
    parts = {part.name: part for part in fragments(plan)} if plan else {}
    works: dict[int, tuple[str, ...]] = {}
    for part in parts.values():
        below = [text for read in part.inputs for text in works.get(id(read), ())]
        works[id(part)] = (*_operators(part), *below)
    tasks = []
    for stage in outcome.stages:
        owner = parts.get(stage.name)
        if stage.tasks and owner:
            work, operators = works[id(owner)], _operators(owner)
            tasks.append(StageTasks(stage.name, stage.tasks, work, operators, owner.kind))
        elif stage.tasks:
            tasks.append(StageTasks(stage.name, stage.tasks))
    return tasks


def _operators(part: Fragment) -> tuple[str, ...]:
    kinds = ((node, plan_text.kind(node.name)) for node in part.operators())
    return tuple(_operator(node, kind) for node, kind in kinds if kind not in _MOVING)


def _operator(node: PlanNode, kind: str) -> str:
    if "Scan" in kind:
        columns = plan_text.without_column_ids(plan_text.first_list(node.text))
        return f"Scan {plan_text.table(node.name, node.text)} {sorted(columns.split(', '))}"
    if kind.endswith("Aggregate"):
        terms = plan_text.without_column_ids(node.text.partition("(")[2])
        return f"Aggregate {_NUMBER.sub('?', terms)}"
    return kind


def main(
    scale: raw.Scale = 1.0,
    benchmarks: raw.Benchmarks = "tpch,tpcds",
    queries: Annotated[
        str,
        typer.Option(metavar="N,N,...", help="Queries to run of each benchmark. Default: all."),
    ] = "",
    rounds: Annotated[
        int, typer.Option(min=0, help="Measured runs per variant. 0 compares only tasks.")
    ] = 3,
    master: raw.Master = "local[*]",
    logs: raw.Logs = None,
    recorded: Annotated[
        list[Path] | None,
        typer.Option(help="Evaluate this log of an earlier run, and run nothing. Repeatable."),
    ] = None,
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Predict runs with Apportion from logs without it, and measure the errors."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = (logs or Path(scratch)).resolve()
        read = recorded or [_run(directory, scale, benchmarks, queries, rounds, master)]
        found: list[raw.Row] = []
        versions: list[str] = []
        for log in read:
            application = eventlog.read(log)
            found += rows(application)
            versions.append(application.spark_version)
    spark = ", ".join(dict.fromkeys(versions))
    about = {**raw.version("simulated"), "spark": spark, "scale": f"{scale:g}", "rounds": rounds}
    raw.write("plain-logs", about, found, folder)


def _run(
    directory: Path, scale: float, benchmarks: str, queries: str, rounds: int, master: str
) -> Path:
    """Run the benchmarks and return their event log."""
    directory.mkdir(parents=True, exist_ok=True)
    conf = CONF | raw.logging_to(directory)
    session = start(master, [f"{key}={value}" for key, value in conf.items()])
    id = session.sparkContext.applicationId
    numbers = {int(number) for number in queries.split(",") if number}
    for benchmark in SUITES:
        if benchmark in benchmarks.split(","):
            register(session, find_tables(tpc.generate(benchmark, scale, cache.directory())))
            texts = tpc.queries(benchmark)
            chosen = {number: texts[number] for number in texts if number in (numbers or texts)}
            for failure in record(session, benchmark, chosen, rounds):
                print(failure)
    session.stop()
    return directory / id
