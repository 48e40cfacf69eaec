"""Find how large a broadcast table can be.

    python -m measurements large-broadcasts

Tables of growing size are joined with a broadcast hint, each in a Spark of its own with a heap of
1 GiB for the driver or the executor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from apportion._spark import jars, jvm
from apportion._util.parallel import in_process
from apportion.cli.support.progress import counted
from apportion.cli.support.spark_session import start
from apportion.errors import QueryError, SparkEndedError
from measurements import raw

_HEAP = "1g"
_LARGE_HEAP = "4g"
_TEXT_BYTES = 100

# Bytes of a row, with its key in the table, its header and its pointers.
ROW_BYTES = {"integer": 128 + 8 + 32, "text": 140 + 52 + 32}
KEYS = {"integer": "id", "text": "concat('k', id)"}

PROCESSES: Mapping[str, tuple[str, str, str]] = {
    "driver": ("local-cluster[1,2,4096]", _HEAP, _LARGE_HEAP),
    "driver in local mode": ("local[2]", _HEAP, _HEAP),
    "executor": ("local-cluster[1,2,1024]", _LARGE_HEAP, _HEAP),
}
"""Master, heap of the driver and heap of the executor with which each process has little memory."""


def works(process: str, key: str, rows: int) -> bool:
    """Return whether a table of that many rows can be broadcast."""
    master, driver, executor = PROCESSES[process]
    spark = start(
        master,
        [
            f"spark.driver.memory={driver}",
            f"spark.executor.memory={executor}",
            "spark.driver.maxResultSize=0",
            "spark.task.maxFailures=1",
        ],
    )
    text = ", ".join(f"sha2(concat(id, '{n}'), 256)" for n in range(_TEXT_BYTES // 64 + 1))
    spark.range(0, rows, 1, 8).selectExpr(
        f"{KEYS[key]} AS k", f"substr(concat({text}), 1, {_TEXT_BYTES}) AS w"
    ).createOrReplaceTempView("b")
    sql = (
        f"SELECT /*+ BROADCAST(b) */ a.id, b.w FROM "
        f"(SELECT id, {KEYS[key]} AS k FROM range(0, 200000, 1, 8)) a JOIN b ON a.k = b.k"
    )
    try:
        with jvm.short_errors():
            spark.sql(sql).write.format("noop").mode("overwrite").save()
    except (QueryError, SparkEndedError):
        return False
    return True


def main(
    megabytes: Annotated[
        str, typer.Option(help="Sizes of the tables in MiB, with their pointers.")
    ] = "180,260,340,420,500,600,720",
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Find the largest tables that Spark can broadcast with a heap of 1 GiB."""
    sizes = [int(size) for size in megabytes.split(",")]
    about = {**raw.version("measured"), "spark": jars.installed_spark().minor, "heap": _HEAP}
    rows: list[raw.Row] = []
    cases = {
        f"{process}, {key}, {size} MiB": (process, key, size)
        for process in PROCESSES
        for key in KEYS
        for size in sizes
    }
    for name in counted(list(cases)):
        process, key, size = cases[name]
        worked = in_process(works, process, key, (size << 20) // ROW_BYTES[key])
        rows.append({"process": process, "key": key, "megabytes": size, "worked": worked})
        raw.write("large-broadcasts", about, rows, folder)
