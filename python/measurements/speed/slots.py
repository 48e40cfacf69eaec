"""Compare Apportion with fixed numbers of shuffle partitions on many emulated task slots.

    python -m measurements slots --slots 64,256

Spark runs with `local[64]` on the cores of this machine. The plugin `SlowTasks` makes each task
wait in proportion to the bytes that it read, so the tasks need slots but few cores. All sizes are
1/100 of the defaults of Spark and Apportion: a task of 640 KB stands for one of 64 MB.

The event log gives the waves, the idle slots and the longest tasks. The simulator predicts each
run from the log of Apportion's run on the first number of slots.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession

from apportion import eventlog
from apportion.bench.runner import rotated
from apportion.bench.variants import Variant
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.logs.simulate.fit import fit
from apportion.logs.simulate.replay import replay
from apportion.logs.simulate.scenarios import Scenario
from apportion.logs.simulate.workload import LoggedStage, Workload, workload
from apportion.session import confs
from apportion.settings import ENABLED
from measurements import raw
from measurements.speed.slow_tasks import plugin

_KB = 1000
_MAP_TASKS = 128
_PARTITIONS = "spark.sql.shuffle.partitions"
_COALESCE = "spark.sql.adaptive.coalescePartitions"
BYTES_PER_SECOND = 100 * _KB
"""Bytes that a task reads per second: 10 MB at full size."""
SCALED = {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": f"{640 * _KB}b",
    f"{_COALESCE}.minPartitionSize": f"{10 * _KB}b",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": f"{2560 * _KB}b",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.apportion.minTaskVolume": f"{10 * _KB}b",
}
"""Sizes of Spark and Apportion, divided by 100. Joins are joins of two shuffles."""
APPORTION = "Apportion"
VARIANTS = [
    Variant("Spark", {ENABLED: "false"}),
    Variant(APPORTION, {ENABLED: "true"}),
    *(
        Variant(
            f"fixed {count}",
            {ENABLED: "false", _PARTITIONS: str(count), f"{_COALESCE}.enabled": "false"},
        )
        for count in (16, 64, 200, 1024)
    ),
]


def _rows(megabytes: float) -> str:
    """Return rows of about 500 bytes that do not compress: their text is hashes."""
    text = ", ".join(f"unhex(sha2(concat(id, '{n}'), 512))" for n in range(7))
    count = round(megabytes * 2000)
    return f"(SELECT id, concat({text}) AS text FROM range(0, {count}, 1, {_MAP_TASKS}))"


def _window(megabytes: float) -> str:
    return (
        # By the text, so that the shuffle has it.
        "SELECT *, row_number() OVER (PARTITION BY k ORDER BY text) AS place FROM "
        f"(SELECT *, id DIV 4 AS k FROM {_rows(megabytes)})"
    )


_HOT = "if(id % 4 = 0, 0, id)"
QUERIES = {
    "small": _window(1),
    "medium": _window(20),
    "large": _window(100),
    "skewed join": f"SELECT a.*, b.k AS other FROM (SELECT *, {_HOT} AS k FROM {_rows(40)}) a "
    "JOIN (SELECT id AS k FROM range(0, 80000, 1, 8)) b ON a.k = b.k AND length(a.text) > b.k % 7",
    "large, then small": "SELECT k DIV 100 AS g, max(text) AS text, sum(place) AS n FROM "
    f"({_window(40)}) GROUP BY 1",
}


def session(slots: int, classes: Path, logs: Path, disk: Path) -> SparkSession:
    """Start Spark with task slots that wait. Shuffles are written to `disk`."""
    conf = {
        **SCALED,
        "spark.local.dir": str(disk),
        "spark.driver.memory": "4g",
        **plugin(classes, BYTES_PER_SECOND),
        **raw.logging_to(logs),
    }
    return start(f"local[{slots}]", [f"{key}={value}" for key, value in conf.items()])


def record(spark: SparkSession, queries: Sequence[str], rounds: int) -> None:
    """Run the queries. The description of a run is `VARIANT/QUERY/ROUND`; 0 is the warm-up."""
    for query in counted(queries):
        for number in range(rounds + 1):
            for variant in rotated(VARIANTS, number):
                with confs(spark, variant.conf):
                    name = f"{variant.name}/{query}/{number}"
                    spark.sparkContext.setJobDescription(name)
                    spark.sql(QUERIES[query]).write.format("noop").mode("overwrite").save()


Runs = dict[tuple[str, str, int], Workload]
"""Runs by variant, query and round."""


def read_runs(folder: Path) -> Runs:
    """Return the measured runs of the logs in a folder. Later logs replace runs of earlier ones."""
    runs: Runs = {}
    ids = itertools.count()
    for log in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime):
        application = eventlog.read(log)
        for query in application.queries.values():
            variant, name, number = [*query.description.split("/"), "", ""][:3]
            if number.isdecimal() and int(number) and (run := workload(application, query)):
                # Two logs can have the same ids, by which the simulator tells queries apart.
                runs[variant, name, int(number)] = dataclasses.replace(run, query=next(ids))
    return runs


def measures(run: Workload) -> dict[str, object]:
    """Return the tasks, waves, idle slots and longest task of the stages that read shuffles."""
    reading = [stage for stage in run.stages if stage.reads_shuffle]
    held = sum(sum(stage.seconds) for stage in reading)
    spans = sum(_span(stage) for stage in reading)
    largest = max(reading, key=lambda stage: sum(stage.seconds))
    return {
        "seconds": f"{run.seconds:.3f}",
        "tasks": sum(len(stage.seconds) for stage in reading),
        "waves": sum(math.ceil(len(stage.seconds) / run.slots) for stage in reading),
        # Tasks of two slots can overlap by the time that a slot takes to start the next one.
        "idle": f"{max(0, 1 - held / (run.slots * spans)):.3f}",
        "longest": f"{max(largest.seconds):.3f}",
        "median": f"{statistics.median(largest.seconds):.3f}",
    }


def _span(stage: LoggedStage) -> float:
    ends = (begin + seconds for begin, seconds in zip(stage.starts, stage.seconds, strict=True))
    return max(ends) - min(stage.starts)


def rows(by_slots: dict[int, Runs]) -> Iterator[dict[str, object]]:
    """Yield a row for each run, with the time that the simulator predicts."""
    first = next(iter(by_slots.values()))
    logged = {query: run for (variant, query, n), run in first.items() if (variant, n) == _LOGGED}
    model = fit(list(logged.values()))
    for slots, runs in by_slots.items():
        for (variant, query, number), run in runs.items():
            conf = next(each.conf for each in VARIANTS if each.name == variant)
            scenario = Scenario(variant, conf, slots=slots)
            predicted = replay(logged[query], model, scenario)
            row = {"slots": slots, "query": query, "variant": variant, "run": number}
            of_run = {
                "predicted": f"{predicted.makespan:.3f}",
                "predicted_tasks": sum(
                    outcome.tasks
                    for outcome, stage in zip(predicted.stages, logged[query].stages, strict=False)
                    if stage.reads_shuffle
                ),
            }
            yield {**row, **measures(run), **of_run}


_LOGGED = (APPORTION, 1)
"""Variant and round from which all other runs are predicted."""


def main(
    slots: Annotated[str, typer.Option(metavar="N,N,...", help="Task slots.")] = "64,256",
    queries: Annotated[str, typer.Option(metavar="NAME;...", help="Queries to run.")] = ";".join(
        QUERIES
    ),
    rounds: raw.Rounds = 2,
    disk: raw.Disk = Path("/dev/shm"),
    logs: raw.Logs = None,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Read the logs, run nothing.")
    ] = False,
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Emulate many task slots: Apportion beside Spark and fixed numbers of partitions."""
    counts = [int(count) for count in slots.split(",")]
    conditions: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        kept = (logs or Path(scratch)).resolve()
        for count in counts:
            where = kept / str(count)
            where.mkdir(parents=True, exist_ok=True)
            if not recorded:
                spark = session(count, Path(scratch), where, disk)
                conditions = raw.conditions(
                    spark, "emulated", rounds=rounds, bytes_per_second=BYTES_PER_SECOND,
                    map_tasks=_MAP_TASKS, heap="4g", disk=disk,
                )  # fmt: skip
                conditions["master"] = " and ".join(f"local[{each}]" for each in counts)
                record(spark, [query.strip() for query in queries.split(";")], rounds)
                spark.stop()
        if recorded:
            conditions = dict(raw.read("slots", folder).conditions)
        runs = {count: read_runs(kept / str(count)) for count in counts}
        raw.write("slots", conditions, list(rows(runs)), folder)
