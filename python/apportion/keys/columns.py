"""Checks of the arguments of `apportion.keys`, and collection of distinct values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion._util import checks
from apportion.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

MOST_VALUES = 100_000
"""Maximum number of distinct values for even keys."""

MOST_TASKS = 1 << 20
"""Maximum number of tasks for even keys."""


def column_names(df: DataFrame, cols: str | Sequence[str]) -> list[str]:
    """Return `cols` as a list of column names, spelled as in `df`.

    As in Spark, spark.sql.caseSensitive decides whether upper and lower case differ. Raises
    `InputError` if the list is empty, or if a name is not the name of exactly one column of `df`.
    """
    allowed = "allowed is one column name, or a list of names"
    try:
        names = [cols] if isinstance(cols, str) else list(cols)
    except TypeError:
        raise InputError(f"cols is {cols!r}: {allowed}") from None
    if not names:
        raise InputError(f"cols is empty: {allowed}")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"cols has {name!r}: {allowed}")
    is_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    return [_find_column(df.columns, name, is_sensitive) for name in names]


def _find_column(columns: Sequence[str], name: str, is_sensitive: bool) -> str:
    folded: Callable[[str], str] = str if is_sensitive else str.lower
    found = [column for column in columns if folded(column) == folded(name)]
    if len(found) > 1:
        raise InputError(f"column {name} is ambiguous: the columns are {', '.join(columns)}")
    if not found:
        raise InputError(
            f"there is no column {name}.{did_you_mean(name, columns)} Columns: {', '.join(columns)}"
        )
    return found[0]


def subpartition_count(spark: SparkSession, p: int, n: int | None) -> int:
    """Return `n`, or `p` if `n` is None.

    Raises `InputError` unless 1 <= p <= n < 2^31 and p <= `MOST_TASKS`. Raises `ApportionError` if
    the session runs without Apportion.
    """
    from pyspark.errors import AnalysisException

    p = checks.check("p", p, most=MOST_TASKS)
    subpartitions = checks.check("n", p if n is None else n, least=p)
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
    """Return the columns `kept` of the distinct values, one row each, sorted by `order`.

    Raises `InputError` if there are more than `MOST_VALUES` rows; `names` are the columns that its
    message names.
    """
    rows = values.orderBy(*order).limit(MOST_VALUES + 1).select(*kept).collect()
    if len(rows) > MOST_VALUES:
        raise InputError(
            f"{', '.join(names)}: there are more than {MOST_VALUES:,} distinct values, the maximum "
            "for even keys. Hashing spreads so many values evenly: partition by the columns"
        )
    return rows
