"""The same benchmark with several sizes of memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from apportion._util.ratios import Estimate
from apportion._util.tables import FittedTable
from apportion._util.units import size_text
from apportion.bench.results import Results
from apportion.bench.summary import summarise


@dataclasses.dataclass(frozen=True)
class MemoryRow:
    """A variant with one size of memory. Sums are over the queries that ran under all variants."""

    memory: str
    variant: str
    failed: int
    """Number of queries that failed."""
    faster: Estimate | None
    """Ratio to the baseline with the same memory; None for the baseline."""
    seconds: float
    tasks: int
    spilled_bytes: int
    """Bytes that tasks spilled to disk."""


def conf(memory: str, master: str | None) -> dict[str, str]:
    """Return the confs that give tasks this memory: the driver's in local mode, or executors'."""
    is_local = master is None or master.startswith("local[") or master == "local"
    return {"spark.driver.memory" if is_local else "spark.executor.memory": memory}


def rows(results: Mapping[str, Results]) -> Iterator[MemoryRow]:
    """Yield a row for each size of memory and each variant."""
    for memory, measured in results.items():
        for place, summary in enumerate(summarise(measured)):
            yield MemoryRow(
                memory=memory,
                variant=summary.variant,
                failed=summary.failed,
                faster=summary.faster if place else None,
                seconds=summary.seconds,
                tasks=summary.tasks,
                spilled_bytes=summary.spilled_bytes,
            )


def table(results: Mapping[str, Results]) -> FittedTable:
    """Return a table with a row for each size of memory and each variant."""
    columns = (
        "Memory", "Variant", "Spilled to disk", "Failed", "Times faster (95 %)", "Time, s", "Tasks",
    )  # fmt: skip
    title = "Memory of an executor, and what fits in it"
    result = FittedTable(title, columns, right=range(2, len(columns)))
    last = ""
    for row in rows(results):
        if last not in ("", row.memory):
            result.add_section()
        result.add_row(
            "" if row.memory == last else row.memory,
            row.variant,
            size_text(row.spilled_bytes),
            str(row.failed),
            str(row.faster) if row.faster else "baseline",
            f"{row.seconds:.1f}",
            f"{row.tasks:,}",
        )
        last = row.memory
    return result
