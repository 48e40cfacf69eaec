"""`apportion.keys.spread`: even keys for columns of any values."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from apportion import InputError
from apportion.keys import columns, spread
from tests.spark_version import since


@pytest.fixture(scope="module")
def visits(spark: SparkSession) -> DataFrame:
    """Ten rows for each of eleven cities, of which one is not known."""
    return spark.sql(
        "SELECT id, if(id % 11 = 10, NULL, concat('town ', id % 11)) AS city FROM range(110)"
    )


def partitions(frame: DataFrame) -> list[set[Any]]:
    """Return the cities in each partition."""
    rows = frame.selectExpr("spark_partition_id() AS task", "city").distinct().collect()
    cities: dict[int, set[Any]] = {}
    for row in rows:
        cities.setdefault(row["task"], set()).add(row["city"])
    return list(cities.values())


def test_spread_gives_every_task_equally_many_values(visits: DataFrame) -> None:
    tasks = partitions(spread(visits, "city", 5).repartition(5, "even_key"))
    assert sorted(len(cities) for cities in tasks) == [2, 2, 2, 2, 3]
    assert set.union(*tasks) == {None, *(f"town {i}" for i in range(10))}


def test_plain_hashing_gives_tasks_different_numbers_of_values(visits: DataFrame) -> None:
    tasks = partitions(visits.repartition(5, "city"))
    assert sorted(len(cities) for cities in tasks) != [2, 2, 2, 2, 3]


def test_spread_works_for_tasks_that_read_several_subpartitions(visits: DataFrame) -> None:
    keys = spread(visits, "city", 4, 32, name="key").selectExpr("task_of(4, 32, key) AS task")
    per_task = Counter(row["task"] for row in keys.collect())
    assert per_task == {0: 30, 1: 30, 2: 30, 3: 20}


def test_spread_keeps_rows_and_columns_and_gives_each_value_one_key(visits: DataFrame) -> None:
    keyed = spread(visits, ["city"], 5)
    assert keyed.columns == ["id", "city", "even_key"]
    assert keyed.schema["even_key"].dataType.simpleString() == "bigint"
    assert keyed.select("id", "city").exceptAll(visits).isEmpty()
    assert keyed.count() == visits.count()
    assert keyed.groupBy("even_key").agg({"city": "max"}).count() == 11
    assert keyed.where("even_key IS NULL").isEmpty()


@pytest.mark.parametrize(
    "values",
    [
        "CAST(id % 3 AS TINYINT)",
        "nullif(id % 3, 2) = 1",
        "CAST(id % 3 AS DECIMAL(20, 3))",
        "CASE id % 3 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.1D END",
        "CAST(id % 3 AS FLOAT) / 3",
        "date_add(DATE'2026-01-01', CAST(id % 3 AS INT))",
        "date_add(DATE'9999-12-30', CAST(id % 3 AS INT))",
        "timestamp_seconds(id % 3)",
        "TIMESTAMP_NTZ'9999-12-30' + make_dt_interval(CAST(id % 3 AS INT))",
        "TIMESTAMP_NTZ'2026-01-01 00:00:00.123456' + make_dt_interval(CAST(id % 3 AS INT))",
        "unhex(hex(id % 3))",
        pytest.param("concat(if(id < 6, 'a', 'A'), id % 3) COLLATE UTF8_LCASE", marks=since("4.0")),
    ],
)
def test_spread_accepts_columns_of_each_type(spark: SparkSession, values: str) -> None:
    frame = spark.sql(f"SELECT {values} AS value FROM range(12)")
    keyed = spread(frame, "value", 3).selectExpr("task_of(3, 3, even_key) AS task")
    assert Counter(row["task"] for row in keyed.collect()) == {0: 4, 1: 4, 2: 4}


def test_spread_separates_timestamps_in_the_repeated_hour(spark: SparkSession) -> None:
    # In Paris, clocks go back at 01:00 UTC: both are 02:30 there.
    frame = spark.sql("SELECT timestamp_seconds(1792888200 + 3600 * id) AS value FROM range(2)")
    assert spread(frame, "value", 2).select("even_key").distinct().count() == 2


def test_spread_accepts_several_columns_with_special_names(spark: SparkSession) -> None:
    frame = spark.sql("SELECT id % 2 AS `a.b`, id % 3 AS `it``s`, id % 2 AS count FROM range(24)")
    keyed = spread(frame, ["a.b", "it`s", "count"], 6)
    assert keyed.columns == ["a.b", "it`s", "count", "even_key"]
    per_task = Counter(row[0] for row in keyed.selectExpr("task_of(6, 6, even_key)").collect())
    assert per_task == dict.fromkeys(range(6), 4)


def test_spread_resolves_names_as_spark_does(spark: SparkSession) -> None:
    session = spark.newSession()
    frame = session.sql("SELECT id AS Tenant, id AS a, id AS A FROM range(4)")
    assert spread(frame, "tENANT", 2).columns == ["Tenant", "a", "A", "even_key"]
    with pytest.raises(InputError, match="column a is ambiguous: the columns are Tenant, a, A"):
        spread(frame, "a", 2)
    session.conf.set("spark.sql.caseSensitive", "true")
    assert spread(frame, "a", 2).columns == ["Tenant", "a", "A", "even_key"]
    with pytest.raises(InputError, match=r"no column tENANT\. Did you mean Tenant\?"):
        spread(frame, "tENANT", 2)


def test_spread_accepts_a_frame_without_rows(visits: DataFrame) -> None:
    assert spread(visits.where("false"), "city", 5).collect() == []


def test_spread_raises_for_too_many_values(
    visits: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MOST_VALUES", 10)
    message = r"city: there are more than 10 distinct values, .*: partition by the columns"
    with pytest.raises(InputError, match=message):
        spread(visits, "city", 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("citty", 5), r"there is no column citty\. Did you mean city\? Columns: id, city"),
        (([], 5), "cols is empty: allowed is one column name, or a list of names"),
        ((7, 5), "cols is 7: allowed is one column name, or a list of names"),
        ((["id", None], 5), "cols has None: allowed is one column name, or a list of names"),
        (("city", 5, None, None), "name is None: allowed is the name of the new column"),
        (("city", 0), "p is 0: allowed is a whole number from 1 to 1048576"),
        (("city", 2.0), r"p is 2\.0: allowed is a whole number"),
        (("city", 5, 4), "n is 4: allowed is a whole number from 5 to 2147483647"),
        (("city", 5, None, "ID"), "name is ID: the DataFrame already has a column"),
    ],
)
def test_spread_raises_for_wrong_arguments(visits: DataFrame, arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        spread(visits, *arguments)


def test_spread_raises_for_unsupported_types(spark: SparkSession) -> None:
    frame = spark.sql("SELECT array(id) AS ids FROM range(3)")
    with pytest.raises(InputError, match=r"ids is of type array<bigint>, .* cast it to a string"):
        spread(frame, "ids", 5)


PROGRAM = """
import sys
import apportion
from apportion.keys import spread
from pyspark.sql import SparkSession
{configure}
spark = builder.getOrCreate()
columns = "concat('city ', id % 10) AS city", "timestamp_seconds(id % 10) AS t"
rows = spark.range(100).selectExpr(*columns)
try:
    keyed = spread(rows, ["city", "t"], 5)
except apportion.ApportionError as error:
    sys.exit(str(error))
tasks = keyed.selectExpr("task_of(5, 5, even_key) AS task").groupBy("task").count().collect()
assert sorted(map(tuple, tasks)) == [(task, 20) for task in range(5)], tasks
"""


@pytest.mark.slow
@pytest.mark.usefixtures("connect")
def test_spread_works_on_spark_connect() -> None:
    code = PROGRAM.format(
        configure='builder = apportion.configure(SparkSession.builder.remote("local[1]"))'
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_spread_raises_in_a_session_without_apportion() -> None:
    code = PROGRAM.format(configure='builder = SparkSession.builder.master("local[1]")')
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "without Apportion's extension" in finished.stderr
