"""Key groups of Apache Flink's DataStream API, with exactly the same results.

Flink hashes the Java `hashCode` of a key to get its key group. The number of key groups is the
maximum parallelism of the job. Each parallel operator gets a contiguous range of key groups. In
SQL, use `flink_key_group` and the other `flink_*` functions.

`key_groups` and `operator_indexes` return a list for a sequence. They return a NumPy array for
anything that NumPy converts to an array, such as columns of pandas or Arrow. Only these two
functions need NumPy, and only for arrays.
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
"""Maximum parallelism that Flink allows, and so the maximum number of key groups."""

_LEAST_MAX_PARALLELISM = 1 << 7
_32_BITS = (1 << 32) - 1
_64_BITS = (1 << 64) - 1
_KEPT_TABLES = 64

# The arithmetic works on a 32-bit word as an int, and on an array of words as np.uint64.
_Words = Any


class Array(Protocol):
    """Value that NumPy converts to an array."""

    def __array__(self) -> Any: ...


def max_parallelism(parallelism: int) -> int:
    """Return Flink's default maximum parallelism for operators of this parallelism.

    Raises `InputError` unless `parallelism` is from 1 to 32,768.
    """
    parallelism = checks.check("parallelism", parallelism, most=MOST_KEY_GROUPS)
    ample = parallelism + parallelism // 2
    return min(max(checks.power_up(ample), _LEAST_MAX_PARALLELISM), MOST_KEY_GROUPS)


def key_group(key: int | str, max_parallelism: int, *, long: bool = False) -> int:
    """Return the key group of a key.

    A number is a Java `Integer`, or a `Long` if `long` is true. This matters for negative numbers.
    Raises `InputError` if the key is neither text nor a number of that type, and unless
    `max_parallelism` is from 1 to 32,768.
    """
    max_parallelism = checks.check("max_parallelism", max_parallelism, most=MOST_KEY_GROUPS)
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
    """Return the key group of each key. Arguments and errors are those of `key_group`.

    Raises `InputError` for a text, which is one key and not a sequence of keys.
    """
    if isinstance(keys, str | bytes):
        raise InputError(f"keys is {keys!r}: allowed is a sequence, such as [{keys!r}]")
    if isinstance(keys, Sequence):
        return [key_group(key, max_parallelism, long=long) for key in keys]
    import numpy as np

    max_parallelism = checks.check("max_parallelism", max_parallelism, most=MOST_KEY_GROUPS)
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
    """Return the index of the parallel operator that gets a key group.

    If `max_parallelism` is None, it is Flink's default for this parallelism. Like Flink, this
    function does not check that the key group exists. Raises `InputError` unless both parallelisms
    are from 1 to 32,768.
    """
    parallelism, maximum = _checked(parallelism, max_parallelism)
    return as_int(key_group) * parallelism // maximum


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
    """Return the operator index of each key group.

    Arguments and errors are those of `operator_index`.
    """
    parallelism, maximum = _checked(parallelism, max_parallelism)
    if isinstance(key_groups, Sequence):
        return [as_int(group) * parallelism // maximum for group in key_groups]
    import numpy as np

    return np.asarray(key_groups, dtype=np.int64) * parallelism // maximum


def key_group_range(
    index: int, parallelism: int, max_parallelism: int | None = None
) -> tuple[int, int]:
    """Return the first and the last key group of the operator with this index.

    If `max_parallelism` is None, it is Flink's default for this parallelism. Like Flink, this
    function does not check that the operator exists. Raises `InputError` unless
    1 <= parallelism <= max_parallelism <= 32,768.
    """
    parallelism, maximum = _checked(parallelism, max_parallelism, is_range=True)
    index = as_int(index)
    start = (index * maximum + parallelism - 1) // parallelism
    return start, ((index + 1) * maximum - 1) // parallelism


def rebalance_keys(parallelism: int, max_parallelism: int | None = None) -> list[int]:
    """Return the smallest non-negative `Integer` key of each operator.

    If you use `rebalance_keys(p)[k % p]` as the key instead of k, p consecutive keys (or a multiple
    of p) are spread evenly over the operators. Errors are those of `key_group_range`.
    """
    parallelism, maximum = _checked(parallelism, max_parallelism, is_range=True)
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
    """Return Java's `hashCode` as an unsigned 32-bit word."""
    if isinstance(key, str):
        text = key.encode("utf-16-le", "surrogatepass")
        units = struct.unpack(f"<{len(text) // 2}H", text)
        return reduce(lambda code, unit: (31 * code + unit) & _32_BITS, units, 0)
    if isinstance(key, SupportsIndex) and not isinstance(key, bool):
        number = as_int(key)
        _check_key(number, long)
        code: int = _hash_code_of_number(number & _64_BITS, long)
        return code
    raise InputError(f"key is {key!r}: allowed are text and whole numbers")


def _hash_code_of_number(bits: _Words, long: bool) -> _Words:
    return (bits ^ bits >> 32 if long else bits) & _32_BITS


def _murmur(code: _Words) -> _Words:
    """Return the absolute value of MurmurHash3 (x86, 32 bits, seed 0) of a 32-bit word."""
    word = _rotated(code * 0xCC9E2D51 & _32_BITS, 15) * 0x1B873593 & _32_BITS
    word = (_rotated(word, 13) * 5 + 0xE6546B64 & _32_BITS) ^ 4
    word = (word ^ word >> 16) * 0x85EBCA6B & _32_BITS
    word = (word ^ word >> 13) * 0xC2B2AE35 & _32_BITS
    word = word ^ word >> 16
    negative = word >> 31
    # -2^31 has no absolute value in 32 bits: Flink uses 0.
    return (word ^ negative * _32_BITS) + negative & _32_BITS >> 1


def _rotated(word: _Words, bits: int) -> _Words:
    return (word << bits | word >> (32 - bits)) & _32_BITS


def _checked(parallelism: int, maximum: int | None, *, is_range: bool = False) -> tuple[int, int]:
    """Return both parallelisms. For ranges, the maximum must be at least `parallelism`."""
    parallelism = checks.check("parallelism", parallelism, most=MOST_KEY_GROUPS)
    if maximum is None:
        return parallelism, max_parallelism(parallelism)
    least = parallelism if is_range else 1
    return parallelism, checks.check("max_parallelism", maximum, least, MOST_KEY_GROUPS)


def _check_key(key: int, long: bool) -> None:
    limit = 1 << (63 if long else 31)
    if not -limit <= key < limit:
        hint = "" if long else ". Larger numbers are a Java Long: use key_group(..., long=True)"
        raise InputError(f"key is {key}: allowed is -{limit} to {limit - 1}{hint}")
