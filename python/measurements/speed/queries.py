"""Time queries with Apportion, Spark's defaults and fixed numbers of shuffle partitions.

    python -m measurements queries tpch --scale 10
    python -m measurements queries tpch --scale 100 --master yarn --data /shared/tpch --folder mine

The variants alternate in one session. The raw file has each run, and the table goes to the
terminal. A stopped run continues.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession

from apportion._util import cache
from apportion.bench import suites
from apportion.bench.environment import Environment
from apportion.bench.results import Conditions, Results, resume
from apportion.bench.runner import rotated, run_query, warm_up
from apportion.bench.suites import Suite
from apportion.bench.variants import Variant
from apportion.cli.support.console import out
from apportion.cli.support.progress import counted, waiting
from apportion.cli.support.spark_session import start
from apportion.cli.support.table_files import find_tables, register
from apportion.errors import ApportionError
from apportion.settings import ENABLED
from measurements import raw
from measurements.speed.summary import Speed

FIXED = "2,8,16,32,64,128,256,512,1024"
MAP_TASKS = (8, 64, 400, 2000)
_MAP_ROWS = 1_000_000
BYPASS = "spark.shuffle.sort.bypassMergeThreshold"
HASH_JOINS = "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold"


def variants(fixed: str, hash_joins: str | None = None) -> list[Variant]:
    """Return Spark's defaults (the baseline), Apportion, and Spark with each fixed number.

    With `hash_joins`, a size, the fixed numbers also have this threshold for hash joins.
    """
    more = {} if hash_joins is None else {HASH_JOINS: hash_joins}
    counts = [count.strip() for count in fixed.split(",") if count.strip()]
    for count in counts:
        if not count.isdecimal() or int(count) < 1:
            raise ApportionError(f"--fixed {fixed}: {count!r} is not a whole number from 1")
    return [
        Variant("Spark", {ENABLED: "false"}),
        Variant("Apportion", {ENABLED: "true"}),
        *(
            Variant(
                f"fixed {count}", {ENABLED: "false", "spark.sql.shuffle.partitions": count, **more}
            )
            for count in counts
        ),
    ]


def suite(name: str, scale: float) -> Suite:
    """Return a suite of `apportion bench`, or the suite `maps` with many map tasks."""
    if name != "maps":
        return suites.generated(name, scale)
    rows = math.ceil(_MAP_ROWS * scale)
    queries = {
        str(maps): "SELECT count(*) AS n, max(total) AS most FROM (SELECT id * 7 AS key, "
        f"sum(id) AS total FROM range(0, {rows}, 1, {maps}) GROUP BY key)"
        for maps in MAP_TASKS
    }
    return Suite(name, queries, {"spark.driver.memory": "4g"})


def tables(spark: SparkSession, chosen: Suite, data: Path) -> None:
    """Generate the tables of a suite unless they exist, and create their views."""
    if chosen.scale is not None:
        with waiting(f"Generating {chosen.name} at scale {chosen.scale:g}"):
            register(spark, find_tables(suites.generate_tables(spark, chosen, data)))


def rows(results: Results) -> list[raw.Row]:
    """Return a row for each run."""
    return [
        {
            "query": name.zfill(2),
            "variant": variant,
            "run": number,
            "seconds": f"{run.seconds:.3f}",
            "task_seconds": f"{run.task_millis / 1000:.3f}",
            "tasks": run.tasks,
            "blocks": run.blocks_written,
            "spilled": run.spilled_bytes,
        }
        for name, result in results.queries.items()
        for variant, runs in result.runs.items()
        for number, run in enumerate(runs, 1)
    ]


def main(
    what: Annotated[str, typer.Argument(metavar="tpch|tpcds|skew|maps", help="Queries to run.")],
    scale: raw.Scale = 1.0,
    queries: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Queries to run. Default: all.")
    ] = None,
    fixed: Annotated[
        str, typer.Option(metavar="N,N,...", help="Fixed numbers of shuffle partitions.")
    ] = FIXED,
    bypass: Annotated[
        int | None, typer.Option(help=f"{BYPASS} for all variants. 1 writes sorted files only.")
    ] = None,
    hash_joins: Annotated[
        str | None, typer.Option(metavar="SIZE", help=f"{HASH_JOINS} of the fixed numbers.")
    ] = None,
    rounds: raw.Rounds = 3,
    warmups: Annotated[int, typer.Option(min=0, help="Runs before the measured ones.")] = 1,
    master: raw.Master = "local[*]",
    memory: raw.Memory = "4g",
    data: raw.Data = None,
    disk: Annotated[
        Path | None, typer.Option(help="spark.local.dir: directory for shuffles.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the raw file.")] = None,
    folder: raw.Folder = raw.FOLDER,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over.")] = False,
) -> None:
    """Time queries with Apportion, Spark's defaults and fixed numbers of partitions."""
    chosen = suite(what, scale)
    if queries is not None:
        chosen = chosen.only(queries)
    conf = chosen.conf | {"spark.driver.memory": memory}
    if bypass is not None:
        conf[BYPASS] = str(bypass)
    if disk is not None:
        conf["spark.local.dir"] = str(disk)
    compared = variants(fixed, hash_joins)
    conditions = Conditions(
        what, chosen.scale, None, compared, rounds, warmups, check=False, conf=conf
    )
    file = name or (what if scale == 1 else f"{what}-{scale:g}")
    kept = raw.KEPT / f"queries-{file}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    if fresh:
        kept.unlink(missing_ok=True)
    spark = start(master, [f"{key}={value}" for key, value in conf.items()])
    results = resume(kept, Results(conditions, Environment.from_session(spark)), chosen.queries)
    tables(spark, chosen, data or cache.directory())
    left = [query for query in chosen.queries if query not in results.queries]
    if left and warmups:
        with waiting("Warming up"):
            warm_up(spark, [chosen.queries[left[0]]], conditions)
    for number, query in enumerate(counted(left)):
        # The first run of a query is slower, so each query starts with another variant.
        turned = dataclasses.replace(conditions, variants=rotated(conditions.variants, number))
        results.queries[query] = run_query(spark, chosen.queries[query], turned)
        results.save(kept)
    about = raw.conditions(
        spark, "measured", scale=f"{scale:g}", rounds=rounds, warmups=warmups, heap=memory,
        disk=disk or "default", bypass=bypass or "default",
        hash_joins=hash_joins or "default",
    )  # fmt: skip
    raw.write(file, about, rows(results), folder)
    kept.unlink(missing_ok=True)
    out.print("\n".join(Speed(raw.read(file, folder)).table()), markup=False)
