"""How the values of columns fall over tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from apportion._util.identifiers import quoted
from apportion._util.units import count_text
from apportion.keys.columns import collect_few, names_of, subpartitions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclasses.dataclass(frozen=True)
class Deal:
    """What each task gets: distinct values, and their rows."""

    values: list[int]
    rows: list[int]

    def __str__(self) -> str:
        rows, mean = max(self.rows), sum(self.rows) / len(self.rows)
        times = f", {rows / mean:.1f} times the mean" if rows else ""
        return (
            f"{self.values.count(0):,} of {count_text(len(self.values), 'task')} empty; at most "
            f"{count_text(max(self.values), 'value')} and {count_text(rows, 'row')} a task{times}"
        )


@dataclasses.dataclass(frozen=True)
class Dealt:
    """How the values of columns fall over tasks that read even ranges of subpartitions."""

    columns: list[str]
    subpartitions: int
    hashed: Deal
    """By Spark's hash of the values."""
    even: Deal
    """By even keys for them."""

    def deals(self) -> list[tuple[str, Deal]]:
        """Return both deals with what they are called."""
        return [("by hash", self.hashed), ("even keys", self.even)]


def deal(df: DataFrame, cols: str | Sequence[str], p: int, n: int | None = None) -> Dealt:
    """Return how the values of `cols` fall over p tasks that read n subpartitions (default: p).

    Raises `InputError` for more than `MOST_VALUES` values, columns that are not there, and numbers
    other than 1 <= p <= n < 2^31; and `ApportionError` when the session has no Apportion in it.
    """
    names = names_of(df, cols)
    n = subpartitions_of(df.sparkSession, p, n)
    values = [f"value_{i}" for i in range(len(names))]
    aliases = (f"{quoted(name)} AS {value}" for name, value in zip(names, values, strict=True))
    counted = df.selectExpr(*aliases).groupBy(*values).count()
    placed = counted.selectExpr(
        *values, "count AS rows", f"task_of({p}, {n}, {', '.join(values)}) AS task"
    )
    found = collect_few(placed, values, ["task", "rows"], names)
    hashed = _deal(p, ((row["task"], row["rows"]) for row in found))
    even = _deal(p, ((rank % p, row["rows"]) for rank, row in enumerate(found)))
    return Dealt(names, n, hashed, even)


def _deal(tasks: int, dealt: Iterable[tuple[int, int]]) -> Deal:
    deal = Deal([0] * tasks, [0] * tasks)
    for task, rows in dealt:
        deal.values[task] += 1
        deal.rows[task] += rows
    return deal
