"""Even keys for columns of any type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from apportion._util.identifiers import quoted
from apportion.errors import InputError
from apportion.keys.columns import collect_few, column_names, subpartition_count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

# Types whose values survive the way to Python and back, some of them only as in `_NUMBERS`.
_KEYS = {
    *("boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
    *("string", "binary", "date", "timestamp_ntz", "timestamp"),
}
# In Python, timestamps are local time, in which one hour of the year occurs twice, and the years of
# dates and times are 1 to 9999.
_NUMBERS = {
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "({} - TIMESTAMP_NTZ'1970-01-01')",
}


def spread(
    df: DataFrame, cols: str | Sequence[str], p: int, n: int | None = None, name: str = "even_key"
) -> DataFrame:
    """Return `df` with an additional column that spreads the values of `cols` evenly over p tasks.

    The values are sorted and numbered from 0 (a dense rank, including NULL). The new column is
    `even_key(rank, p, n)`, a BIGINT. After `repartition(n, name)`, all rows of a value are in one
    partition, and the numbers of values of two tasks differ by at most 1. Each value has its own
    key, so grouping by `name` is the same as grouping by `cols`.

    One query collects the distinct values, at most `MOST_VALUES`, and broadcasts them to the rows.
    Works on Spark Connect too.

    Raises `InputError` for more values, for unknown columns, for columns of unsupported types (cast
    them to a string), and unless 1 <= p <= n < 2^31 and p <= 2^20. Raises `ApportionError` if the
    session runs without Apportion.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    names = column_names(df, cols)
    if not isinstance(name, str):
        raise InputError(f"name is {name!r}: allowed is the name of the new column")
    if name.lower() in (column.lower() for column in df.columns):
        raise InputError(f"name is {name}: the DataFrame already has a column with this name")
    spark = df.sparkSession
    n = subpartition_count(spark, p, n)

    values = [f"__apportion_value_{i}" for i in range(len(names))]
    collected = [_collected(df.schema[column]) for column in names]
    rows = df.selectExpr(
        "*", *(f"{how} AS {value}" for how, value in zip(collected, values, strict=True))
    )
    distinct = rows.select(*values).distinct()
    sorted_values = collect_few(distinct, values, values, names)

    known = [f"__apportion_known_{i}" for i in range(len(names))]
    fields = [
        StructField(own, field.dataType) for own, field in zip(known, distinct.schema, strict=True)
    ]
    ranked = spark.createDataFrame(
        [(rank, *row) for rank, row in enumerate(sorted_values)],
        StructType([StructField("rank", LongType()), *fields]),
    )
    keys = ranked.selectExpr(f"even_key(rank, {p}, {n}) AS {quoted(name)}", *known)
    same = [rows[value].eqNullSafe(keys[own]) for value, own in zip(values, known, strict=True)]
    return rows.join(keys.hint("broadcast"), reduce(and_, same), "left").drop(*values, *known)


def _collected(field: StructField) -> str:
    """Return the SQL expression that is collected for a column."""
    kind, name = field.dataType.typeName(), quoted(field.name)
    if kind not in _KEYS:
        raise InputError(
            f"column {field.name} is of type {field.dataType.simpleString()}, which is not "
            "supported for even keys: cast it to a string"
        )
    return _NUMBERS.get(kind, "{}").format(name)
