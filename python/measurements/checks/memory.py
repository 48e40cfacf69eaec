"""Compare the memory that Apportion expects tasks to need with what they spill.

    python -m measurements memory

Generated queries run with a fixed number of tasks, in a JVM of its own for each size of memory.
A prediction is right if a task spills to disk or fails, and Apportion expects it to need more than
`memory.fraction` of its memory. A seed always generates the same queries.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Annotated

import typer
from pyspark.sql import SparkSession

from apportion._spark import jvm
from apportion._util.parallel import in_process
from apportion.bench.measure import job_group
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.decision import decisions, decisions_taken
from apportion.errors import QueryError
from apportion.session import confs
from apportion.settings import find
from measurements import raw

_SLOTS = 2
_PARTITIONS = 256
# Tasks of a case: the rows need from a quarter of the memory of all tasks to several times as much.
_TASKS = (1, 2, 3, 4, 5, 6, 7, 8, 10)
_LARGEST_NEED = 4
# Bytes for a row besides its columns: about what a sort needs.
_PER_ROW = 96

OPERATORS = {
    "window": "SELECT *, row_number() OVER (PARTITION BY k ORDER BY {last}) AS n FROM a",
    "merge join": "SELECT /*+ MERGE(b) */ a.*, b.{last} AS other FROM a JOIN b ON a.k = b.k",
    "merge join, then aggregate": "SELECT /*+ MERGE(b) */ a.k, sum(a.{last}), sum(b.{last}) "
    "FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "hash join on an integer": "SELECT /*+ SHUFFLE_HASH(b) */ a.k, b.* FROM a JOIN b ON a.k = b.k",
    "hash join on text": "SELECT /*+ SHUFFLE_HASH(b) */ a.k, b.* FROM a "
    "JOIN b ON string(a.k) = string(b.k)",
    "aggregate": "SELECT k, {sums} FROM a GROUP BY k",
    "collect_list": "SELECT k % 100000 AS g, collect_list({last}) FROM a GROUP BY 1",
    "rebalance": "SELECT /*+ REPARTITION(k) */ * FROM a",
}
"""Queries on the tables `a` and `b`, which have the same unique keys `k`."""


@dataclasses.dataclass(frozen=True)
class Case:
    """Query with a number of tasks, on tables of `columns` integers."""

    operator: str
    columns: int
    random_columns: int
    """Columns with random values. The other ones are constant, so shuffles compress them."""
    tasks: int


def generate(seed: int, number: int) -> list[Case]:
    """Return cases in which each operator occurs equally often."""
    draw = random.Random(seed)
    operators = list(OPERATORS)
    cases = []
    for place in range(number):
        columns = draw.choice([1, 2, 4, 8, 16])
        cases.append(
            Case(
                operators[place % len(operators)],
                columns,
                draw.randint(1, columns),
                draw.choice(_TASKS),
            )
        )
    return cases


def run_all(memory: str, cases: Sequence[Case]) -> tuple[dict[str, object], list[raw.Row]]:
    """Run the cases in this process, which must not have started Spark before.

    Return the conditions, and a row for each query.
    """
    spark = start(
        f"local[{_SLOTS}]",
        [
            f"spark.driver.memory={memory}",
            f"spark.sql.shuffle.partitions={_PARTITIONS}",
            "spark.sql.autoBroadcastJoinThreshold=-1",
            "spark.sql.adaptive.autoBroadcastJoinThreshold=-1",
        ],
    )
    slot = _slot_memory(spark)
    rows = [
        _run(spark, memory, slot, cases[int(place)])
        for place in counted([str(place) for place in range(len(cases))])
    ]
    return raw.conditions(spark, "measured"), rows


def _slot_memory(spark: SparkSession) -> int:
    spark.sql("SELECT id % 7, count(*) FROM range(100) GROUP BY 1").collect()
    limit = decisions(spark)[-1].task_memory
    assert limit is not None
    return round(limit / float(str(find("memory_fraction").default)))


def _run(spark: SparkSession, memory: str, slot: int, case: Case) -> raw.Row:
    rows = _LARGEST_NEED * slot // (8 * (case.columns + 2) + _PER_ROW)
    for table in ("a", "b"):
        values = [
            f"xxhash64(id, {n})" if n < case.random_columns else f"{n}L"
            for n in range(case.columns)
        ]
        columns = [f"{value} AS c{n}" for n, value in enumerate(values)]
        # Not id itself, whose range would need no shuffle.
        spark.range(0, rows, 1, 2 * _SLOTS).selectExpr(
            "id ^ 5 AS k", *columns
        ).createOrReplaceTempView(table)
    sql = OPERATORS[case.operator].format(
        last=f"c{case.columns - 1}",
        sums=", ".join(f"max(c{n}) AS m{n}" for n in range(case.columns)),
    )
    has_failed = False
    with (
        job_group(spark) as group,
        confs(spark, {"spark.apportion.parallelism": str(case.tasks)}),
        decisions_taken(spark) as taken,
    ):
        try:
            with jvm.short_errors():
                spark.sql(sql).write.format("noop").mode("overwrite").save()
        except QueryError:
            has_failed = True
    stages = jvm.stage_metrics(spark, group)
    largest = max(taken, key=lambda decision: decision.input_bytes)
    return {
        **dataclasses.asdict(case),
        "memory": memory,
        "stored": largest.input_bytes,
        # The memory that Apportion expects the largest task to need, and that its rows may fill.
        "needed": largest.largest_task_memory or 0,
        "limit": largest.task_memory or 0,
        # Execution memory of a task.
        "slot": slot,
        "spilled": sum(stage["spilledBytes"] for stage in stages if stage["readsShuffle"]),
        "failed": has_failed,
    }


def main(
    cases: Annotated[int, typer.Option(min=1, help="Number of queries for each memory.")] = 40,
    seed: raw.Seed = 7,
    memory: Annotated[str, typer.Option(help="Sizes of the JVM.")] = "800m,1500m",
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Compare the spills of generated queries with the memory that Apportion expects."""
    rows: list[raw.Row] = []
    for place, size in enumerate(memory.split(",")):
        about, measured = in_process(run_all, size, generate(seed + place, cases))
        rows += measured
        raw.write("memory", {**about, "seed": seed, "heaps": memory}, rows, folder)
