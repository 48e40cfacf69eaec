"""Look for queries in which Apportion makes larger tasks than Spark.

    python -m measurements largest-tasks

Generated queries run with Apportion off and on, with the same target size. They are hard cases:
their shuffles have many more bytes than their sources. A seed always generates the same queries.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pyspark.sql import SparkSession

from apportion._spark import jvm
from apportion._spark.jvm import StageMetrics
from apportion._util.units import count_text
from apportion.bench.measure import job_group
from apportion.cli.support.console import QUERY_FAILED, fail, out
from apportion.cli.support.progress import counted, waiting
from apportion.cli.support.spark_session import start
from apportion.session import confs
from apportion.settings import ENABLED
from measurements import raw

if TYPE_CHECKING:
    import pandas as pd

MOST = 1.1
"""Largest allowed ratio of a task's bytes to the bytes of Spark's largest task."""

KB, MB = 1 << 10, 1 << 20
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_COALESCE = "spark.sql.adaptive.coalescePartitions"
_VOLUME = "spark.apportion.dataVolumePerTask"
_CODECS = ("snappy", "zstd", "gzip", "uncompressed")
_RUN_OF_SORTED = 50
_MOST_ROWS = 300_000


@dataclasses.dataclass(frozen=True)
class Table:
    """Parquet table with `columns` columns of repeated strings, which Parquet stores compactly."""

    name: str
    rows: int
    columns: int
    values: int
    """Number of distinct values per column."""
    length: int
    """Number of characters of a value, at most 128."""
    sorted: bool
    codec: str
    files: int

    def sql(self) -> str:
        number = f"id DIV {_RUN_OF_SORTED}" if self.sorted else "id"
        columns = ", ".join(
            f"substr(sha2(string(pmod(hash({number}, {place}), {self.values})), 512), 1, "
            f"{self.length}) AS c{place}"
            for place in range(self.columns)
        )
        return f"SELECT id, {columns} FROM range(0, {self.rows}, 1, {self.files})"


@dataclasses.dataclass(frozen=True)
class Case:
    """Query and its settings."""

    name: str
    kind: str
    sql: str
    target: int
    """Target size per task, in bytes."""
    partitions: int | None = None
    """`spark.sql.shuffle.partitions`; None if it is not set."""
    volume: bool = False
    """Whether the target is also set as `dataVolumePerTask`."""
    broadcast: bool = False
    """Whether Spark may broadcast small tables."""

    def conf(self) -> dict[str, str]:
        conf = {
            _ADVISORY: str(self.target),
            # Spark's other limits would make its tasks larger than the target.
            f"{_COALESCE}.minPartitionSize": str(min(self.target, 64 * KB)),
            f"{_COALESCE}.parallelismFirst": "false",
        }
        if self.partitions is not None:
            conf["spark.sql.shuffle.partitions"] = str(self.partitions)
        if self.volume:
            conf[_VOLUME] = str(self.target)
        if not self.broadcast:
            conf["spark.sql.autoBroadcastJoinThreshold"] = "-1"
        return conf


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Stages of a case that read shuffles, with Apportion off and on."""

    case: Case
    off: list[StageMetrics]
    on: list[StageMetrics]

    @property
    def ratio(self) -> float:
        """Bytes of the largest task with Apportion divided by the bytes without."""
        return largest(self.on) / largest(self.off)


def largest(stages: Sequence[StageMetrics]) -> int:
    """Return the bytes read by the largest task of all stages."""
    return max((stage["largestTaskBytes"] for stage in stages), default=0)


# Tables and cases


def generate(seed: int, cases: int, scale: float) -> tuple[list[Table], list[Case]]:
    """Return tables, and cases that read them. `scale` multiplies the size of all data."""
    draw = random.Random(seed)
    tables = [_table(draw, f"t{number}", scale) for number in range(16)]
    makers = [_file_case] * 5 + [_join_case] * 3 + [_function_case] * 2
    unnumbered = [makers[number % len(makers)](draw, tables, scale) for number in range(cases)]
    width = len(str(cases))
    return tables, [
        dataclasses.replace(case, name=f"{number:0{width}} {case.name}")
        for number, case in enumerate(unnumbered)
    ]


def _table(draw: random.Random, name: str, scale: float) -> Table:
    columns, length = draw.choice([1, 2, 4, 8]), draw.choice([24, 48, 96, 128])
    return Table(
        name,
        rows=round(draw.choice([16, 32, 64, 96]) * MB * scale / (columns * length + 16)),
        columns=columns,
        values=draw.choice([16, 64, 256, 600]),
        length=length,
        sorted=draw.random() < 0.3,
        codec=draw.choice(_CODECS),
        files=draw.choice([1, 4, 12]),
    )


def _case(draw: random.Random, name: str, kind: str, sql: str) -> Case:
    return Case(
        name,
        kind,
        sql,
        target=draw.choice([128 * KB, 256 * KB, 512 * KB, MB]),
        partitions=draw.choice([None, None, 64, 400]),
        volume=draw.random() < 0.3,
        broadcast=kind == "join" and draw.random() < 0.5,
    )


READERS = {
    "rebalance": "SELECT /*+ REPARTITION(id) */ * FROM ({rows})",
    "sort": "SELECT * FROM ({rows}) ORDER BY hash(id)",
    "window": "SELECT *, row_number() OVER (PARTITION BY hash(id) % 5000 ORDER BY id) "
    "FROM ({rows})",
    "collect": "SELECT k, collect_list(r) FROM (SELECT hash(id) % 5000 AS k, struct(*) AS r "
    "FROM ({rows})) GROUP BY k",
}
"""Queries that send all rows through their last shuffle."""


def _file_case(draw: random.Random, tables: Sequence[Table], scale: float) -> Case:
    table = draw.choice(tables)
    reader = draw.choice(["join", *READERS])
    if reader != "join":
        sql = READERS[reader].format(rows=f"SELECT * FROM {table.name}")
        return _case(draw, f"{reader} of {table.name}", "files", sql)
    other = draw.choice(tables)
    sql = f"SELECT * FROM {table.name} a JOIN {other.name} b ON a.id = b.id"
    return _case(draw, f"join of {table.name} and {other.name}", "files", sql)


def _join_case(draw: random.Random, tables: Sequence[Table], scale: float) -> Case:
    factor, reader = draw.choice([10, 30, 100, 300, 1000]), draw.choice(list(READERS))
    rows = round(draw.choice([50_000, 150_000, _MOST_ROWS]) * scale)
    return _case(draw, *join_query(factor, reader, rows))


def join_query(factor: int, reader: str, rows: int) -> tuple[str, str, str]:
    """Return the name, kind and text of a query on a join that makes `factor` rows of each row."""
    left = max(1, rows // factor)
    keys = min(left, 40)
    product = (
        f"SELECT a.id * 1000003 + b.id AS id, sha2(concat(a.id, ':', b.id), 256) AS text "
        f"FROM (SELECT id, id % {keys} AS k FROM seeds WHERE id < {left}) a "
        f"JOIN (SELECT id, id % {keys} AS k FROM seeds WHERE id < {factor * keys}) b ON a.k = b.k"
    )
    return f"{reader} of a join by {factor}", "join", READERS[reader].format(rows=product)


def _function_case(draw: random.Random, tables: Sequence[Table], scale: float) -> Case:
    function, factor = draw.choice(list(FUNCTIONS)), draw.choice([10, 100])
    reader = draw.choice(list(READERS))
    rows = round(draw.choice([50_000, 150_000, _MOST_ROWS]) * scale)
    return _case(draw, *function_query(function, factor, reader, rows))


FUNCTIONS = {
    "explode": "SELECT id * 1000 + n AS id, sha2(concat(id, ':', n), 256) AS text "
    "FROM (SELECT id, explode(sequence(1, {factor})) AS n FROM seeds WHERE id < {rows})",
    "table function": "SELECT f.id, f.text FROM (SELECT id FROM seeds WHERE id < {rows}) s, "
    "LATERAL multiplied(s.id, {factor}) f",
    "mapInPandas": "SELECT * FROM mapped_{factor} WHERE id < {rows} * 1000",
    "applyInPandas": "SELECT * FROM applied_{factor} WHERE id < {rows} * 1000",
}
"""Queries on functions that make `factor` rows of each row."""


def function_query(function: str, factor: int, reader: str, rows: int) -> tuple[str, str, str]:
    source = FUNCTIONS[function].format(factor=factor, rows=max(1, rows // factor))
    return f"{reader} of {function} by {factor}", "function", READERS[reader].format(rows=source)


# Running them


def register(spark: SparkSession, tables: Sequence[Table], seeds: int, folder: Path) -> None:
    """Write the tables and the table `seeds`, which the other cases read, and create views."""
    for table in tables:
        path = str(folder / table.name)
        spark.sql(table.sql()).write.option("compression", table.codec).parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(table.name)
    spark.range(0, seeds, 1, 2).write.parquet(str(folder / "seeds"))
    spark.read.parquet(str(folder / "seeds")).createOrReplaceTempView("seeds")


def register_functions(spark: SparkSession) -> None:
    """Register the Python functions and views of `FUNCTIONS`. Needs pandas and pyarrow."""
    from pyspark.sql.udtf import UserDefinedTableFunction

    class Multiplied:
        def eval(self, id: int, factor: int) -> Iterator[tuple[int, str]]:
            import hashlib

            for number in range(factor):
                text = hashlib.sha256(f"{id}:{number}".encode()).hexdigest()
                yield id * 1000 + number, text

    spark.udtf.register(
        "multiplied", UserDefinedTableFunction(Multiplied, "id bigint, text string")
    )
    seeds, schema = spark.table("seeds"), "id bigint, text string"
    for factor in (10, 100):
        multiplied = _multiplier(factor)

        def mapped(
            batches: Iterator[pd.DataFrame],
            multiplied: Callable[[pd.DataFrame], pd.DataFrame] = multiplied,
        ) -> Iterator[pd.DataFrame]:
            yield from map(multiplied, batches)

        # No case reads more rows.
        few = seeds.where(f"id < {_MOST_ROWS // factor}")
        few.mapInPandas(mapped, schema).createOrReplaceTempView(f"mapped_{factor}")
        groups = few.groupBy((few["id"] % 20).alias("k"))
        groups.applyInPandas(multiplied, schema).createOrReplaceTempView(f"applied_{factor}")


def _multiplier(factor: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    # One parameter only: applyInPandas passes the key to a function with two parameters.
    def multiplied(rows: pd.DataFrame) -> pd.DataFrame:
        import hashlib

        import pandas as pd

        ids = [int(id) * 1000 + number for id in rows["id"] for number in range(factor)]
        texts = [hashlib.sha256(str(id).encode()).hexdigest() for id in ids]
        return pd.DataFrame({"id": ids, "text": texts})

    return multiplied


def run(spark: SparkSession, case: Case) -> Outcome:
    """Run a case with Apportion off and on."""
    with confs(spark, case.conf()):
        return Outcome(case, _stages(spark, case.sql, "false"), _stages(spark, case.sql, "true"))


def _stages(spark: SparkSession, sql: str, enabled: str) -> list[StageMetrics]:
    with confs(spark, {ENABLED: enabled}), job_group(spark) as group:
        spark.sql(sql).write.format("noop").mode("overwrite").save()
    return [stage for stage in jvm.stage_metrics(spark, group) if stage["readsShuffle"]]


def rows(outcomes: Sequence[Outcome]) -> list[raw.Row]:
    """Return a row for each query."""
    return [
        {
            "query": each.case.name,
            "kind": each.case.kind,
            "partitions": each.case.partitions or "",
            "target": each.case.target,
            "bytes": sum(stage["shuffleReadBytes"] for stage in each.off),
            "largest_off": largest(each.off),
            "largest_on": largest(each.on),
            "tasks_off": sum(stage["tasks"] for stage in each.off),
            "tasks_on": sum(stage["tasks"] for stage in each.on),
        }
        for each in outcomes
    ]


def main(
    cases: Annotated[int, typer.Option(min=1, help="Number of queries.")] = 200,
    seed: raw.Seed = 1,
    scale: Annotated[float, typer.Option(help="Multiply the size of all data.")] = 1.0,
    only: Annotated[
        str | None, typer.Option(help="Run only queries with this text in their name.")
    ] = None,
    master: raw.Master = "local[*]",
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Compare the largest tasks of generated queries with Apportion off and on.

    Exit codes: 0 if no task reads more than 1.1 times the bytes of Spark's largest, 1 otherwise.
    """
    # The Python functions run in this Python, which has pandas and pyarrow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = start(master, ["spark.driver.memory=4g"])
    about = raw.conditions(spark, "measured", seed=seed, most=MOST)
    tables, generated = generate(seed, cases, scale)
    chosen = {case.name: case for case in generated if only is None or only in case.name}
    if not chosen:
        fail(f"no query has {only!r} in its name")
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        with waiting("Writing the tables"):
            register(spark, tables, _MOST_ROWS, Path(scratch))
            register_functions(spark)
        for name in counted(list(chosen)):
            outcomes.append(run(spark, chosen[name]))
            raw.write("largest-tasks", about, rows(outcomes), folder)
    over = [each for each in outcomes if each.ratio > MOST]
    out.print(f"{count_text(len(outcomes), 'query')}, {len(over)} with a ratio above {MOST:g}.")
    if over:
        lines = [f"{outcome.ratio:.2f}: {outcome.case.name}" for outcome in over]
        message = f"the largest task reads more than {MOST:g} times the bytes of Spark's in:"
        fail("\n".join([message, *lines]), QUERY_FAILED)
