"""Measure how accurate simulations from logs of plain Spark are.

    python python/measurements/plain_logs.py docs/plain-log-accuracy.md --scale 1

runs TPC-H and TPC-DS with Apportion off and on, with its default settings. The runs without it are
the log, and the runs with it show how right the predictions are. It writes a page with the summary,
and `measurements/plain-log-accuracy.csv` beside it with all queries.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion import eventlog
from apportion._util import cache
from apportion.bench.runner import rotated
from apportion.bench.suites import tpc
from apportion.bench.variants import Variant
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
from apportion.settings import ENABLED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUITES: dict[tpc.Benchmark, str] = {"tpch": "TPC-H", "tpcds": "TPC-DS"}
OFF, ON = Variant("off", {ENABLED: "false"}), Variant("on", {ENABLED: "true"})
# Hundreds of queries run in one JVM, some with large broadcasts.
CONF = {"spark.driver.memory": "4g"}
CSV = "measurements/plain-log-accuracy.csv"
"""File with all queries, relative to the folder of the page."""

_EXACT, _WITHIN_2 = 0.90, 0.99
_MEDIAN, _LARGEST = 0.15, 0.50
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


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Query with Apportion, predicted from its run without. Seconds are of the fastest runs."""

    benchmark: tpc.Benchmark
    query: str
    logged: float
    predicted: float
    measured: float
    spread: float
    """Time of the slowest run divided by the time of the fastest run, less 1."""
    is_timed: bool
    """Whether it ran after a warm-up. Otherwise, only its tasks are compared."""
    stages: list[StagePair]
    """The stages of the measured run, and stages that only the prediction has."""

    @property
    def error(self) -> float:
        """Error of the predicted time, as a part of the measured time."""
        return abs(self.predicted - self.measured) / self.measured


def record(
    spark: SparkSession, benchmark: tpc.Benchmark, queries: Mapping[int, str], rounds: int
) -> Iterator[str]:
    """Run queries with Apportion off and on, alternating. Yield the failures.

    The job description of a run is `BENCHMARK QUERY VARIANT ROUND`. Round 0 is the warm-up. The
    session must write an event log.
    """
    from pyspark.errors import PySparkException

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


def evaluate(application: Application) -> list[Prediction]:
    """Return the predictions for each query of a log that `record` wrote."""
    runs: dict[tuple[tpc.Benchmark, str], dict[str, list[_Run]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for query in application.queries.values():
        suite, name, variant, number = [*query.description.split(" "), "", "", "", ""][:4]
        benchmark = next((each for each in SUITES if each == suite), None)
        if not (benchmark and number.isdecimal()) or query.failure:
            continue
        if ran := workload(application, query):
            runs[benchmark, name][variant].append(_Run(ran, query.plan, int(number) > 0))
    complete = {key: sides for key, sides in runs.items() if {OFF.name, ON.name} <= sides.keys()}
    for sides in complete.values():
        for variant, rounds in sides.items():
            sides[variant] = rounds = [run for run in rounds if run.is_warm] or rounds
            # The fastest runs are compared, because background load only makes runs slower.
            rounds.sort(key=lambda run: run.workload.seconds)
    model = fit([sides[OFF.name][0].workload for sides in complete.values()]) if complete else None
    return [
        _predicted(key, sides[OFF.name][0], sides[ON.name], model)
        for key, sides in complete.items()
        if model
    ]


def _predicted(
    key: tuple[tpc.Benchmark, str], logged: _Run, rounds: Sequence[_Run], model: Model
) -> Prediction:
    predicted = replay(logged.workload, model, Scenario(ON.name, ON.conf))
    fastest, slowest = rounds[0], rounds[-1]
    return Prediction(
        benchmark=key[0],
        query=key[1],
        logged=logged.workload.seconds,
        predicted=predicted.makespan,
        measured=fastest.workload.seconds,
        spread=slowest.workload.seconds / fastest.workload.seconds - 1,
        is_timed=logged.is_warm and fastest.is_warm,
        stages=pairs(
            _tasks(predicted, logged.plan), _tasks(measured(fastest.workload), fastest.plan)
        ),
    )


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


@dataclasses.dataclass(frozen=True)
class Part:
    """Queries of a benchmark in one log."""

    benchmark: tpc.Benchmark
    master: str
    heap: str
    """`spark.driver.memory`"""
    spark: str
    predictions: list[Prediction]

    @property
    def timed(self) -> list[Prediction]:
        """The queries whose times are compared."""
        return [each for each in self.predictions if each.is_timed]

    @property
    def stages(self) -> list[StagePair]:
        return [pair for each in self.predictions for pair in each.stages]


def parts(application: Application) -> list[Part]:
    """Return the benchmarks of a log that `record` wrote."""
    predictions = evaluate(application)
    master = application.conf.get("spark.master", "")
    heap = application.conf.get("spark.driver.memory", "1g")
    return [
        Part(benchmark, master, heap, application.spark_version, of_benchmark)
        for benchmark in SUITES
        if (of_benchmark := [each for each in predictions if each.benchmark == benchmark])
    ]


def page(measured: Sequence[Part], scale: float, note: str = "") -> str:
    """Return the results as a Markdown page. `note` is about the conditions."""
    return "\n".join(_page(measured, scale, note)) + "\n"


def _page(measured: Sequence[Part], scale: float, note: str) -> Iterator[str]:
    stages = [pair for part in measured for pair in part.stages]
    timed = [each for part in measured for each in part.timed]
    exact = sum(pair.is_exact for pair in stages) / len(stages)
    yield "# Accuracy from logs of plain Spark"
    yield ""
    yield (
        "[`apportion simulate`](simulating.md#logs-without-apportion) predicted Apportion's "
        f"default settings from logs without it. {exact:.1%} of the numbers of tasks are right."
    )
    if timed:
        errors = [each.error for each in timed]
        yield (
            f"The median error of the times is {statistics.median(errors):.1%}, the largest "
            f"{max(errors):.1%}."
        )
    yield ""
    versions = ", ".join(dict.fromkeys(part.spark for part in measured))
    yield (
        f"The queries ran at scale factor {scale:g} on Spark {versions}, with Apportion off and "
        "on. The fastest runs after a warm-up are compared."
    )
    if note:
        yield note
    yield f"`make measure-plain-logs SF={scale:g}` writes this page."
    yield ""
    yield (
        "| benchmark, master, heap | queries | stages | exact | within a factor of 2 "
        "| median error | largest | spread |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    yield from map(_row, measured)
    yield (
        f"| target | | | {_EXACT:.0%} | {_WITHIN_2:.0%} | at most {_MEDIAN:.0%} | at most "
        f"{_LARGEST:.0%} | |"
    )
    yield ""
    yield (
        "*Exact* and *within a factor of 2* are shares of the stages. A stage that only one of the "
        "plans has counts as wrong. *Error* is of the predicted time. It is empty for queries that "
        "ran once."
    )
    yield (
        "*Spread* shows how much the measured times themselves vary: the slowest run of a query "
        "took that much longer than the fastest (median of the queries)."
    )
    yield ""
    yield f"[{Path(CSV).name}]({CSV}) has the times and tasks of each query."
    if timed:
        yield ""
        yield "## Largest errors"
        yield ""
        wrong = sum(each.error > _LARGEST for each in timed)
        yield f"{wrong} of {len(timed)} queries have an error above {_LARGEST:.0%}."
        yield ""
        yield "| query | without Apportion, s | predicted, s | measured, s | error | spread |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for each in sorted(timed, key=lambda each: -each.error)[:10]:
            yield (
                f"| {SUITES[each.benchmark]} {each.query} | {each.logged:.2f} "
                f"| {each.predicted:.2f} | {each.measured:.2f} | {each.error:.0%} "
                f"| {each.spread:.0%} |"
            )


def _row(part: Part) -> str:
    stages, timed = part.stages, part.timed
    times = ["", "", ""]
    if timed:
        times = [
            f"{statistics.median(each.error for each in timed):.1%}",
            f"{max(each.error for each in timed):.1%}",
            f"{statistics.median(each.spread for each in timed):.1%}",
        ]
    cells = [
        f"{SUITES[part.benchmark]}, `{part.master}`, {part.heap}",
        f"{len(part.predictions)}",
        f"{len(stages):,}",
        f"{sum(pair.is_exact for pair in stages) / len(stages):.1%}",
        f"{sum(pair.is_within_2 for pair in stages) / len(stages):.1%}",
        *times,
    ]
    return f"| {' | '.join(cells)} |"


def predictions_csv(measured: Sequence[Part]) -> str:
    """Return the predictions as CSV, one line each. Times are in seconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["benchmark", "master", "heap", "query", "logged", "predicted", "measured", "error",
         "spread", "stages", "exact", "within_2", "wrong_stages"]
    )  # fmt: skip
    for part in measured:
        for each in part.predictions:
            seconds = (each.logged, each.predicted, each.measured)
            times = [
                *(f"{time:.2f}" for time in seconds),
                f"{each.error:.3f}",
                f"{each.spread:.3f}",
            ]
            wrong = [
                f"{pair.name}: {pair.predicted or 0} not {pair.measured or 0}"
                for pair in each.stages
                if not pair.is_exact
            ]
            counts = [
                len(each.stages),
                sum(pair.is_exact for pair in each.stages),
                sum(pair.is_within_2 for pair in each.stages),
            ]
            shown = times if each.is_timed else [""] * len(times)
            name = [each.benchmark, part.master, part.heap, each.query]
            writer.writerow([*name, *shown, *counts, "; ".join(wrong)])
    return text.getvalue()


def _chosen(benchmark: tpc.Benchmark, numbers: Collection[int]) -> dict[int, str]:
    queries = tpc.queries(benchmark)
    return {number: text for number, text in queries.items() if not numbers or number in numbers}


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    scale: Annotated[float, typer.Option(help="Scale factor of the tables.")] = 1.0,
    benchmarks: Annotated[
        str, typer.Option(help="Benchmarks to run: tpch, tpcds or both.")
    ] = "tpch,tpcds",
    queries: Annotated[
        str,
        typer.Option(metavar="N,N,...", help="Queries to run of each benchmark. Default: all."),
    ] = "",
    rounds: Annotated[
        int, typer.Option(min=0, help="Measured runs per variant. 0 compares only tasks.")
    ] = 3,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    logs: Annotated[Path | None, typer.Option(help="Keep the event log in this directory.")] = None,
    recorded: Annotated[
        list[Path] | None,
        typer.Option(help="Evaluate this log of an earlier run, and run nothing. Repeatable."),
    ] = None,
    note: Annotated[str, typer.Option(help="Sentences about the conditions, for the page.")] = "",
) -> None:
    """Run TPC-H and TPC-DS with Apportion off and on, and write the errors of the predictions."""
    with tempfile.TemporaryDirectory() as scratch:
        read = recorded or [
            _run(
                (logs or Path(scratch)).resolve(), scale, benchmarks.split(","),
                {int(number) for number in queries.split(",") if number}, rounds, master,
            )
        ]  # fmt: skip
        found = [part for log in read for part in parts(eventlog.read(log))]
    file.write_text(page(found, scale, note), "utf-8")
    (file.parent / CSV).parent.mkdir(exist_ok=True)
    (file.parent / CSV).write_text(predictions_csv(found), "utf-8")
    for part in found:
        print(_row(part))


def _run(
    directory: Path,
    scale: float,
    benchmarks: Collection[str],
    numbers: Collection[int],
    rounds: int,
    master: str,
) -> Path:
    """Run the benchmarks and return their event log."""
    directory.mkdir(parents=True, exist_ok=True)
    logging = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    session = start(master, [f"{key}={value}" for key, value in (CONF | logging).items()])
    id = session.sparkContext.applicationId
    for benchmark in SUITES:
        if benchmark in benchmarks:
            register(session, find_tables(tpc.generate(benchmark, scale, cache.directory())))
            for failure in record(session, benchmark, _chosen(benchmark, numbers), rounds):
                print(failure)
    session.stop()
    return directory / id


if __name__ == "__main__":
    typer.run(main)
