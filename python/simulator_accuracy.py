"""Measures how far simulations can be believed.

TPC-H is logged in one configuration, predicted for others, and measured in these:

    python python/simulator_accuracy.py docs/simulator-accuracy.md --scale 1
"""

from __future__ import annotations

import dataclasses
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
from apportion.cli.support.tables import find_tables, register
from apportion.session import confs
from apportion.settings import ENABLED
from apportion.simulate.fit import Model, fit
from apportion.simulate.replay import Outcome, measured, replay
from apportion.simulate.scenarios import Scenario
from apportion.simulate.workload import Workload, workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COALESCE = "spark.sql.adaptive.coalescePartitions"
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_VOLUME = "spark.apportion.dataVolumePerTask"

# What all configurations have in common: as many subpartitions with Apportion and without, so that
# the sizes of one are those of the other, and the scans that Spark makes.
COMMON = {
    "spark.sql.shuffle.partitions": "128",
    "spark.apportion.subpartitions": "spark",
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
    """A query in a configuration: seconds of its fastest runs, and the tasks of each stage.

    What else goes on makes runs slower and none faster, so that the fastest are compared.
    """

    query: str
    logged: float
    predicted: float
    measured: float
    spread: float
    """How much longer its slowest run took than its fastest one, as a part of that."""
    predicted_tasks: list[int]
    measured_tasks: list[int]

    @property
    def error(self) -> float:
        """What the prediction is off, as a part of what was measured."""
        return abs(self.predicted - self.measured) / self.measured

    @property
    def is_exact(self) -> bool:
        """Whether all stages have the tasks that were predicted."""
        return sorted(self.predicted_tasks) == sorted(self.measured_tasks)


def record(spark: SparkSession, queries: dict[str, str], rounds: int) -> None:
    """Run queries in all configurations, in turns, each described as `QUERY CONFIGURATION ROUND`.

    Round 0 warms up. The session has to write an event log.
    """
    context = spark.sparkContext
    for query in counted(list(queries)):
        for number in range(rounds + 1):
            for variant in rotated([LOGGED, *PREDICTED], number):
                with confs(spark, variant.conf):
                    context.setJobDescription(f"{query} {variant.name} {number}")
                    spark.sql(queries[query]).write.format("noop").mode("overwrite").save()


def evaluate(log: Path) -> dict[str, list[Prediction]]:
    """Return the predictions for each configuration from a log that `record` has written."""
    application = eventlog.read(log)
    runs: dict[tuple[str, str], list[Workload]] = {}
    for query in application.queries.values():
        name, configuration, number = [*query.description.split(" "), "", "", ""][:3]
        if not number.isdecimal() or int(number) == 0:
            continue
        if found := workload(application, query):
            runs.setdefault((name, configuration), []).append(found)
    for rounds in runs.values():
        rounds.sort(key=lambda each: each.seconds)
    logged = {name: each[0] for (name, where), each in runs.items() if where == LOGGED.name}
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
    """Return the results as a page of Markdown."""
    return "\n".join(_page(results, environment, scale, rounds)) + "\n"


def _page(
    results: dict[str, list[Prediction]], environment: Environment, scale: float, rounds: int
) -> Iterator[str]:
    yield "# How accurate simulations are"
    yield ""
    yield (
        f"TPC-H at scale factor {scale:g}, on Spark {environment.spark} ({environment.master}, "
        f"{environment.cores} cores). Each query was logged with Apportion, with 4 MB a task, and"
    )
    yield (
        "[`apportion simulate`](simulating.md) predicted from that what it would do in other "
        "configurations. It then ran in these. The fastest of"
    )
    yield (
        f"{rounds} rounds, after one to warm up, are compared. `make bench-simulate SF={scale:g}` "
        "writes this page anew."
    )
    yield ""
    yield (
        "`spread` is by how much longer the slowest round of a query took than its fastest: the "
        "median of the queries."
    )
    yield ""
    yield "| configuration | is set | median error | largest | spread | queries with these tasks |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for variant in PREDICTED:
        found = results[variant.name]
        errors = [each.error for each in found]
        changed = ", ".join(f"`{key}={value}`" for key, value in variant.conf.items())
        exact = sum(each.is_exact for each in found)
        yield (
            f"| {variant.name} | {changed} | {statistics.median(errors):.1%} | {max(errors):.1%} "
            f"| {statistics.median(each.spread for each in found):.1%} | {exact} of {len(found)} |"
        )
    yield ""
    common = ", ".join(f"`{key}={value}`" for key, value in COMMON.items())
    yield f"In all of them: {common}, unless the table says otherwise."
    for variant in PREDICTED:
        yield ""
        yield f"## {variant.name}"
        yield ""
        yield "| query | logged, s | predicted, s | measured, s | error | tasks predicted | ran |"
        yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
        for each in results[variant.name]:
            yield (
                f"| {each.query} | {each.logged:.2f} | {each.predicted:.2f} | {each.measured:.2f} "
                f"| {each.error:.1%} | {sum(each.predicted_tasks):,} "
                f"| {sum(each.measured_tasks):,} |"
            )


def main(
    file: Annotated[Path, typer.Argument(help="The page to write.")],
    scale: Annotated[float, typer.Option(help="TPC-H's scale factor.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Measured runs of each configuration.")] = 3,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    logs: Annotated[Path | None, typer.Option(help="Keep the event log in this directory.")] = None,
) -> None:
    """Log TPC-H, predict other configurations, measure them, and write how far off it was."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = (logs or Path(scratch)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        logging = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": directory.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            # Hundreds of queries in one JVM, some with large broadcasts.
            "spark.driver.memory": "4g",
        }
        session = start(master, [f"{key}={value}" for key, value in {**COMMON, **logging}.items()])
        environment = Environment.of(session)
        register(session, find_tables(tpc.generate("tpch", scale, cache.directory())))
        texts = {str(number): text for number, text in tpc.queries("tpch").items()}
        id = session.sparkContext.applicationId
        record(session, texts, rounds)
        session.stop()
        results = evaluate(directory / id)
    file.write_text(page(results, environment, scale, rounds), "utf-8")
    for name, found in results.items():
        print(f"{name}: median error {statistics.median(each.error for each in found):.1%}")


if __name__ == "__main__":
    typer.run(main)
