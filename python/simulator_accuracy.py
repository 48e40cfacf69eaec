"""Measure how accurate simulations are.

    python python/simulator_accuracy.py docs/simulator-accuracy.md --scale 1

logs TPC-H in one configuration, predicts others, and measures them. It writes a page with the
summary, and `measurements/simulator-accuracy.csv` beside it with all queries.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion import eventlog
from apportion._util import cache
from apportion.bench.environment import Environment
from apportion.bench.runner import rotated
from apportion.bench.suites import tpc
from apportion.bench.variants import Variant
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.logs.simulate.fit import Model, fit
from apportion.logs.simulate.replay import Outcome, measured, replay
from apportion.logs.simulate.scenarios import Scenario
from apportion.logs.simulate.workload import Workload, workload
from apportion.session import confs
from apportion.settings import ENABLED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COALESCE = "spark.sql.adaptive.coalescePartitions"
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_VOLUME = "spark.apportion.dataVolumePerTask"

CSV = "measurements/simulator-accuracy.csv"
"""File with all queries, relative to the folder of the page."""

# All configurations have the same number of shuffle partitions, and Spark's own scans.
COMMON = {
    "spark.sql.shuffle.partitions": "128",
    "spark.apportion.sources.enabled": "false",
    "spark.apportion.mode": "active",
    _VOLUME: "4MB",
}
LOGGED = Variant("logged", {ENABLED: "true"})
PREDICTED = [
    Variant("spark", {ENABLED: "false"}),
    Variant(
        "spark-size",
        {ENABLED: "false", f"{_COALESCE}.parallelismFirst": "false", _ADVISORY: "1MB"},
    ),
    Variant("smaller", {ENABLED: "true", _VOLUME: "512KB"}),
    Variant("balanced", {ENABLED: "true", _VOLUME: "1MB", "spark.apportion.ranges": "balanced"}),
]


@dataclasses.dataclass(frozen=True)
class Prediction:
    """Query in a configuration: seconds of its fastest runs, and the tasks of each stage.

    The fastest runs are compared, because background load only makes runs slower.
    """

    query: str
    logged: float
    predicted: float
    measured: float
    spread: float
    """Time of the slowest run divided by the time of the fastest run, less 1."""
    predicted_tasks: list[int]
    measured_tasks: list[int]

    @property
    def error(self) -> float:
        """Error of the predicted time, as a part of the measured time."""
        return abs(self.predicted - self.measured) / self.measured

    @property
    def is_exact(self) -> bool:
        """Whether all stages have the predicted numbers of tasks."""
        return sorted(self.predicted_tasks) == sorted(self.measured_tasks)


def record(spark: SparkSession, queries: dict[str, str], rounds: int) -> None:
    """Run queries in all configurations, alternating.

    The job description of a run is `QUERY CONFIGURATION ROUND`. Round 0 is the warm-up. The session
    must write an event log.
    """
    context = spark.sparkContext
    for query in counted(list(queries)):
        for number in range(rounds + 1):
            for variant in rotated([LOGGED, *PREDICTED], number):
                with confs(spark, variant.conf):
                    context.setJobDescription(f"{query} {variant.name} {number}")
                    spark.sql(queries[query]).write.format("noop").mode("overwrite").save()


def evaluate(log: Path) -> dict[str, list[Prediction]]:
    """Return the predictions for each configuration, from a log written by `record`."""
    application = eventlog.read(log)
    runs: dict[tuple[str, str], list[Workload]] = {}
    for query in application.queries.values():
        name, configuration, number = [*query.description.split(" "), "", "", ""][:3]
        if not number.isdecimal() or int(number) == 0:
            continue
        if run := workload(application, query):
            runs.setdefault((name, configuration), []).append(run)
    for rounds in runs.values():
        rounds.sort(key=lambda run: run.seconds)
    logged = {name: rounds[0] for (name, where), rounds in runs.items() if where == LOGGED.name}
    model = fit(list(logged.values()))
    return {
        variant.name: [
            _predicted(name, each, runs[name, variant.name], model, variant)
            for name, each in logged.items()
            if (name, variant.name) in runs
        ]
        for variant in PREDICTED
    }


def _predicted(
    query: str, logged: Workload, ran: Sequence[Workload], model: Model, variant: Variant
) -> Prediction:
    predicted = replay(logged, model, Scenario(variant.name, variant.conf))
    return Prediction(
        query=query,
        logged=logged.seconds,
        predicted=predicted.makespan,
        measured=ran[0].seconds,
        spread=ran[-1].seconds / ran[0].seconds - 1,
        predicted_tasks=_tasks(predicted),
        measured_tasks=_tasks(measured(ran[0])),
    )


def _tasks(outcome: Outcome) -> list[int]:
    return [stage.tasks for stage in outcome.stages if stage.tasks]


def page(
    results: dict[str, list[Prediction]], environment: Environment, scale: float, rounds: int
) -> str:
    """Return the results as a Markdown page."""
    return "\n".join(_page(results, environment, scale, rounds)) + "\n"


def _page(
    results: dict[str, list[Prediction]], environment: Environment, scale: float, rounds: int
) -> Iterator[str]:
    errors = {name: [each.error for each in results[name]] for name in results}
    medians = [statistics.median(of_variant) for of_variant in errors.values()]
    yield "# Accuracy of simulations"
    yield ""
    yield (
        "[`apportion simulate`](simulating.md) predicted the times of TPC-H in "
        f"{len(PREDICTED)} configurations. The median error of a configuration is "
        f"{min(medians):.1%} to {max(medians):.1%}."
    )
    yield (
        "The largest error of a query is "
        f"{max(max(of_variant) for of_variant in errors.values()):.1%}."
    )
    yield ""
    yield (
        f"TPC-H ran at scale factor {scale:g} on Spark {environment.spark} ({environment.master}, "
        f"{environment.cores} cores)."
    )
    yield ""
    yield "1. Each query was logged with Apportion, with a target size of 4 MB per task."
    yield "2. The simulation predicted its time and tasks in other configurations, from this log."
    yield "3. The query ran in these configurations."
    yield ""
    yield (
        f"The fastest of {rounds} rounds, after one warm-up round, are compared. "
        f"`make bench-simulate SF={scale:g}` writes this page."
    )
    yield ""
    yield "| configuration | settings | median error | largest | spread | exact tasks |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for variant in PREDICTED:
        of_variant = results[variant.name]
        changed = ", ".join(f"`{key}={value}`" for key, value in variant.conf.items())
        exact = sum(each.is_exact for each in of_variant)
        yield (
            f"| {variant.name} | {changed} | {statistics.median(errors[variant.name]):.1%} "
            f"| {max(errors[variant.name]):.1%} "
            f"| {statistics.median(each.spread for each in of_variant):.1%} "
            f"| {exact} of {len(of_variant)} |"
        )
    yield ""
    yield (
        "*Spread* shows how much the measured times themselves vary: the slowest round of a query "
        "took that much longer"
    )
    yield (
        "than the fastest (median of the queries). *Exact tasks* counts the queries whose stages "
        "all have the predicted number of tasks."
    )
    yield ""
    yield f"[{Path(CSV).name}]({CSV}) has the times and tasks of each query."
    yield ""
    yield "All configurations also set, unless the table says otherwise:"
    yield ""
    yield from (f"- `{key}={value}`" for key, value in COMMON.items())


def predictions_csv(results: dict[str, list[Prediction]]) -> str:
    """Return the predictions as CSV, one line each. Times are in seconds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["configuration", "query", "logged", "predicted", "measured", "error", "predicted_tasks",
         "measured_tasks"]
    )  # fmt: skip
    for configuration, predictions in results.items():
        for each in predictions:
            times = [f"{time:.2f}" for time in (each.logged, each.predicted, each.measured)]
            tasks = [sum(each.predicted_tasks), sum(each.measured_tasks)]
            writer.writerow([configuration, each.query, *times, f"{each.error:.3f}", *tasks])
    return text.getvalue()


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    scale: Annotated[float, typer.Option(help="Scale factor of TPC-H.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Measured runs per configuration.")] = 3,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    logs: Annotated[Path | None, typer.Option(help="Keep the event log in this directory.")] = None,
) -> None:
    """Log TPC-H in one configuration, predict others, measure them, and write the errors."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = (logs or Path(scratch)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        logging = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": directory.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            # Hundreds of queries run in one JVM, some with large broadcasts.
            "spark.driver.memory": "4g",
        }
        session = start(master, [f"{key}={value}" for key, value in {**COMMON, **logging}.items()])
        environment = Environment.from_session(session)
        register(session, find_tables(tpc.generate("tpch", scale, cache.directory())))
        texts = {str(number): text for number, text in tpc.queries("tpch").items()}
        id = session.sparkContext.applicationId
        record(session, texts, rounds)
        session.stop()
        results = evaluate(directory / id)
    file.write_text(page(results, environment, scale, rounds), "utf-8")
    (file.parent / CSV).parent.mkdir(exist_ok=True)
    (file.parent / CSV).write_text(predictions_csv(results), "utf-8")
    for name, predictions in results.items():
        print(f"{name}: median error {statistics.median(each.error for each in predictions):.1%}")


if __name__ == "__main__":
    typer.run(main)
