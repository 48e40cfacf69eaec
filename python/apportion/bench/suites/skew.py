"""Tables with skewed keys, and queries that shuffle them by these keys.

`zipf`, `lognormal` and `hot` have 1.3 million rows each at scale 1. They are joined to the table
`keys`, which has one row per key. Distribution of the keys:

- zipf: the share of the k-th key is proportional to k^-1.2; the first key has 1/7 of the rows
- lognormal: keys are exp(4 + 2z) for a standard normal z; the most frequent key has about 3 %
- hot: five keys have 10 % of the rows each, the others share the rest equally

Every row has a payload of 50 characters, the base64 text of a hash, which hardly compresses. All
values are hashes of row numbers, so the same scale gives the same rows everywhere.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from apportion.bench.suites.generated import get_or_build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With these sizes, the scans and shuffles of scale 1 (tens of MB) have a dozen tasks or more.
CONF = {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4MB",
    "spark.sql.files.maxPartitionBytes": "4MB",
}

_ROWS = 1_300_000
_KEYS = 100_000
_FILES = 32
_TABLE_BYTES_PER_SCALE = 83_000_000
_PAYLOAD = "substr(base64(unhex(sha2(CAST(id AS string), 384))), 1, 50)"


def _uniform(seed: int) -> str:
    """Return an SQL expression for a pseudo-random number above 0 and below 1."""
    return f"((shiftrightunsigned(xxhash64(id, {seed}), 11) + 0.5D) / {2**53}D)"


_DISTRIBUTIONS = {
    # Inverse of the distribution function of a power law between 1 and the number of keys.
    "zipf": f"pow(1 - {_uniform(1)} * (1 - pow({_KEYS}, -0.2D)), -5)",
    "lognormal": f"exp(4 + 2 * sqrt(-2 * ln({_uniform(1)})) * cos(2 * pi() * {_uniform(2)}))",
    "hot": f"{_uniform(2)} * if({_uniform(1)} < 0.5D, 5, {_KEYS})",
}

TABLES = (*_DISTRIBUTIONS, "keys")

# The results are small, so they are cheap to compare, and depend on every row.
_QUERIES = {
    "join": """\
SELECT /*+ MERGE(keys) */ region, count(*) AS n, max(concat(payload, label)) AS last
FROM {table} JOIN keys ON {table}.key = keys.key
GROUP BY region""",
    "aggregate": """\
SELECT count(*) AS n, sum(payloads) AS payloads, sum(median) AS medians
FROM (
  SELECT key, size(collect_set(payload)) AS payloads, percentile(value, 0.5) AS median
  FROM {table}
  GROUP BY key
)""",
    "window": """\
SELECT count(*) AS n, max(payload) AS last
FROM (
  SELECT payload, row_number() OVER (PARTITION BY key ORDER BY payload) AS place
  FROM {table}
)
WHERE place % 2 = 0""",
    "rebalance": """\
SELECT count(*) AS n, max(payload) AS last, sum(value) AS total
FROM (SELECT /*+ REBALANCE(key) */ * FROM {table})""",
}


def queries() -> dict[str, str]:
    """Return the queries by name. A name is the distribution and the kind, such as `zipf-join`."""
    return {
        f"{table}-{kind}": sql.format(table=table)
        for table in _DISTRIBUTIONS
        for kind, sql in _QUERIES.items()
    }


def generate(
    spark: SparkSession, scale: float, directory: Path, tables: Collection[str] = TABLES
) -> Path:
    """Generate the tables that do not exist, and return their folder `<directory>/skew-<scale>`.

    `scale` multiplies the rows, but not the 100,000 keys. Raises Spark's errors. Raises
    `ApportionError` if the disk has not enough space.
    """
    folder = directory / f"skew-{scale:g}"
    for table in tables:
        write = partial(_write, spark, _query(table, scale))
        get_or_build(folder / table, write, round(_TABLE_BYTES_PER_SCALE * scale))
    return folder


def _query(table: str, scale: float) -> str:
    """Return a query for the rows of a table."""
    if table == "keys":
        return f"""
            SELECT id AS key, id % 50 AS region, {_PAYLOAD} AS label
            FROM range(0, {_KEYS}, 1, {_FILES})"""
    return f"""
        SELECT pmod(CAST({_DISTRIBUTIONS[table]} AS bigint), {_KEYS}) AS key,
          pmod(xxhash64(id, 3), 1000) AS value, {_PAYLOAD} AS payload
        FROM range(0, {max(1, round(_ROWS * scale))}, 1, {_FILES})"""


def _write(spark: SparkSession, query: str, folder: Path) -> None:
    spark.sql(query).write.mode("append").parquet(str(folder))
