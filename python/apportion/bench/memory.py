"""The same benchmark with several sizes of memory."""

from __future__ import annotations

from collections.abc import Mapping

from apportion._util.tables import FittedTable
from apportion._util.units import size_text
from apportion.bench.results import Results
from apportion.bench.summary import summarise


def conf(memory: str, master: str | None) -> dict[str, str]:
    """Return the confs that give tasks this memory: the driver's in local mode, or executors'."""
    is_local = master is None or master.startswith("local[") or master == "local"
    return {"spark.driver.memory" if is_local else "spark.executor.memory": memory}


def table(results: Mapping[str, Results]) -> FittedTable:
    """Return a table with a row for each size of memory and each variant.

    Sums are over the queries that ran under all variants, and ratios are of the same memory.
    """
    columns = (
        "Memory", "Variant", "Spilled to disk", "Failed", "Times faster (95 %)", "Time, s", "Tasks",
    )  # fmt: skip
    title = "Memory of an executor, and what fits in it"
    result = FittedTable(title, columns, right=range(2, len(columns)))
    for memory, measured in results.items():
        for place, summary in enumerate(summarise(measured)):
            if not place and result.rows:
                result.add_section()
            result.add_row(
                "" if place else memory,
                summary.variant,
                size_text(summary.spilled_bytes),
                str(summary.failed),
                str(summary.faster) if place else "baseline",
                f"{summary.seconds:.1f}",
                f"{summary.tasks:,}",
            )
    return result
