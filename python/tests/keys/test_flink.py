"""`apportion.keys.flink`, on the cases that Flink's own code computed, one by one and as arrays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apportion import InputError
from apportion.keys import flink

VECTORS = Path(__file__).parents[3] / "jvm/src/test/resources/vectors/flink/keygroups.jsonl"
ALL = [json.loads(line) for line in VECTORS.read_text().splitlines()]


def vectors(op: str) -> list[Any]:
    return [
        pytest.param(vector, id=f"line-{line}")
        for line, vector in enumerate(ALL, 1)
        if vector["op"] == op
    ]


def test_every_kind_of_flink_vector_is_tested() -> None:
    kinds = {"defaultMaxParallelism", "key", "keyGroupRange", "operatorIndex"}
    assert {vector["op"] for vector in ALL} == kinds


@pytest.mark.parametrize("vector", vectors("defaultMaxParallelism"))
def test_the_maximum_parallelism_matches_flink(vector: dict[str, Any]) -> None:
    if "error" in vector:
        with pytest.raises(InputError):
            flink.max_parallelism(vector["parallelism"])
    else:
        assert flink.max_parallelism(vector["parallelism"]) == vector["maxParallelism"]


@pytest.mark.parametrize("vector", vectors("key"))
def test_key_groups_of_keys_match_flink(vector: dict[str, Any]) -> None:
    long = vector["keyType"] == "long"
    group = flink.key_group(vector["key"], vector["maxParallelism"], long=long)
    assert group == vector["keyGroup"]
    index = flink.operator_index(group, vector["parallelism"], vector["maxParallelism"])
    assert index == vector["index"]


@pytest.mark.parametrize("vector", vectors("operatorIndex"))
def test_operator_indexes_match_flink(vector: dict[str, Any]) -> None:
    index = flink.operator_index(
        vector["keyGroup"], vector["parallelism"], vector["maxParallelism"]
    )
    assert index == vector["index"]


@pytest.mark.parametrize("vector", vectors("keyGroupRange"))
def test_key_group_ranges_match_flink(vector: dict[str, Any]) -> None:
    arguments = vector["index"], vector["parallelism"], vector["maxParallelism"]
    if "error" in vector:
        with pytest.raises(InputError):
            flink.key_group_range(*arguments)
    else:
        assert flink.key_group_range(*arguments) == (vector["start"], vector["end"])


@pytest.mark.parametrize("kind", ["int", "long", "string"])
def test_arrays_and_lists_of_keys_have_the_key_groups_of_flink(kind: str) -> None:
    for maximum in {vector["maxParallelism"] for vector in ALL if vector["op"] == "key"}:
        own = [v for v in ALL if v.get("keyType") == kind and v["maxParallelism"] == maximum]
        keys = [vector["key"] for vector in own]
        expected = [vector["keyGroup"] for vector in own]
        assert flink.key_groups(keys, maximum, long=kind == "long") == expected
        groups = flink.key_groups(np.array(keys), maximum, long=kind == "long")
        assert isinstance(groups, np.ndarray)
        assert groups.tolist() == expected


def test_arrays_and_lists_of_key_groups_have_operator_indexes() -> None:
    groups = list(range(128))
    expected = [flink.operator_index(group, 5) for group in groups]
    assert flink.operator_indexes(groups, 5) == expected
    assert flink.operator_indexes(np.array(groups, dtype=np.int16), 5).tolist() == expected
    assert flink.operator_indexes(np.array(groups), 5, 128).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_arrays_of_each_integer_type_and_shape_are_accepted(dtype: type[np.integer[Any]]) -> None:
    keys = np.array([[1, 2], [3, 4]], dtype=dtype)
    expected = [
        [flink.key_group(1, 128), flink.key_group(2, 128)],
        [flink.key_group(3, 128), flink.key_group(4, 128)],
    ]
    assert flink.key_groups(keys, 128).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int64, np.str_, object])
def test_empty_arrays_of_keys_are_accepted(dtype: Any) -> None:
    assert flink.key_groups(np.array([], dtype=dtype), 128).tolist() == []


def test_rebalance_keys_spread_ten_keys_evenly_over_five_operators() -> None:
    def indexes(keys: list[int]) -> list[int]:
        return flink.operator_indexes(flink.key_groups(keys, 128), 5)

    assert indexes(list(range(10))) == [3, 3, 4, 4, 0, 4, 0, 4, 0, 1]
    rebalanced = flink.rebalance_keys(5)
    assert rebalanced == [4, 9, 10, 0, 2]
    assert indexes([rebalanced[k % 5] for k in range(10)]) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("parallelism", [1, 2, 7, 100, 1000])
def test_every_operator_has_a_rebalance_key(parallelism: int) -> None:
    maximum = flink.max_parallelism(parallelism)
    groups = flink.key_groups(flink.rebalance_keys(parallelism), maximum)
    assert flink.operator_indexes(groups, parallelism) == list(range(parallelism))


def test_key_group_ranges_of_operators_are_consecutive() -> None:
    ranges = [flink.key_group_range(index, 7) for index in range(7)]
    groups = [group for start, end in ranges for group in range(start, end + 1)]
    assert groups == list(range(128))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("Berlin", 1986302914),
        ("Z\u00fcrich", -1482116162),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
        ("\ud83d", 0xD83D),
    ],
)
def test_hash_codes_of_text_match_java_over_utf_16(text: str, code: int) -> None:
    assert flink.key_group(text, 32768) == flink.key_group(code, 32768)


def test_a_murmur_hash_of_the_smallest_integer_counts_as_0() -> None:
    assert flink.key_group(-2089875627, 32768) == 0


def test_negative_numbers_have_other_key_groups_as_long() -> None:
    assert flink.key_group(-1, 128, long=True) == flink.key_group(0, 128)
    assert flink.key_group(-1, 128) != flink.key_group(0, 128)


@pytest.mark.parametrize(
    ("key", "long", "message"),
    [
        (2**31, False, r"key is 2147483648: allowed is -2147483648 to 2147483647\. Larger numbers"),
        (-(2**63) - 1, True, r"key is -9223372036854775809: allowed is -9223372036854775808 to"),
        (1.5, False, "key is 1.5: allowed are text and whole numbers"),
        (True, False, "key is True: allowed are text and whole numbers"),
        (None, False, "key is None: allowed are text and whole numbers"),
    ],
)
def test_invalid_keys_raise(key: Any, long: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        flink.key_group(key, 128, long=long)
    with pytest.raises(InputError, match=message):
        flink.key_groups(np.array([1, key], dtype=object), 128, long=long)


def test_arrays_with_too_large_numbers_raise() -> None:
    with pytest.raises(InputError, match="key is 2147483648: allowed is"):
        flink.key_groups(np.array([0, 2**31]), 128)
    with pytest.raises(InputError, match="key is 18446744073709551615: allowed is"):
        flink.key_groups(np.array([2**64 - 1], dtype=np.uint64), 128, long=True)


@pytest.mark.parametrize("number", [0, -1, 32769, 1.0, True])
def test_invalid_parallelism_raises(number: Any) -> None:
    for call in (
        lambda: flink.max_parallelism(number),
        lambda: flink.operator_index(0, number),
        lambda: flink.operator_index(0, 1, number),
        lambda: flink.rebalance_keys(number),
    ):
        with pytest.raises(InputError, match=f"is {number}: allowed is a whole number from 1 to 3"):
            call()
    with pytest.raises(InputError, match=r"max_parallelism is 4: allowed is .* from 5 to 32768"):
        flink.rebalance_keys(5, 4)


def test_numbers_of_numpy_have_the_results_of_python_numbers() -> None:
    group, parallelism, maximum = np.int16(100), np.int16(1000), np.int16(2000)
    assert flink.max_parallelism(parallelism) == flink.max_parallelism(1000)
    assert flink.key_group(7, maximum) == flink.key_group(7, 2000)
    assert flink.key_groups(np.array([7]), maximum).tolist() == [flink.key_group(7, 2000)]
    assert flink.operator_index(group, parallelism, maximum) == 50
    assert flink.operator_indexes([group], parallelism, maximum) == [50]
    assert flink.key_group_range(group, parallelism, maximum) == (200, 201)
    assert flink.rebalance_keys(np.int16(5)) == flink.rebalance_keys(5)


def test_flink_keys_need_neither_pyspark_nor_numpy() -> None:
    code = """
import sys
from apportion.keys import flink
flink.key_groups(["a", "b"], 128)
assert not {"pyspark", "numpy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_text_is_no_sequence_of_keys() -> None:
    with pytest.raises(InputError, match=r"keys is 'Berlin': allowed is a sequence, such as"):
        flink.key_groups("Berlin", 128)
