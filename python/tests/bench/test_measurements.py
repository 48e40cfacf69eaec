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


def test_worse_plans_are_marked() -> None:
    worse = dataclasses.replace(PLAN, exchanges=4, files=2, tasks=9)
    page = plans.page(
        {
            "tpch": results(
                same=QueryResult("", plans={"off": PLAN, "on": PLAN}),
                worse=QueryResult("", plans={"off": PLAN, "on": worse}),
                different=QueryResult("", plans={"off": PLAN, "on": PLAN}, different=["on"]),
                broken=QueryResult("", plans={"off": PLAN}, failures={"on": "no luck"}),
                unknown=QueryResult("", failures={"off": "no such table"}),
            )
        }
    )
    assert "\n1 of 4 queries: never worse, and the same result.\n" in page
    rest = " | ".join(["3"] * 5)
    assert f"| same | 3 | {rest} | 3 | 3 | 3 | 3 | same |" in page
    assert f"| worse | **3 → 4** | {rest} | 3 → 2 | 3 | 3 | 3 → 9 | same |" in page
    assert "| different | 3 |" in page
    assert "| **different** |" in page
    assert "**failed**: no luck" in page
    assert "Spark itself does not run 1 of the queries." in page
    assert "| unknown |" not in page
    assert "| all | **9 → 10** |" in page


def test_numbers_of_partitions_beside_each_other(tmp_path: Path) -> None:
    variants = partition_counts.variants()
    conditions = Conditions("trial", None, None, variants, 2, 1, False, conf={})
    runs = {each.name: [run(4), run(6)] for each in variants} | {"2048": [run(8), run(6)]}
    found = {"trial": Results(conditions, ENVIRONMENT, {"window": QueryResult("", runs)})}
    page = partition_counts.page(found, "pictures/a.png")
    assert "- Trial: slowest with 2,048 partitions, 0.75; Apportion 1.00" in page
    assert "| 2048 | 0.75 (0.50 to 1.00) | window: 0.75 (0.50 to 1.00) | 2 | 30 |" in page
    assert "| 200 | baseline |" in page
    partition_counts.draw(found, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_parts_are_chosen_by_name() -> None:
    assert [part.name for part in partition_counts.choose("trial,tpch-1")] == ["trial", "tpch-1"]
    assert "trial" not in [part.name for part in partition_counts.choose(None)]
    with pytest.raises(ApportionError, match=r"unknown part 'tpch-2'\. Did you mean tpch-1"):
        partition_counts.choose("tpch-2")


def test_what_grows_with_queries() -> None:
    before = {"kept": 10, "session": 5, "listeners": 4}
    after = {"kept": 12, "session": 105, "listeners": 4, "new": 200}
    assert dict(heap_growth.grown(before, after, 100)) == {"session": 1.0, "new": 2.0}
