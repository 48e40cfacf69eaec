"""A mapping that can hold many large values in little memory."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Iterator, MutableMapping
from typing import TypeVar

import zstandard

T = TypeVar("T")

_LEVEL = 1


class PackedDict(MutableMapping[int, T]):
    """Values by number. A packed value is compressed, and unpacked for each use.

    Changes to an unpacked value last only as long as a caller holds it. `open` keeps it unpacked.
    Values must support `pickle` and weak references.
    """

    def __init__(self) -> None:
        # The entry of a packed value is its bytes, so that the order never changes.
        self._entries: dict[int, T | bytes] = {}
        # A value that is still in use is not unpacked again, so that it keeps its identity.
        self._in_use: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()
        self._compressor = zstandard.ZstdCompressor(_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, number: int) -> int:
        """Compress a value, and return the bytes that it uses now."""
        entry = self._entries[number]
        if not isinstance(entry, bytes):
            text = pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
            entry = self._entries[number] = self._compressor.compress(text)
        return len(entry)

    def open(self, number: int) -> T:
        """Keep a value unpacked, and return it. Raises `KeyError` for an unknown number."""
        value = self._entries[number] = self[number]
        self._in_use.pop(number, None)
        return value

    def is_packed(self, number: int) -> bool:
        """Return whether there is a value with this number, and it is packed."""
        return isinstance(self._entries.get(number), bytes)

    def __getitem__(self, number: int) -> T:
        entry = self._entries[number]
        if not isinstance(entry, bytes):
            return entry
        value = self._in_use.get(number)
        if value is None:
            # The bytes were written by `pack` in this process.
            unpacked: T = pickle.loads(self._decompressor.decompress(entry))
            self._in_use[number] = value = unpacked
        return value

    def __setitem__(self, number: int, value: T) -> None:
        self._entries[number] = value
        self._in_use.pop(number, None)

    def __delitem__(self, number: int) -> None:
        del self._entries[number]
        self._in_use.pop(number, None)

    def __contains__(self, number: object) -> bool:
        return number in self._entries

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
