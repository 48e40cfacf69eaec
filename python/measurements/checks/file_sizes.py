"""Measure the sizes of the files that statements write, with a target size and without.

    python -m measurements file-sizes

Generated tables are written with Spark alone and with `write.targetFileSize`, each twice and in
turns. The second run with a target knows the first one. A seed always generates the same tables.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession

from apportion.bench.rows.digest import digest
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.session import confs
from apportion.settings import ENABLED
from measurements import raw

KB, MB = 1 << 10, 1 << 20
NEAR = (0.5, 1.5)
"""Sizes of files that count as near, as multiples of the target."""

_TARGET = "spark.apportion.write.targetFileSize"
_TEXT = 200
_LARGE = (1000, 5000)
_TARGETS = (1, 2, 4, 8, 16, 32, 64, 128)
# Thousands of tiny files are not what a target is for, and each file costs some milliseconds.
_MOST_FILES = 256
_ROUNDS = 2
_FORMATS = ("parquet", "parquet", "parquet", "orc", "json", "csv")
_LAYOUTS = ("none", "none", "even", "skewed")
_QUERIES = ("distinct", "join", "copy")
# Bytes of a row beside its text.
_OTHER = {"parquet": 12, "orc": 12, "json": 60, "csv": 30}


@dataclasses.dataclass(frozen=True)
class Table:
    """Table that is written."""

    name: str
    format: str
    query: str
    """`distinct`, `join` (both have a shuffle) or `copy`, which only scans."""
    layout: str
    """Partitions of the table: `none`, `even` or `skewed`."""
    rows: int
    compressibility: int
    """Bytes of a text for each byte that does not compress."""
    partitions: int
    target: int

    def source(self) -> str:
        random_part = max(1, _TEXT // self.compressibility)
        digits = "sha2(string(id), 512), sha2(concat(id, 'a'), 512)"
        share = "pmod(xxhash64(id), 1000003) / 1000003.0D"
        number = f"power({share}, 4)" if self.layout == "skewed" else share
        return (
            f"SELECT id, id % 1000 AS n, concat(substr(concat({digits}), 1, {random_part}), "
            f"repeat('x', {_TEXT - random_part})) AS text, "
            f"int({self.partitions} * {number}) AS k FROM range(0, {self.rows}, 1, 8)"
        )


@dataclasses.dataclass(frozen=True)
class Files:
    """Sizes of files by the partition of the table; tables without partitions have one."""

    sizes: dict[str, list[int]]

    @property
    def bytes(self) -> int:
        return sum(map(sum, self.sizes.values()))

    @property
    def count(self) -> int:
        return sum(map(len, self.sizes.values()))

    def reachable(self, target: int) -> int:
        """Return the bytes of partitions that are large enough for a file near the target."""
        return sum(sum(part) for part in self.sizes.values() if sum(part) >= NEAR[0] * target)

    def near(self, target: int) -> int:
        """Return the bytes in files near the target."""
        low, high = (round(limit * target) for limit in NEAR)
        return sum(size for part in self.sizes.values() for size in part if low <= size <= high)


def generate(seed: int, count: int, least: float, most: float) -> list[Table]:
    """Return tables of `least` to `most` MB, as far as their rows are not too many."""
    draw = random.Random(seed)
    return [_table(draw, number, least, most) for number in range(count)]


def _table(draw: random.Random, number: int, least: float, most: float) -> Table:
    kind, layout = draw.choice(_FORMATS), _LAYOUTS[number % len(_LAYOUTS)]
    compressibility = draw.choice([1, 1, 2, 4, 10, 30])
    megabytes = least * (most / least) ** draw.random()
    text = _TEXT / compressibility if kind in ("parquet", "orc") else _TEXT
    # Spark has to hash and to encode all characters of a row, however few bytes these become.
    rows = min(round(megabytes * MB / (text + _OTHER[kind])), round(2 * most * MB / _TEXT))
    partitions = draw.choice([4, 10, 30])
    # Most partitions can reach the target.
    most_target = megabytes / partitions if layout != "none" else megabytes
    least_target = megabytes / _MOST_FILES
    targets = [size for size in _TARGETS if least_target <= size <= max(1, most_target)]
    return Table(
        f"{number:02}",
        kind,
        draw.choice(_QUERIES[:2] if layout == "none" else _QUERIES),
        layout,
        rows=max(1000, rows),
        compressibility=compressibility,
        partitions=partitions,
        target=draw.choice(targets) * MB,
    )


def _query(spark: SparkSession, table: Table, source: str) -> DataFrame:
    frame = spark.read.parquet(source)
    if table.query == "distinct":
        return frame.distinct()
    if table.query == "join":
        other = frame.selectExpr("id AS other", "n * 2 AS doubled")
        return frame.hint("merge").join(other, frame["id"] == other["other"]).drop("other")
    return frame


def _write(frame: DataFrame, table: Table, path: Path) -> float:
    writer = frame.write.format(table.format).mode("overwrite")
    if table.layout != "none":
        writer = writer.partitionBy("k")
    begin = time.perf_counter()
    writer.save(str(path))
    return time.perf_counter() - begin


def files_of(path: Path) -> Files:
    """Return the files of a written table."""
    sizes: dict[str, list[int]] = {}
    for file in path.rglob("part-*"):
        sizes.setdefault(str(file.parent.relative_to(path)), []).append(file.stat().st_size)
    return Files(sizes)


def run(spark: SparkSession, table: Table, folder: Path, first: bool) -> raw.Row:
    """Write a table with and without a target, and return its row.

    `first` is whether Spark alone begins.
    """
    source = folder / "source"
    spark.sql(table.source()).write.mode("overwrite").parquet(str(source))
    frame = _query(spark, table, str(source))
    seconds: dict[str, list[float]] = {"plain": [], "sized": []}
    sized: list[Files] = []
    variants = {"plain": {ENABLED: "false"}, "sized": {_TARGET: str(table.target)}}
    for place in range(_ROUNDS):
        for name in sorted(variants, reverse=first == bool(place)):
            # Each table has a path of its own: the path identifies its earlier runs.
            path = folder / f"{name}-{table.name}"
            with confs(spark, variants[name]):
                seconds[name].append(_write(frame, table, path))
            if name == "sized":
                sized.append(files_of(path))
    schema = frame.schema
    rows = [
        digest(spark.read.schema(schema).format(table.format).load(str(folder / each)))
        for each in (f"plain-{table.name}", f"sized-{table.name}")
    ]
    first_run, learnt = sized
    plain = files_of(folder / f"plain-{table.name}")
    return {
        **dataclasses.asdict(table),
        "reachable": learnt.reachable(table.target),
        **{
            f"{name}_{column}": value
            for name, files in (("plain", plain), ("first_run", first_run), ("learnt", learnt))
            for column, value in _sizes(files, table.target).items()
        },
        **{
            f"{name}_seconds_{number}": f"{each:.2f}"
            for name, of_variant in seconds.items()
            for number, each in enumerate(of_variant, 1)
        },
        # Whether all written tables have the same rows.
        "same": rows[0].equals(rows[1]),
    }


def _sizes(files: Files, target: int) -> dict[str, int]:
    return {"files": files.count, "bytes": files.bytes, "near": files.near(target)}


def main(
    tables: Annotated[int, typer.Option(help="Number of tables.")] = 54,
    seed: raw.Seed = 1,
    least: Annotated[float, typer.Option(help="Size of the smallest table, in MB.")] = 1,
    most: Annotated[float, typer.Option(help="Size of the largest table, in MB.")] = 300,
    large: Annotated[int, typer.Option(help="Number of other tables of 1 to 5 GB.")] = 6,
    only: Annotated[str, typer.Option(help="Names of tables, separated by commas.")] = "",
    master: raw.Master = "local[2]",
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Write generated tables, and measure the sizes of their files."""
    small, others = generate(seed, tables, least, most), generate(seed, large, *_LARGE)
    both = [dataclasses.replace(table, name=f"large-{table.name}") for table in others] + small
    by_name = {t.name: t for t in both if not only or t.name in only.split(",")}
    rows: list[raw.Row] = []
    spark = start(master, ["spark.driver.memory=3g"])
    about = raw.conditions(spark, "measured", seed=seed)
    with tempfile.TemporaryDirectory(prefix="file-sizes-") as directory:
        scratch = Path(directory)
        first = next(iter(by_name.values()))
        warming = dataclasses.replace(first, name="warming", rows=20_000, target=256 * KB)
        for _ in range(2):
            run(spark, warming, scratch, first=True)
        for place, name in enumerate(counted(list(by_name))):
            rows.append(run(spark, by_name[name], scratch, first=place % 2 == 0))
            for variant in ("plain", "sized"):
                shutil.rmtree(scratch / f"{variant}-{name}")
            raw.write("file-sizes", about, rows, folder)
    spark.stop()
