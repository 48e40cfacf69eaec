"""Distribution of the values of columns over tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from apportion._util.identifiers import quoted
from apportion._util.units import count_text
from apportion.keys.columns import collect_few, column_names, subpartition_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclasses.dataclass(frozen=True)
class TaskLoads:
    """Numbers of distinct values and of rows, by task."""

    values: list[int]
    rows: list[int]

    def __str__(self) -> str:
        rows, mean = max(self.rows), sum(self.rows) / len(self.rows)
        times = f", {rows / mean:.1f} times the mean" if rows else ""
        return (
            f"{self.values.count(0):,} of {count_text(len(self.values), 'task')} empty; at most "
            f"{count_text(max(self.values), 'value')} and {count_text(rows, 'row')} per task{times}"
        )


@dataclasses.dataclass(frozen=True)
class KeyDistribution:
    """Distribution of the values of columns over tasks that read even ranges of subpartitions."""

    columns: list[str]
    subpartitions: int
    hashed: TaskLoads
    """Loads if rows are partitioned by Spark's hash of the values."""
    even: TaskLoads
    """Loads if rows are partitioned by even keys."""

    def loads(self) -> list[tuple[str, TaskLoads]]:
        """Return the loads of both ways of partitioning, with their names."""
        return [("by hash", self.hashed), ("even keys", self.even)]


def measure_distribution(
    df: DataFrame, cols: str | Sequence[str], p: int, n: int | None = None
) -> KeyDistribution:
    """Return the distribution of the values of `cols` over p tasks that read n subpartitions.

    The default of n is p. Raises `InputError` for more than `MOST_VALUES` values, for unknown
    columns, and unless 1 <= p <= n < 2^31. Raises `ApportionError` if the session runs without
    Apportion.
    """
    names = column_names(df, cols)
    n = subpartition_count(df.sparkSession, p, n)
    values = [f"value_{i}" for i in range(len(names))]
    aliases = (f"{quoted(name)} AS {value}" for name, value in zip(names, values, strict=True))
    counted = df.selectExpr(*aliases).groupBy(*values).count()
    placed = counted.selectExpr(
        *values, "count AS rows", f"task_of({p}, {n}, {', '.join(values)}) AS task"
    )
    counts = collect_few(placed, values, ["task", "rows"], names)
    hashed = _sum_by_task(p, ((row["task"], row["rows"]) for row in counts))
    even = _sum_by_task(p, ((rank % p, row["rows"]) for rank, row in enumerate(counts)))
    return KeyDistribution(names, n, hashed, even)


def _sum_by_task(tasks: int, counts: Iterable[tuple[int, int]]) -> TaskLoads:
    """Return the loads of `tasks` tasks. `counts` has the task and the rows of each value."""
    loads = TaskLoads([0] * tasks, [0] * tasks)
    for task, rows in counts:
        loads.values[task] += 1
        loads.rows[task] += rows
    return loads
