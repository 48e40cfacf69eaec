"""Digest of a result: Spark computes it where the rows are, so that the driver never holds them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import DataType

_BUCKETS = 1024
# Bits of a hash that are dropped, so that the sum over a bucket does not overflow.
_DROPPED_BITS = 24
# Relative differences that another order of additions can cause.
_TOLERANCES = {"double": 1e-9, "float": 1e-6}
# Numbers in arrays, structs and maps are compared by their first digits.
_NESTED_FORMAT = "%.5e"


class Digest(NamedTuple):
    """Counts, hashes and sums of the rows in each bucket of rows with the same hash."""

    buckets: dict[int, Row]
    tolerances: list[float]
    """Tolerance for each pair of columns `sum` and `size` in a bucket."""

    def equals(self, other: Digest) -> bool:
        """Return whether two results have the same rows, in any order.

        Sums of floating-point numbers may differ by a relative 1e-9, and of 32-bit floats by 1e-6.
        """
        return self.buckets.keys() == other.buckets.keys() and all(
            self._same(bucket, other.buckets[key]) for key, bucket in self.buckets.items()
        )

    def _same(self, one: Row, other: Row) -> bool:
        return all(one[name] == other[name] for name in ("rows", "total", "parity")) and all(
            _near(one[f"sum{place}"], other[f"sum{place}"], tolerance * one[f"size{place}"])
            for place, tolerance in enumerate(self.tolerances)
        )


def digest(frame: DataFrame) -> Digest:
    """Run a query and return the digest of its rows. The driver gets 1,024 rows at most.

    Raises Spark's errors.
    """
    from pyspark.sql import functions as f

    fields = [field.dataType for field in frame.schema]
    # Columns can have the same name.
    frame = frame.toDF(*(f"c{place}" for place in range(len(fields))))
    columns = [(f.col(f"c{place}"), kind) for place, kind in enumerate(fields)]
    exact: list[Column] = []
    floats: list[tuple[Column, float]] = []
    for column, kind in columns:
        # A hash skips nulls, so it also gets their places.
        exact.append(column.isNull())
        if kind.typeName() not in _TOLERANCES:
            exact.append(_hashable(column, kind))
            continue
        # NaN is equal to itself in Spark.
        is_finite = ~f.isnan(column) & (f.abs(column) < math.inf)
        exact.append(f.when(~is_finite, column.cast("string")))
        number = f.when(is_finite, column.cast("double")).otherwise(0.0)
        floats.append((number, _TOLERANCES[kind.typeName()]))
    hashed = frame.select(
        f.xxhash64(*exact).alias("hash") if exact else f.lit(0).cast("bigint").alias("hash"),
        *(number.alias(f"f{place}") for place, (number, _) in enumerate(floats)),
    )
    terms = list(_terms(f.col("hash"), len(floats)))
    sums = [
        aggregate
        for place, term in enumerate(terms)
        for aggregate in (
            f.sum(term).alias(f"sum{place}"),
            f.sum(f.abs(term)).alias(f"size{place}"),
        )
    ]
    rows = (
        hashed.groupBy(f.expr(f"pmod(hash, {_BUCKETS})").alias("bucket"))
        .agg(
            f.count(f.lit(1)).alias("rows"),
            f.sum(f.shiftright("hash", _DROPPED_BITS)).alias("total"),
            f.expr("bit_xor(hash)").alias("parity"),
            *sums,
        )
        .collect()
    )
    widest = max((tolerance for _, tolerance in floats), default=0.0)
    return Digest({row["bucket"]: row for row in rows}, [widest] * len(terms))


def _terms(hashed: Column, floats: int) -> Iterator[Column]:
    """Yield the numbers to sum.

    The weight differs between rows, and the logarithm between numbers with the same sum. Products
    find numbers that are in another row than their neighbour.
    """
    from pyspark.sql import functions as f

    weight = f.expr("1 + pmod(shiftright(hash, 10), 1024) / 1024D")
    for place in range(floats):
        number = f.col(f"f{place}")
        yield number * weight
        yield f.asinh(number) * weight
        if place:
            yield f.asinh(number) * f.asinh(f.col(f"f{place - 1}")) * weight


def _hashable(column: Column, kind: DataType) -> Column:
    """Return a column that Spark can hash: text for nested types and types without a hash."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructField, StructType

    match kind.typeName():
        case "double" | "float":
            return f.format_string(_NESTED_FORMAT, column)
        case "array":
            element = kind.elementType  # type: ignore[attr-defined]
            return f.to_json(f.transform(column, lambda each: _text(each, element)))
        case "struct":
            # Fields can have the same name.
            parts = kind.fields  # type: ignore[attr-defined]
            types = {f"c{place}": field.dataType for place, field in enumerate(parts)}
            renamed = column.cast(StructType([StructField(*each) for each in types.items()]))
            fields = [_text(renamed[name], each).alias(name) for name, each in types.items()]
            return f.when(column.isNotNull(), f.to_json(f.struct(*fields))) if fields else f.lit("")
        case "map":
            key, value = kind.keyType, kind.valueType  # type: ignore[attr-defined]
            entries = f.transform(
                f.map_entries(column),
                lambda entry: f.struct(
                    _text(entry["key"], key).alias("key"), _text(entry["value"], value).alias("v")
                ),
            )
            # Maps have no order.
            return f.to_json(f.array_sort(entries))
        case "binary":
            return f.hex(column)
        case "variant":
            return f.to_json(column)
        case _:
            return column


def _text(column: Column, kind: DataType) -> Column:
    return _hashable(column, kind).cast("string")


def _near(one: float, other: float, allowed: float) -> bool:
    return one == other or abs(one - other) <= allowed or (math.isnan(one) and math.isnan(other))
