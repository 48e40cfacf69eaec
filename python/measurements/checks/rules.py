"""Measure how much of the time of queries Apportion's rules take.

    python -m measurements rules tpch

It is elapsed time, so it includes waits for the cores on which tasks run.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession

from apportion._util import cache
from apportion.cli.support.console import out
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from measurements import raw
from measurements.speed import queries

_WARM_UP = "warm-up"


def rule_seconds(spark: SparkSession) -> float:
    """Return the seconds that rules have taken in this application."""
    jvm: Any = spark._jvm
    active = jvm.org.apache.spark.apportion.DecisionMetrics.ofActive(spark._jsc.sc())
    nanos: int = active.get().metricRegistry().counter("rules.nanos").getCount()
    return nanos / 1e9


def measured(spark: SparkSession, sql: str) -> tuple[float, float]:
    """Run a query, and return its seconds and those of the rules."""
    before, begin = rule_seconds(spark), time.perf_counter()
    spark.sql(sql).collect()
    seconds = time.perf_counter() - begin
    return seconds, rule_seconds(spark) - before


def main(
    what: Annotated[str, typer.Argument(metavar="tpch|tpcds|skew|maps", help="Queries to run.")],
    scale: raw.Scale = 1.0,
    rounds: raw.Rounds = 5,
    warmups: Annotated[int, typer.Option(min=0, help="Rounds before the measured ones.")] = 3,
    master: raw.Master = "local[*]",
    memory: raw.Memory = "4g",
    data: raw.Data = None,
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Measure how much of the time of queries Apportion's rules take."""
    chosen = queries.suite(what, scale)
    conf = chosen.conf | {"spark.driver.memory": memory}
    spark = start(master, [f"{key}={value}" for key, value in conf.items()])
    queries.tables(spark, chosen, data or cache.directory())
    rows: list[raw.Row] = []
    runs = [_WARM_UP] * warmups + [str(run) for run in range(1, rounds + 1)]
    for run in counted(runs):
        for name, sql in chosen.queries.items():
            seconds, of_rules = measured(spark, sql)
            if run != _WARM_UP:
                row = {"query": name.zfill(2), "run": run}
                rows.append(row | {"seconds": f"{seconds:.3f}", "rules": f"{of_rules:.4f}"})
    about = raw.conditions(
        spark, "measured", scale=f"{scale:g}", rounds=rounds, warmups=warmups, heap=memory
    )
    out.print(f"Written to {raw.write(f'rules-{what}', about, rows, folder)}", markup=False)
