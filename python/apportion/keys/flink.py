"""Where Apache Flink's DataStream API puts keys, bit for bit.

A key's Java `hashCode`, hashed once more, gives its key group; key groups, of which a job has as
many as its maximum parallelism, are dealt to the parallel operators in contiguous ranges. In SQL
the same is `flink_key_group` and the functions beside it.

`key_groups` and `operator_indexes` give a list for a sequence, and a NumPy array for whatever NumPy
takes for an array: its own, columns of pandas and Arrow. NumPy is needed for these alone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import index as as_int
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, overload

from apportion._util import checks
from apportion.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_KEY_GROUPS = 1 << 15
"""The largest parallelism, and the most key groups, that Flink allows."""

_LEAST_MAX_PARALLELISM = 1 << 7
_32_BITS = (1 << 32) - 1
_64_BITS = (1 << 64) - 1
_KEPT_TABLES = 64

# Arithmetic is written once: for a word of 32 bits, an int, and for an array of them, of np.uint64.
_Words = Any


class Array(Protocol):
    """What NumPy takes for an array."""

    def __array__(self) -> Any: ...


def max_parallelism(parallelism: int) -> int:
    """Return the maximum parallelism that Flink gives operators of this parallelism by default.

    Raises `InputError` for a parallelism that is not from 1 to 32,768.
    """
    checks.check("parallelism", parallelism, most=MOST_KEY_GROUPS)
    ample = parallelism + parallelism // 2
    return min(max(checks.power_up(ample), _LEAST_MAX_PARALLELISM), MOST_KEY_GROUPS)


def key_group(key: int | str, max_parallelism: int, *, long: bool = False) -> int:
    """Return the key group of a key.

    A number is Java's `Integer`, or its `Long` with `long`, which matters for negative ones. Raises
    `InputError` for a key that is no such number and no text, and for a maximum parallelism that is
    not from 1 to 32,768.
    """
    checks.check("max_parallelism", max_parallelism, most=MOST_KEY_GROUPS)
    group: int = _murmur(_hash_code(key, long)) % max_parallelism
    return group


@overload
def key_groups(keys: Array, max_parallelism: int, *, long: bool = ...) -> NDArray[np.int64]: ...
@overload
def key_groups(
    keys: Sequence[int | str], max_parallelism: int, *, long: bool = ...
) -> list[int]: ...
def key_groups(
    keys: Array | Sequence[int | str], max_parallelism: int, *, long: bool = False
) -> NDArray[np.int64] | list[int]:
    """Return the key group of each key; otherwise as `key_group`."""
    if isinstance(keys, Sequence):
        return [key_group(key, max_parallelism, long=long) for key in keys]
    import numpy as np

    checks.check("max_parallelism", max_parallelism, most=MOST_KEY_GROUPS)
    array = np.asarray(keys)
    if array.dtype.kind in "iu":
        _check_key(array.min(initial=0), long)
        _check_key(array.max(initial=0), long)
        hashes = _hash_code_of_number(array.astype(np.uint64), long)
    else:
        codes = [_hash_code(key, long) for key in array.ravel().tolist()]
        hashes = np.array(codes, dtype=np.uint64).reshape(array.shape)
    groups: NDArray[np.int64] = (_murmur(hashes) % max_parallelism).astype(np.int64)
    return groups


def operator_index(key_group: int, parallelism: int, max_parallelism: int | None = None) -> int:
    """Return the index of the parallel operator that has a key group.

    `max_parallelism` is the default of this parallelism if it is None. As in Flink, nobody checks
    that there is such a key group. Raises `InputError` for a parallelism or maximum parallelism
    that is not from 1 to 32,768.
    """
    return key_group * parallelism // _key_groups_of(parallelism, max_parallelism)


@overload
def operator_indexes(
    key_groups: Array, parallelism: int, max_parallelism: int | None = ...
) -> NDArray[np.int64]: ...
@overload
def operator_indexes(
    key_groups: Sequence[int], parallelism: int, max_parallelism: int | None = ...
) -> list[int]: ...
def operator_indexes(
    key_groups: Array | Sequence[int], parallelism: int, max_parallelism: int | None = None
) -> NDArray[np.int64] | list[int]:
    """Return the index of the operator of each key group; otherwise as `operator_index`."""
    maximum = _key_groups_of(parallelism, max_parallelism)
    if isinstance(key_groups, Sequence):
        return [group * parallelism // maximum for group in key_groups]
    import numpy as np

    return np.asarray(key_groups, dtype=np.int64) * parallelism // maximum


def key_group_range(
    index: int, parallelism: int, max_parallelism: int | None = None
) -> tuple[int, int]:
    """Return the first and the last key group of the operator of this index.

    `max_parallelism` is the default of this parallelism if it is None. As in Flink, nobody checks
    that there is such an operator. Raises `InputError` for a parallelism that is not from 1 to
    32,768, and a maximum parallelism that is not from there to 32,768.
    """
    maximum = _key_groups_of(parallelism, max_parallelism, least=parallelism)
    start = (index * maximum + parallelism - 1) // parallelism
    return start, ((index + 1) * maximum - 1) // parallelism


def rebalance_keys(parallelism: int, max_parallelism: int | None = None) -> list[int]:
    """Return for each operator the least `Integer` key from 0 on that goes to it.

    Key `rebalance_keys(p)[k % p]` in place of k deals p keys, or any multiple, evenly. Raises as
    `key_group_range` does.
    """
    maximum = _key_groups_of(parallelism, max_parallelism, least=parallelism)
    return list(_rebalance_keys(parallelism, maximum))


@lru_cache(_KEPT_TABLES)
def _rebalance_keys(parallelism: int, maximum: int) -> tuple[int, ...]:
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < parallelism:
        keys.setdefault(_murmur(key) % maximum * parallelism // maximum, key)
        key += 1
    return tuple(key for _, key in sorted(keys.items()))


def _hash_code(key: object, long: bool) -> int:
    """Return Java's `hashCode` as 32 bits."""
    if isinstance(key, str):
        text = key.encode("utf-16-le", "surrogatepass")
        units = struct.unpack(f"<{len(text) // 2}H", text)
        return reduce(lambda code, unit: (31 * code + unit) & _32_BITS, units, 0)
    if isinstance(key, SupportsIndex) and not isinstance(key, bool):
        number = as_int(key)
        _check_key(number, long)
        code: int = _hash_code_of_number(number & _64_BITS, long)
        return code
    raise InputError(f"key is {key!r}: allowed is text or a whole number")


def _hash_code_of_number(bits: _Words, long: bool) -> _Words:
    return (bits ^ bits >> 32 if long else bits) & _32_BITS


def _murmur(code: _Words) -> _Words:
    """Return MurmurHash3 (x86, 32 bits, seed 0) of a word of 32 bits, without its sign."""
    word = _rotated(code * 0xCC9E2D51 & _32_BITS, 15) * 0x1B873593 & _32_BITS
    word = (_rotated(word, 13) * 5 + 0xE6546B64 & _32_BITS) ^ 4
    word = (word ^ word >> 16) * 0x85EBCA6B & _32_BITS
    word = (word ^ word >> 13) * 0xC2B2AE35 & _32_BITS
    word = word ^ word >> 16
    negative = word >> 31
    # Of -2^31, which has no opposite in 32 bits, Flink makes 0.
    return (word ^ negative * _32_BITS) + negative & _32_BITS >> 1


def _rotated(word: _Words, bits: int) -> _Words:
    return (word << bits | word >> (32 - bits)) & _32_BITS


def _key_groups_of(parallelism: int, maximum: int | None, least: int = 1) -> int:
    checks.check("parallelism", parallelism, most=MOST_KEY_GROUPS)
    if maximum is None:
        return max_parallelism(parallelism)
    checks.check("max_parallelism", maximum, least, MOST_KEY_GROUPS)
    return maximum


def _check_key(key: int, long: bool) -> None:
    limit = 1 << (63 if long else 31)
    if not -limit <= key < limit:
        hint = "" if long else "; larger ones are Java's Long: key_group(..., long=True)"
        raise InputError(f"key is {key}: allowed is -{limit} to {limit - 1}{hint}")
