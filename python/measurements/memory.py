"""Compare the memory that Apportion expects tasks to need with what they spill.

    python python/measurements/memory.py docs/memory-accuracy.md

runs generated queries with a fixed number of tasks, in a JVM of its own for each size of memory.
A prediction is right if a task spills to disk or fails, and Apportion expects it to need more than
`memory.fraction` of its memory. A seed always generates the same queries.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion._spark import jvm
from apportion._util.units import size_text
from apportion.bench.environment import Environment
from apportion.bench.measure import job_group
from apportion.cli.support.console import out
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.decision import decisions, decisions_taken
from apportion.errors import QueryError
from apportion.session import confs
from apportion.settings import find

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What the tasks of a case needed."""

    case: Case
    memory: str
    """Memory of the JVM."""
    stored: int
    """Bytes of the shuffles."""
    needed: int
    """Bytes of memory that Apportion expects the largest task to need."""
    limit: int
    """Bytes of memory that the rows of a task may fill."""
    slot: int
    """Bytes of execution memory of a task."""
    spilled: int
    """Bytes that the tasks spilled to disk."""
    error: str | None

    @property
    def predicted(self) -> bool:
        """Whether Apportion expects that the largest task does not fit."""
        return self.needed > self.limit

    @property
    def overflowed(self) -> bool:
        """Whether tasks spilled or failed."""
        return self.spilled > 0 or self.error is not None


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


def run_all(memory: str, cases: Sequence[Case]) -> tuple[Environment, list[Outcome]]:
    """Run the cases in this process, which must not have started Spark before."""
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
    outcomes = [
        _run(spark, memory, slot, cases[int(place)])
        for place in counted([str(place) for place in range(len(cases))])
    ]
    return Environment.from_session(spark), outcomes


def _slot_memory(spark: SparkSession) -> int:
    spark.sql("SELECT id % 7, count(*) FROM range(100) GROUP BY 1").collect()
    limit = decisions(spark)[-1].task_memory
    assert limit is not None
    return round(limit / _fraction())


def _fraction() -> float:
    return float(str(find("memory_fraction").default))


def _run(spark: SparkSession, memory: str, slot: int, case: Case) -> Outcome:
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
    error = None
    with (
        job_group(spark) as group,
        confs(spark, {"spark.apportion.parallelism": str(case.tasks)}),
        decisions_taken(spark) as taken,
    ):
        try:
            with jvm.short_errors():
                spark.sql(sql).write.format("noop").mode("overwrite").save()
        except QueryError as failure:
            error = str(failure)
    stages = jvm.stage_metrics(spark, group)
    reading = [stage["spilledBytes"] for stage in stages if stage["readsShuffle"]]
    largest = max(taken, key=lambda decision: decision.input_bytes)
    return Outcome(
        case,
        memory,
        stored=largest.input_bytes,
        needed=largest.largest_task_memory or 0,
        limit=largest.task_memory or 0,
        slot=slot,
        spilled=sum(reading),
        error=error,
    )


# Output


def page(outcomes: Sequence[Outcome], on: Environment, seed: int) -> str:
    """Return the outcomes as a page of Markdown."""
    return "\n".join(_page(outcomes, on, seed)) + "\n"


def _page(outcomes: Sequence[Outcome], on: Environment, seed: int) -> Iterator[str]:
    memories = " and ".join(dict.fromkeys(outcome.memory for outcome in outcomes))
    hits = [each for each in outcomes if each.predicted and each.overflowed]
    overflowed = [each for each in outcomes if each.overflowed]
    predicted = [each for each in outcomes if each.predicted]
    yield "# Accuracy of the memory limit"
    yield ""
    yield (
        f"Tasks spilled or failed in {len(overflowed)} of {len(outcomes)} generated queries. "
        f"Apportion expected {len(hits)} of these (recall {_share(hits, overflowed)}). "
        f"Of the {len(predicted)} that it expected, {len(hits)} did (precision "
        f"{_share(hits, predicted)})."
    )
    yield ""
    yield (
        f"Each query ran with a fixed number of tasks on {_SLOTS} task slots, in JVMs of "
        f"{memories} (Spark {on.spark}, seed {seed}). [Memory](memory.md) explains the limit. "
        "`make measure-memory` writes this page."
    )
    yield ""
    yield "## By operator"
    yield ""
    yield (
        "A need is the memory that Apportion expects the largest task to need, divided by the "
        "memory of a task slot. Between the two needs below, both happened."
    )
    yield ""
    yield (
        "| operator | queries | spilled or failed | expected | both "
        "| lowest need with a spill | highest need without |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for operator in OPERATORS:
        yield _line(operator, [each for each in outcomes if each.case.operator == operator])
    yield _line("all", outcomes)
    yield ""
    yield "## Expected wrongly"
    yield ""
    yield "| operator | columns | random | tasks | shuffle | need | spilled | expected |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for each in outcomes:
        if each.predicted != each.overflowed:
            case = each.case
            yield (
                f"| {case.operator} | {case.columns} | {case.random_columns} | {case.tasks} "
                f"| {size_text(each.stored)} | {each.needed / each.slot:.2f} "
                f"| {'failed' if each.error else size_text(each.spilled)} "
                f"| {'yes' if each.predicted else 'no'} |"
            )


def _line(name: str, outcomes: Sequence[Outcome]) -> str:
    spilling = [each.needed / each.slot for each in outcomes if each.overflowed]
    others = [each.needed / each.slot for each in outcomes if not each.overflowed]
    return (
        f"| {name} | {len(outcomes)} | {len(spilling)} "
        f"| {sum(each.predicted for each in outcomes)} "
        f"| {sum(each.predicted and each.overflowed for each in outcomes)} "
        f"| {f'{min(spilling):.2f}' if spilling else '-'} "
        f"| {f'{max(others):.2f}' if others else '-'} |"
    )


def _share(part: Sequence[Outcome], whole: Sequence[Outcome]) -> str:
    return f"{len(part) / len(whole):.1%}" if whole else "none"


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    cases: Annotated[int, typer.Option(min=1, help="Number of queries for each memory.")] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the generated queries.")] = 1,
    memory: Annotated[str, typer.Option(help="Sizes of the JVM.")] = "900m,1300m",
    json_file: Annotated[
        Path, typer.Option("--json", help="File for the outcomes of all queries.")
    ] = Path("target/measurements/memory.json"),
) -> None:
    """Run generated queries with little memory, and compare spills with what Apportion expects."""
    outcomes: list[Outcome] = []
    json_file.parent.mkdir(parents=True, exist_ok=True)
    for place, size in enumerate(memory.split(",")):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            run = process.submit(run_all, size, generate(seed + place, cases))
            environment, measured = run.result()
        outcomes += measured
        content = [dataclasses.asdict(outcome) for outcome in outcomes]
        json_file.write_text(json.dumps(content, indent=1), "utf-8")
        file.write_text(page(outcomes, environment, seed), "utf-8")
    out.print(f"All results: {json_file}", markup=False)


if __name__ == "__main__":
    typer.run(main)
