from __future__ import annotations

import pytest

from apportion.bench.environment import Environment
from apportion.bench.results import Conditions, QueryResult, Results, Run
from apportion.bench.variants import Variant


def run(seconds: float, tasks: int = 4) -> Run:
    """A run with half of its tasks reading 100 bytes each on average, and 150 the largest."""
    return Run(
        seconds=float(seconds),
        task_millis=2000,
        tasks=tasks,
        reduce_tasks=tasks // 2,
        shuffle_bytes=100 * (tasks // 2),
        largest_task_bytes=150,
        blocks_written=30,
    )


@pytest.fixture
def results() -> Results:
    """Three rounds of three queries; the last one fails under `b`."""
    conditions = Conditions(
        suite="made-up",
        scale=0.5,
        tables=None,
        variants=[Variant("a", {"x": "1"}), Variant("b", {"x": "2"})],
        rounds=3,
        warmups=1,
        check=True,
        conf={},
    )
    environment = Environment("4.2.1", "17", "0.1.0", "local[2]", 2)
    return Results(
        conditions,
        environment,
        {
            "q1": QueryResult(
                "SELECT 1", {"a": [run(4), run(6), run(8)], "b": [run(1), run(3), run(2)]}
            ),
            "q2": QueryResult(
                "SELECT 2",
                {"a": [run(1), run(1), run(1)], "b": [run(1, 8), run(1, 8), run(1, 8)]},
                different=["b"],
            ),
            "q3": QueryResult("SELECT 3", {"a": [run(1)] * 3}, failures={"b": "no luck"}),
        },
    )
