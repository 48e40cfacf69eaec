"""`apportion.decide`, on the cases that Flink's own code computed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import apportion
from apportion import ApportionError, Input, InputError, SettingError
from apportion.decision import HeldRows

VECTORS = Path(__file__).parents[2] / "jvm/src/test/resources/vectors/flink"
MOST_SUBPARTITIONS = 1 << 16


def vectors(name: str) -> list[Any]:
    lines = (VECTORS / f"{name}.jsonl").read_text().splitlines()
    return [pytest.param(json.loads(line), id=f"{name}-{i}") for i, line in enumerate(lines, 1)]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


@pytest.mark.parametrize("vector", vectors("decide"))
def test_the_number_of_tasks_matches_flink(session: SparkSession, vector: dict[str, Any]) -> None:
    # Flink divides by zero where v is 0.
    if "error" in vector or vector["v"] == 0:
        with pytest.raises(SettingError):
            decide(session, vector)
        return
    decision = decide(session, vector)
    expected = vector["parallelism"]
    if decision.raw is not None and decision.raw > 2**30:
        expected = vector["normalizedMax"]  # Flink's 32-bit integer overflows.
    elif vector["v"] == 1 and decision.broadcast_bytes > 0:
        # Flink lets a broadcast take up all of v, and divides by zero.
        power = min((1 << k for k in range(31)), key=lambda p: (abs(p - decision.input_bytes), -p))
        expected = max(vector["normalizedMin"], min(vector["normalizedMax"], power))
    limit = decision.subpartitions or expected
    assert decision.parallelism == min(expected, limit)


def decide(session: SparkSession, vector: dict[str, Any]) -> apportion.Decision:
    """Decide with the vector's bytes, which are those of upstream partitions, in a first
    subpartition of as many as there can be tasks, so that their number limits nothing.
    """
    subpartitions = min(vector.get("normalizedMax", 1), MOST_SUBPARTITIONS)
    inputs = [
        Input([sum(each["partitionBytes"])] + [0] * (subpartitions - 1), each["broadcast"])
        for each in vector["inputs"]
    ]
    return apportion.decide(
        session,
        inputs,
        mode="active",
        data_volume_per_task=vector["v"],
        min_parallelism=vector["min"],
        max_parallelism=vector["max"],
        sources_default_parallelism=vector["defaultSource"],
    )


@pytest.mark.parametrize("vector", vectors("normalize"))
def test_the_nearest_power_of_two_matches_flink(
    session: SparkSession, vector: dict[str, Any]
) -> None:
    decision = apportion.decide(
        session, [Input([vector["x"]])], mode="active", data_volume_per_task=1
    )
    # No bytes still make one task; above 2^30 Flink's 32-bit integer overflows.
    expected = {0: 1, 3 * 2**29: 2**31}.get(vector["x"], vector["normalized"])
    assert decision.rounded == expected


@pytest.mark.parametrize("vector", vectors("ranges"))
def test_even_ranges_match_flink(session: SparkSession, vector: dict[str, Any]) -> None:
    subpartitions, tasks = vector["p"], vector["n"]
    ranges = apportion.decide(session, [Input([1] * subpartitions)], parallelism=tasks).ranges
    if tasks > subpartitions:
        # An error in Flink; here subpartitions limit the tasks.
        assert ranges == [(k, k + 1) for k in range(subpartitions)]
    elif "ranges" in vector:
        assert ranges == [(start, end + 1) for start, end in vector["ranges"]]
    else:
        k = vector["k"]
        assert len(ranges) == tasks
        if k < tasks:
            assert ranges[k] == (k * subpartitions // tasks, (k + 1) * subpartitions // tasks)
        # From here on Flink's 32-bit integer overflows.
        if k < tasks and (k + 1) * subpartitions < 2**31:
            assert ranges[k] == (vector["start"], vector["end"] + 1)


def test_decide_returns_all_fields_of_a_decision(session: SparkSession) -> None:
    decision = apportion.decide(
        session,
        [Input([250_000] * 128), Input([64_000], broadcast=True)],
        data_volume_per_task="1MB",
        max_parallelism=100,
        mode="active",
    )
    assert decision.input_bytes == 32_000_000
    assert decision.broadcast_bytes == 64_000
    assert decision.data_volume_per_task == 1 << 20
    assert decision.broadcast_cap == 1 << 19
    assert decision.raw == 33
    assert decision.rounded == 32
    assert decision.clamps == []
    assert decision.subpartitions == 128
    assert decision.parallelism == decision.tasks == 32
    assert decision.ranges == [(k, k + 4) for k in range(0, 128, 4)]
    assert decision.largest_task_bytes == decision.mean_task_bytes == 1_000_000
    assert decision.sources["dataVolumePerTask"] == "session setting"
    assert decision.sources["minParallelism"] == "default"
    assert (decision.layout, decision.kind) == ("even", "formula")
    assert decision.reason.startswith("32 tasks: 30.5 MiB at 1 MiB per task")


def test_numbers_of_numpy_decide_as_python_numbers_do(session: SparkSession) -> None:
    sizes: Any = np.array([250_000] * 128)
    held = HeldRows(np.float32(1), [np.float32(2)])
    decision = apportion.decide(session, [Input(sizes, held=held)])
    same = Input([250_000] * 128, held=HeldRows(1, [2]))
    assert decision.ranges == apportion.decide(session, [same]).ranges


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([1, 2, 3], r"inputs\[0\] is \[1, 2, 3\]: allowed is an Input, such as Input\(\["),
        (Input([1], held=2.0), r"inputs\[0\] is Input\(.*held=2\.0\): allowed is an Input"),  # type: ignore[arg-type]
    ],
)
def test_inputs_of_another_type_raise(session: SparkSession, wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apportion.decide(session, [wrong])


@pytest.mark.parametrize("ratio", ["1", -1.0, math.nan, np.float32(math.inf)])
def test_invalid_ratios_of_held_rows_raise(session: SparkSession, ratio: Any) -> None:
    for held in (HeldRows(ratio), HeldRows(arrays=[ratio])):
        with pytest.raises(InputError, match=r"inputs\[0\]\.held has .*must be 0 or more"):
            apportion.decide(session, [Input([1], held=held)])


def test_decide_uses_the_settings_of_the_session(session: SparkSession) -> None:
    own = session.newSession()
    own.conf.set("spark.apportion.parallelism", "3")
    inputs = [Input([1] * 8)]
    assert apportion.decide(own, inputs).ranges == [(0, 2), (2, 5), (5, 8)]
    assert apportion.decide(own, inputs, parallelism=2).ranges == [(0, 4), (4, 8)]
    assert apportion.decide(own, inputs, parallelism=-1, mode="active").ranges == [(0, 8)]


def test_a_stage_without_inputs_has_the_default_number_of_tasks(session: SparkSession) -> None:
    assert apportion.decide(session, []).parallelism == 1
    assert apportion.decide(session, [], sources_default_parallelism=7).parallelism == 7


def test_sums_of_bytes_do_not_overflow(session: SparkSession) -> None:
    decision = apportion.decide(
        session, [Input([2**63 - 1] * 4), Input([2**63 - 1] * 4)], data_volume_per_task=2**62
    )
    assert decision.input_bytes == 2**63 - 1
    assert decision.parallelism == 2


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            [[1], [1, -1]],
            r"inputs\[1\]\.bytes\[1\] is -1: allowed is a whole number from 0 to 9",
        ),
        ([[2**63]], r"inputs\[0\]\.bytes\[0\] is 9223372036854775808"),
        ([[1.5]], r"inputs\[0\]\.bytes\[0\] is 1\.5: allowed is a whole number"),
        ([["1"]], r"inputs\[0\]\.bytes\[0\] is '1'"),
        ([[True]], r"inputs\[0\]\.bytes\[0\] is True"),
    ],
)
def test_invalid_bytes_raise(session: SparkSession, inputs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        apportion.decide(session, [Input(each) for each in inputs])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_paralelism": 4}, "Did you mean min_parallelism"),
        ({"data_volume_per_task": 0}, "data_volume_per_task is 0"),
        # Only the extension knows the session's other bound.
        ({"min_parallelism": 40_000}, "minParallelism is 40000 and maxParallelism is 32768"),
    ],
)
def test_invalid_settings_raise(session: SparkSession, settings: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        apportion.decide(session, [], **settings)


@pytest.mark.parametrize("parallelism", [0, -2, 2**31, True, 1.0])
def test_an_invalid_default_parallelism_of_sources_raises(
    session: SparkSession, parallelism: Any
) -> None:
    with pytest.raises(ApportionError, match=f"sources_default_parallelism is {parallelism}"):
        apportion.decide(session, [], sources_default_parallelism=parallelism)
