"""What `apportion.keys` is asked about: columns of a DataFrame, and numbers of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion._util import checks
from apportion.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

MOST_VALUES = 100_000
"""The most distinct values that even keys are made for."""

MOST_TASKS = 1 << 20
"""The most tasks that they are dealt to."""


def names_of(df: DataFrame, cols: str | Sequence[str]) -> list[str]:
    """Return the names of columns; raises `InputError` for none, and for one that is not there."""
    names = [cols] if isinstance(cols, str) else list(cols)
    if not names:
        raise InputError("cols is empty: allowed is the name of a column, or several")
    for name in names:
        if name not in df.columns:
            raise InputError(
                f"there is no column {name}.{did_you_mean(name, df.columns)} "
                f"Columns: {', '.join(df.columns)}"
            )
    return names


def subpartitions_of(spark: SparkSession, p: int, n: int | None) -> int:
    """Return n, which is p where it is None.

    Raises `InputError` unless 1 <= p <= n < 2^31 and p is `MOST_TASKS` at most, and
    `ApportionError` when the session has no Apportion in it.
    """
    from pyspark.errors import AnalysisException

    checks.check("p", p, most=MOST_TASKS)
    subpartitions = p if n is None else n
    checks.check("n", subpartitions, least=p)
    try:
        _ = spark.sql(f"SELECT task_of({p}, {subpartitions}, 0)").schema
    except AnalysisException as error:
        if "[UNRESOLVED_ROUTINE]" not in str(error):
            raise
        raise jvm.missing_extension(spark) from None
    return subpartitions


def collect_few(
    values: DataFrame, order: Sequence[str], kept: Sequence[str], names: Sequence[str]
) -> list[Row]:
    """Return the columns `kept` of distinct values, a row for each, in the order of `order`.

    Raises `InputError` for more than `MOST_VALUES` of them, which are those of columns `names`.
    """
    found = values.orderBy(*order).limit(MOST_VALUES + 1).select(*kept).collect()
    if len(found) > MOST_VALUES:
        raise InputError(
            f"{', '.join(names)}: there are more than {MOST_VALUES:,} distinct values, for which "
            "even keys are not made. So many fall evenly as they are: partition by the columns"
        )
    return found
