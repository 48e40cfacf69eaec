"""Even keys for columns of any values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from apportion._util.identifiers import quoted
from apportion.errors import InputError
from apportion.keys.columns import collect_few, names_of, subpartitions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

# Values of these are the same after they were in Python. Timestamps are not as they are: there they
# would be local time, of which an hour in the year occurs twice.
_KEYS = {
    *("boolean", "byte", "short", "integer", "long", "float", "double", "decimal"),
    *("string", "binary", "date", "timestamp_ntz", "timestamp"),
}


def spread(
    df: DataFrame, cols: str | Sequence[str], p: int, n: int | None = None, name: str = "even_key"
) -> DataFrame:
    """Return `df` with a column more: a surrogate that deals the values of `cols` evenly.

    Values are numbered from 0 on in their order (a dense rank), NULL as well, and the surrogate is
    `even_key(rank, p, n)`: after `repartition(n, name)` the rows of a value are in one partition,
    and no task has two values more than another. It is a BIGINT, one for each value, so that
    grouping by it is as good as by `cols`.

    One query collects the distinct values, `MOST_VALUES` at most; they are broadcast to the rows.
    Works with Spark Connect too.

    Raises `InputError` for more values, columns that are not there or of types that are no keys
    (cast them to a string), and numbers other than 1 <= p <= n < 2^31 with p <= 2^20; and
    `ApportionError` when the session has no Apportion in it.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    names = names_of(df, cols)
    if name.lower() in (column.lower() for column in df.columns):
        raise InputError(f"name is {name}: there is such a column already")
    spark = df.sparkSession
    n = subpartitions_of(spark, p, n)

    values = [f"__apportion_value_{i}" for i in range(len(names))]
    collected = [_collected(df.schema[each]) for each in names]
    rows = df.selectExpr(
        "*", *(f"{how} AS {value}" for how, value in zip(collected, values, strict=True))
    )
    distinct = rows.select(*values).distinct()
    found = collect_few(distinct, values, values, names)

    known = [f"__apportion_known_{i}" for i in range(len(names))]
    fields = [
        StructField(own, field.dataType) for own, field in zip(known, distinct.schema, strict=True)
    ]
    ranked = spark.createDataFrame(
        [(rank, *row) for rank, row in enumerate(found)],
        StructType([StructField("rank", LongType()), *fields]),
    )
    keys = ranked.selectExpr(f"even_key(rank, {p}, {n}) AS {quoted(name)}", *known)
    same = [rows[value].eqNullSafe(keys[own]) for value, own in zip(values, known, strict=True)]
    return rows.join(keys.hint("broadcast"), reduce(and_, same), "left").drop(*values, *known)


def _collected(field: StructField) -> str:
    """Return the expression whose values are collected for a column."""
    kind, name = field.dataType.typeName(), quoted(field.name)
    if kind not in _KEYS:
        raise InputError(
            f"column {field.name} is of type {field.dataType.simpleString()}, which makes no keys: "
            "cast it to a string"
        )
    return f"unix_micros({name})" if kind == "timestamp" else name
