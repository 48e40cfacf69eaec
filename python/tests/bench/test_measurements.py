"""The programs that measure: the raw files that they write, and the speedups of these."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from apportion import ApportionError
from apportion.bench.environment import Environment
from apportion.bench.plans import FIELDS, PlanCounts
from apportion.bench.results import Conditions, QueryResult, Results
from measurements import raw
from measurements.checks import heap_growth, plans, rules
from measurements.raw import RawFile
from measurements.speed import queries
from measurements.speed.summary import Speed

from .conftest import run

ENVIRONMENT = Environment("4.2.0", "17", "0.1.0", "local[2]", 2)
PLAN = PlanCounts(**dict.fromkeys(FIELDS, 3))
CONDITIONS = {"kind": "measured", "commit": "abc", "spark": "4.3.0"}


def timed(**seconds: list[float]) -> Speed:
    """Times of one query for each variant; `fixed_8` is the variant `fixed 8`."""
    rows = [
        {"query": "1", "variant": name.replace("_", " "), "seconds": str(second)}
        for name, runs in seconds.items()
        for second in runs
    ]
    return Speed(RawFile("timed", {}, rows))


def test_a_raw_file_keeps_its_conditions_and_rows(tmp_path: Path) -> None:
    raw.write("a", CONDITIONS, [{"query": "1, 2", "seconds": 1.5}], tmp_path)
    found = raw.read("a", tmp_path)
    assert found.conditions == CONDITIONS
    assert found.rows == [{"query": "1, 2", "seconds": "1.5"}]
    assert found.where(query="1, 2") == found.rows


def test_a_raw_file_without_its_conditions_is_refused(tmp_path: Path) -> None:
    raw.write("a", {"kind": "measured"}, [{"query": 1}], tmp_path)
    with pytest.raises(ApportionError, match=r"a\.csv does not say its commit, spark"):
        raw.read("a", tmp_path)
    raw.write("a", CONDITIONS | {"kind": "guessed"}, [{"query": 1}], tmp_path)
    with pytest.raises(ApportionError, match=r"kind is 'guessed'\. Allowed is: measured"):
        raw.read("a", tmp_path)


def test_a_speedup_is_the_ratio_of_the_same_round() -> None:
    speed = timed(Spark=[4, 6, 8], Apportion=[2, 3, 2], fixed_8=[1, 6, 8], fixed_16=[8, 6, 8])
    assert speed.mean("Apportion") == 2
    assert speed.fixed == ["fixed 8", "fixed 16"]
    assert speed.best_fixed == "fixed 8"
    assert speed.worst("fixed 16") == ("1", 1)
    assert speed.slower("fixed 16", below=1.5) == ["1"]
    # The least times: 1 s with 8 partitions, and 2 s with Apportion.
    assert speed.oracle == 0.5


def test_a_file_without_sparks_defaults_is_compared_with_apportion() -> None:
    speed = timed(Apportion=[2], fixed_8=[1])
    assert speed.mean("fixed 8") == 2
    assert next(speed.table()).startswith("| variant | times faster than Apportion |")


def test_timed_queries_become_rows() -> None:
    variants = queries.variants("8")
    assert [variant.name for variant in variants] == ["Spark", "Apportion", "fixed 8"]
    conditions = Conditions("tpch", 1, None, variants, 2, 1, False, conf={})
    results = Results(conditions, ENVIRONMENT, {"3": QueryResult("", {"Spark": [run(4), run(6)]})})
    first, second = queries.rows(results)
    assert (first["query"], first["variant"], first["run"]) == ("03", "Spark", 1)
    assert (first["seconds"], second["seconds"]) == ("4.000", "6.000")


def test_queries_are_timed_under_all_variants(spark: SparkSession, tmp_path: Path) -> None:
    queries.main("maps", scale=0.001, queries="8", fixed="4", rounds=2, warmups=0, folder=tmp_path)
    found = raw.read("maps-0.001", tmp_path)
    assert [(row["variant"], row["run"]) for row in found.rows] == [
        (variant, run) for variant in ("Spark", "Apportion", "fixed 4") for run in ("1", "2")
    ]
    assert found.conditions["spark"] == spark.version
    assert len([*Speed(found).table()]) == 5


def test_a_threshold_for_hash_joins_is_set_for_fixed_numbers_only() -> None:
    spark, ours, fixed = queries.variants("8", hash_joins="64m")
    assert queries.HASH_JOINS not in {**spark.conf, **ours.conf}
    assert fixed.conf[queries.HASH_JOINS] == "64m"


@pytest.mark.parametrize("fixed", ["8,many", "0", "-1"])
def test_a_fixed_number_must_be_a_whole_number(fixed: str) -> None:
    with pytest.raises(ApportionError, match=r"is not a whole number from 1"):
        queries.variants(fixed)


def test_plans_become_a_row_for_off_and_on() -> None:
    conditions = Conditions("tpch", 0.1, None, [plans.OFF, plans.ON], 0, 0, True, {}, plans=True)
    found = {
        "same": QueryResult("", plans={"off": PLAN, "on": PLAN}),
        "broken": QueryResult("", plans={"off": PLAN}, failures={"on": "no luck"}),
        "unknown": QueryResult("", failures={"off": "no such table"}),
    }
    rows = list(plans.rows({"tpch": Results(conditions, ENVIRONMENT, found)}))
    assert [(row["query"], row["apportion"], row["tasks"], row["result"]) for row in rows] == [
        ("same", "off", 3, "same"),
        ("same", "on", 3, "same"),
        ("broken", "off", 3, "same"),
        ("broken", "on", "", "failed: no luck"),
    ]


def test_heap_growth_counts_objects_per_query() -> None:
    before = {"kept": 10, "session": 5, "listeners": 4}
    after = {"kept": 12, "session": 105, "listeners": 4, "new": 200}
    assert dict(heap_growth.grown(before, after, 100)) == {"session": 1.0, "new": 2.0}


def test_the_time_of_rules_is_a_part_of_the_time_of_a_query(spark: SparkSession) -> None:
    seconds, of_rules = rules.measured(spark, "SELECT id % 7, count(*) FROM range(100) GROUP BY 1")
    assert 0 < of_rules < seconds
