"""Measure the sizes of the files that statements write, with a target size and without.

    python python/measurements/file_sizes.py docs/file-size-accuracy.md

writes generated tables with Spark alone and with `write.targetFileSize`, each twice and in turns.
The second run with a target knows the first one. A seed always generates the same tables.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apportion._util.units import size_text
from apportion.bench.environment import Environment
from apportion.bench.rows.digest import digest
from apportion.cli.support.console import err, out
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.session import confs
from apportion.settings import ENABLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KB, MB = 1 << 10, 1 << 20
NEAR = (0.5, 1.5)
"""Sizes of files that count as near, as multiples of the target."""

CSV = "measurements/file-sizes.csv"
_SHOWN = 20
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


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Files and seconds of a table: of Spark alone, and with a target in two runs."""

    table: Table
    plain: Files
    first_run: Files
    learnt: Files
    plain_seconds: list[float]
    sized_seconds: list[float]
    same: bool
    """Whether all written tables have the same rows."""

    def ratio(self, place: int) -> float:
        """Return the time with a target in the first or second round, by the time without."""
        return self.sized_seconds[place] / self.plain_seconds[place]


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


def run(spark: SparkSession, table: Table, folder: Path, first: bool) -> Outcome:
    """Write a table with and without a target. `first` is whether Spark alone begins."""
    source = folder / "source"
    spark.sql(table.source()).write.mode("overwrite").parquet(str(source))
    frame = _query(spark, table, str(source))
    seconds: dict[str, list[float]] = {"plain": [], "sized": []}
    files: list[Files] = []
    variants = {"plain": {ENABLED: "false"}, "sized": {_TARGET: str(table.target)}}
    for place in range(_ROUNDS):
        for name in sorted(variants, reverse=first == bool(place)):
            # Each table has a path of its own: the path identifies its earlier runs.
            path = folder / f"{name}-{table.name}"
            with confs(spark, variants[name]):
                seconds[name].append(_write(frame, table, path))
            if name == "sized":
                files.append(files_of(path))
    schema = frame.schema
    rows = [
        digest(spark.read.schema(schema).format(table.format).load(str(folder / each)))
        for each in (f"plain-{table.name}", f"sized-{table.name}")
    ]
    plain = files_of(folder / f"plain-{table.name}")
    same = rows[0].equals(rows[1])
    first_run, learnt = files
    return Outcome(table, plain, first_run, learnt, seconds["plain"], seconds["sized"], same)


def share(files: Sequence[tuple[Files, Table]]) -> float:
    """Return the share of the reachable bytes that lie in files near the target."""
    reachable = sum(each.reachable(table.target) for each, table in files)
    return sum(each.near(table.target) for each, table in files) / max(1, reachable)


# Output


def page(outcomes: Sequence[Outcome], environment: Environment, seed: int) -> str:
    """Return the outcomes as a page of Markdown."""
    return "\n".join(_page(outcomes, environment, seed)) + "\n"


def _page(outcomes: Sequence[Outcome], on: Environment, seed: int) -> Iterator[str]:
    plain = share([(each.plain, each.table) for each in outcomes])
    first_run = share([(each.first_run, each.table) for each in outcomes])
    learnt = share([(each.learnt, each.table) for each in outcomes])
    ratios = [sorted(each.ratio(place) for each in outcomes) for place in range(_ROUNDS)]
    totals = [
        sum(each.sized_seconds[place] for each in outcomes)
        / sum(each.plain_seconds[place] for each in outcomes)
        for place in range(_ROUNDS)
    ]
    lost = sum(each.learnt.bytes - each.learnt.reachable(each.table.target) for each in outcomes)
    yield "# Accuracy of file sizes"
    yield ""
    yield (
        f"With `write.targetFileSize`, {first_run:.0%} of the bytes lie in files near the target "
        f"in the first run of a statement, and {learnt:.0%} in the second. With Spark alone, it is "
        f"{plain:.0%}. A file is near if it has {NEAR[0]:g} to {NEAR[1]:g} times the target."
    )
    yield ""
    same = sum(each.same for each in outcomes)
    yield (
        f"{same} of {len(outcomes)} generated tables have the same rows with a target and without. "
        "Partitions of tables that are smaller than half a target cannot reach it. "
        f"They have {size_text(lost)}, which do not count. "
        f"A target is at least 1/{_MOST_FILES} of the table."
    )
    yield ""
    yield (
        f"The runs took turns in one session (Spark {on.spark}, {on.master}, {on.cores} cores, "
        f"seed {seed}). Other programs ran on the same machine, so times vary. "
        "`make measure-file-sizes` writes this page."
    )
    yield ""
    yield "## Time"
    yield ""
    yield "Time with a target divided by the time of Spark alone:"
    yield ""
    yield "| run | all tables together | median | 90 % | largest |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, total, each in zip(("first", "second"), totals, ratios, strict=True):
        yield (
            f"| {name} | {total:.2f} | {statistics.median(each):.2f} "
            f"| {each[(9 * len(each)) // 10]:.2f} | {each[-1]:.2f} |"
        )
    yield ""
    yield "## Kinds of tables"
    yield ""
    yield "| partitions | query | tables | near, Spark | near, first run | second | time |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for layout in dict.fromkeys(_LAYOUTS):
        for query in _QUERIES:
            some = [e for e in outcomes if (e.table.layout, e.table.query) == (layout, query)]
            if some:
                yield f"| {layout} | {query} | {len(some)} | {_shares(some)} |"
    yield ""
    yield "## Largest tables"
    yield ""
    yield (
        "The number of files, and the share of the bytes in files near the target. "
        f"[The data]({CSV}) has all tables."
    )
    yield ""
    yield "| table | size | target | files, Spark | first | second | near, Spark | first | second | time |"  # noqa: E501
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for outcome in sorted(outcomes, key=lambda each: -each.learnt.bytes)[:_SHOWN]:
        table = outcome.table
        yield (
            f"| {_describe(table)} "
            f"| {size_text(outcome.learnt.bytes)} | {size_text(table.target)} "
            f"| {outcome.plain.count} | {outcome.first_run.count} | {outcome.learnt.count} "
            f"| {_shares([outcome])} |"
        )


def _describe(table: Table) -> str:
    partitions = "" if table.layout == "none" else f", {table.partitions} {table.layout}"
    return f"{table.name} {table.format}, {table.query}{partitions}"


def rows_of(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as CSV."""
    names = ("plain", "first_run", "learnt")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{name}_{column}" for name in names for column in ("files", "bytes", "near")]
    times = [f"{name}_seconds_{k + 1}" for name in ("plain", "sized") for k in range(_ROUNDS)]
    fields = [field.name for field in dataclasses.fields(Table)]
    writer.writerow([*fields, "reachable", *columns, *times, "same"])
    for each in outcomes:
        target = each.table.target
        files = [getattr(each, name) for name in names]
        sizes = [number for one in files for number in (one.count, one.bytes, one.near(target))]
        seconds = [f"{second:.2f}" for second in (*each.plain_seconds, *each.sized_seconds)]
        reachable = each.learnt.reachable(target)
        writer.writerow([*dataclasses.astuple(each.table), reachable, *sizes, *seconds, each.same])
    return text.getvalue()


def _shares(outcomes: Sequence[Outcome]) -> str:
    """Return the shares of near bytes, and the ratio of the times of both runs."""
    names = ("plain", "first_run", "learnt")
    shares = [share([(getattr(each, name), each.table) for each in outcomes]) for name in names]
    sized = sum(sum(each.sized_seconds) for each in outcomes)
    ratio = sized / sum(sum(each.plain_seconds) for each in outcomes)
    reachable = any(each.learnt.reachable(each.table.target) for each in outcomes)
    return " | ".join([*(f"{each:.0%}" if reachable else "-" for each in shares), f"{ratio:.2f}"])


def main(
    file: Annotated[Path, typer.Argument(help="Page to write.")],
    tables: Annotated[int, typer.Option(help="Number of tables.")] = 54,
    seed: Annotated[int, typer.Option(help="Seed of the generated tables.")] = 1,
    least: Annotated[float, typer.Option(help="Size of the smallest table, in MB.")] = 1,
    most: Annotated[float, typer.Option(help="Size of the largest table, in MB.")] = 300,
    large: Annotated[int, typer.Option(help="Number of other tables of 1 to 5 GB.")] = 6,
    only: Annotated[str, typer.Option(help="Names of tables, separated by commas.")] = "",
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[2]",
    minutes: Annotated[float, typer.Option(help="No table starts after this time.")] = 600,
) -> None:
    """Write generated tables, and describe the sizes of their files."""
    small, others = generate(seed, tables, least, most), generate(seed, large, *_LARGE)
    both = [dataclasses.replace(table, name=f"large-{table.name}") for table in others] + small
    chosen = [t for t in both if not only or t.name in only.split(",")]
    until = time.time() + 60 * minutes
    folder = Path(tempfile.mkdtemp(prefix="file-sizes-"))
    outcomes: list[Outcome] = []
    spark = start(master, ["spark.driver.memory=3g"])
    try:
        warming = dataclasses.replace(chosen[0], name="warming", rows=20_000, target=256 * KB)
        for _ in range(2):
            run(spark, warming, folder, first=True)
        by_name = {table.name: table for table in chosen}
        for place, name in enumerate(counted(list(by_name))):
            table = by_name[name]
            if time.time() < until:
                outcome = run(spark, table, folder, first=place % 2 == 0)
                outcomes.append(outcome)
                for variant in ("plain", "sized"):
                    shutil.rmtree(folder / f"{variant}-{table.name}")
                err.print(f"{table} {outcome.plain.count} {_shares([outcome])} {outcome.same}")
        environment = Environment.from_session(spark)
    finally:
        spark.stop()
        shutil.rmtree(folder)
    file.write_text(page(outcomes, environment, seed), "utf-8")
    (file.parent / CSV).write_text(rows_of(outcomes), "utf-8")
    out.print(f"Wrote {file}")


if __name__ == "__main__":
    typer.run(main)
