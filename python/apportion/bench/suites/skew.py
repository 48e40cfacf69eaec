"""Tables with keys of very unequal weight, and queries that shuffle them by these keys.

`zipf`, `lognormal` and `hot` have 1.3 million rows each at scale 1; their keys are distributed as
the names say, and joined to the table `keys`, which has a row for each key:

- zipf: the k-th key has a share in proportion to k^-1.2; the first has a seventh of the rows
- lognormal: keys are exp(4 + 2z) for a standard normal z; the heaviest has about 3 %
- hot: five keys have a tenth of the rows each, the others share the rest equally

Every row has a payload of 50 characters, base64 of a hash, that hardly compresses. All values are
hashes of row numbers, so that the same scale gives the same rows everywhere.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from apportion._util.cache import made_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tasks so small that the scans and shuffles of scale 1, tens of MB, have a dozen of them or more.
CONF = {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4MB",
    "spark.sql.files.maxPartitionBytes": "4MB",
}

_ROWS = 1_300_000
_KEYS = 100_000
_FILES = 32
_PAYLOAD = "substr(base64(unhex(sha2(CAST(id AS string), 384))), 1, 50)"


def _uniform(seed: int) -> str:
    """Return SQL for a number above 0 and below 1 that looks random."""
    return f"((shiftrightunsigned(xxhash64(id, {seed}), 11) + 0.5D) / {2**53}D)"


_DISTRIBUTIONS = {
    # The inverse of the distribution function of a power law between 1 and the number of keys.
    "zipf": f"pow(1 - {_uniform(1)} * (1 - pow({_KEYS}, -0.2D)), -5)",
    "lognormal": f"exp(4 + 2 * sqrt(-2 * ln({_uniform(1)})) * cos(2 * pi() * {_uniform(2)}))",
    "hot": f"{_uniform(2)} * if({_uniform(1)} < 0.5D, 5, {_KEYS})",
}

# Results are small, so that comparing them costs little, and depend on every row.
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
    """Return the queries by name: distribution and kind, such as `zipf-join`."""
    return {
        f"{table}-{kind}": sql.format(table=table)
        for table in _DISTRIBUTIONS
        for kind, sql in _QUERIES.items()
    }


def generate(spark: SparkSession, scale: float, directory: Path) -> Path:
    """Make the tables and return their folder, `<directory>/skew-<scale>`, unless it is there.

    `scale` multiplies the rows, but not the 100,000 keys. Raises what Spark raises.
    """
    return made_once(directory / f"skew-{scale:g}", partial(_write_tables, spark, scale))


def _write_tables(spark: SparkSession, scale: float, folder: Path) -> None:
    rows = max(1, round(_ROWS * scale))
    tables = {
        name: f"""
            SELECT pmod(CAST({distribution} AS bigint), {_KEYS}) AS key,
              pmod(xxhash64(id, 3), 1000) AS value, {_PAYLOAD} AS payload
            FROM range(0, {rows}, 1, {_FILES})"""
        for name, distribution in _DISTRIBUTIONS.items()
    }
    tables["keys"] = f"""
        SELECT id AS key, id % 50 AS region, {_PAYLOAD} AS label
        FROM range(0, {_KEYS}, 1, {_FILES})"""
    for name, query in tables.items():
        spark.sql(query).write.parquet(str(folder / name))
