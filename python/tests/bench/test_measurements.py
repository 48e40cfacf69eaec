"""The programs that measure: the pages that they write of results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from apportion import ApportionError
from apportion.bench.environment import Environment
from apportion.bench.plans import FIELDS, PlanCounts
from apportion.bench.results import Conditions, QueryResult, Results
from measurements import heap_growth, partition_counts, plans

from .conftest import run

ENVIRONMENT = Environment("4.2.0", "17", "0.1.0", "local[2]", 2)
PLAN = PlanCounts(**dict.fromkeys(FIELDS, 3))


def results(**queries: QueryResult) -> Results:
    conditions = Conditions(
        "tpch", 0.1, None, [plans.OFF, plans.ON], 0, 0, True, conf={}, plans=True
    )
    return Results(conditions, ENVIRONMENT, queries)


def test_the_page_of_plans_marks_worse_plans() -> None:
    worse = dataclasses.replace(PLAN, exchanges=4, files=2, tasks=9)
    of_tpch = results(
        same=QueryResult("", plans={"off": PLAN, "on": PLAN}),
        worse=QueryResult("", plans={"off": PLAN, "on": worse}),
        different=QueryResult("", plans={"off": PLAN, "on": PLAN}, different=["on"]),
        broken=QueryResult("", plans={"off": PLAN}, failures={"on": "no luck"}),
        unknown=QueryResult("", failures={"off": "no such table"}),
    )
    page = plans.page({"tpch": of_tpch})
    assert "\n1 of 4 queries have the same result with Apportion, and no count" in page
    rest = " | ".join(["3"] * 5)
    assert f"| TPC-H worse | **3 → 4** | {rest} | 3 → 2 | 3 | 3 | 3 → 9 | same |" in page
    assert "| TPC-H different | 3 |" in page
    assert "| **different** |" in page
    assert "**failed**: no luck" in page
    assert "Spark itself does not run 1 of the queries." in page
    assert "TPC-H unknown" not in page
    assert "TPC-H same" not in page
    assert "| TPC-H: 4 | **9 → 10** |" in page


def test_the_csv_of_plans_has_every_plan_that_ran() -> None:
    of_tpch = results(
        same=QueryResult("", plans={"off": PLAN, "on": PLAN}),
        broken=QueryResult("", plans={"off": PLAN}, failures={"on": "no luck"}),
        unknown=QueryResult("", failures={"off": "no such table"}),
    )
    head, *lines = plans.counts_csv({"tpch": of_tpch}).splitlines()
    assert head.startswith("benchmark,query,apportion,exchanges,")
    threes = ",".join(["3"] * len(FIELDS))
    assert lines == [
        f"TPC-H,same,off,{threes},same",
        f"TPC-H,same,on,{threes},same",
        f"TPC-H,broken,off,{threes},same",
        f"TPC-H,broken,on,{',' * (len(FIELDS) - 1)},failed: no luck",
    ]


def test_the_page_of_partition_counts_compares_numbers(tmp_path: Path) -> None:
    variants = partition_counts.variants()
    conditions = Conditions("trial", None, None, variants, 2, 1, False, conf={})
    runs = {each.name: [run(4), run(6)] for each in variants} | {"2048": [run(8), run(6)]}
    found = {"trial": Results(conditions, ENVIRONMENT, {"window": QueryResult("", runs)})}
    page = partition_counts.page(found, "pictures/a.png")
    ones = " | ".join(["1.00"] * 7)
    assert f"| Trial | {ones} | 0.75 | 1.00 | window: 1.00 |" in page
    assert "- Trial: queries window; 2 rounds; " in page
    lines = partition_counts.results_csv(found).splitlines()
    assert "trial,2048,0.75,,,window,0.75,2,30" in lines
    assert "trial,200,1.00,,,,,2,30" in lines
    partition_counts.draw(found, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_parts_of_a_measurement_are_chosen_by_name() -> None:
    assert [part.name for part in partition_counts.choose("trial,tpch-1")] == ["trial", "tpch-1"]
    assert "trial" not in [part.name for part in partition_counts.choose(None)]
    with pytest.raises(ApportionError, match=r"unknown part 'tpch-2'\. Did you mean tpch-1"):
        partition_counts.choose("tpch-2")


def test_heap_growth_counts_objects_per_query() -> None:
    before = {"kept": 10, "session": 5, "listeners": 4}
    after = {"kept": 12, "session": 105, "listeners": 4, "new": 200}
    assert dict(heap_growth.grown(before, after, 100)) == {"session": 1.0, "new": 2.0}
