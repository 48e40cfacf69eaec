"""Measure the driver with very many map tasks: its time and its heap, with Apportion and without.

    python -m measurements driver --map-tasks 100000

Each map task writes a few rows, so the time is that of the driver and of starting tasks. The heap
is counted after a garbage collection, while the shuffle is still registered. Spark writes sorted
files (`bypassMergeThreshold=1`): its default opens 200 files in each map task.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession

from apportion._spark import jvm
from apportion.bench.measure import job_group
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.session import confs
from apportion.settings import ENABLED
from measurements import raw

VARIANTS = {"Spark": {ENABLED: "false"}, "Apportion": {ENABLED: "true"}}
_ROWS_PER_TASK = 10
_WARM_UP = 1000


def _heap(spark: SparkSession) -> int:
    """Return the bytes of live objects in the driver."""
    java: Any = spark._jvm
    runtime = java.java.lang.Runtime.getRuntime()
    # Objects behind weak references and cleaners need two collections.
    for _ in range(2):
        java.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _run(spark: SparkSession, map_tasks: int) -> dict[str, object]:
    sql = (
        "SELECT key, count(*) AS n FROM "
        f"(SELECT id * 7 AS key FROM range(0, {map_tasks * _ROWS_PER_TASK}, 1, {map_tasks})) "
        "GROUP BY key"
    )
    before = _heap(spark)
    began = time.perf_counter()
    with job_group(spark) as group:
        frame = spark.sql(sql)
        jvm.execute(frame)
    seconds = time.perf_counter() - began
    # The frame keeps the shuffle.
    held = _heap(spark) - before
    stages = jvm.stage_metrics(spark, group)
    return {
        "seconds": f"{seconds:.1f}",
        "task_seconds": f"{sum(stage['taskMillis'] for stage in stages) / 1000:.1f}",
        "heap": held,
    }


def main(
    map_tasks: Annotated[int, typer.Option(min=1, help="Map tasks of the query.")] = 100_000,
    rounds: raw.Rounds = 1,
    master: raw.Master = "local[*]",
    memory: raw.Memory = "4g",
    disk: raw.Disk = Path("/dev/shm"),
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Measure time and heap of the driver with very many map tasks."""
    conf = {
        "spark.driver.memory": memory,
        "spark.local.dir": str(disk),
        "spark.shuffle.sort.bypassMergeThreshold": "1",
    }
    spark = start(master, [f"{key}={value}" for key, value in conf.items()])
    jvm.watch_stages(spark)
    rows: list[raw.Row] = []
    for number in range(rounds + 1):
        for name in counted(list(VARIANTS), "Variant"):
            with confs(spark, VARIANTS[name]):
                found = _run(spark, map_tasks if number else _WARM_UP)
            if number:
                rows.append({"variant": name, "run": number, "map_tasks": map_tasks, **found})
    about = raw.conditions(spark, "measured", rounds=rounds, heap=memory, disk=disk)
    spark.stop()
    raw.write("driver", about, rows, folder)
