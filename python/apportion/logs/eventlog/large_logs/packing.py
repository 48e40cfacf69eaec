"""A mapping that can hold many large values in little memory."""

from __future__ import annotations

import pickle
import tempfile
import weakref
from collections import UserDict
from typing import Any, NamedTuple, TypeVar

import zstandard

T = TypeVar("T")

_LEVEL = 1
# Packed values above these bytes are kept in a temporary file.
_MAX_IN_MEMORY = 64 << 20


class _Packed(NamedTuple):
    """Place of a packed value in the file."""

    start: int
    size: int


class PackedDict(UserDict[int, T]):
    """Values by number. A packed value is compressed, and unpacked for each use.

    Changes to an unpacked value last only as long as a caller holds it. `open` keeps it unpacked.
    Values must support `pickle` and weak references.
    """

    def __init__(self) -> None:
        super().__init__()
        # The entry of a packed value is its place, so that the order never changes.
        self.data: dict[int, Any] = {}
        self._file = tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115, closed with this
        self._end = 0
        # A value that is still in use is not unpacked again, so that it keeps its identity.
        self._in_use: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()
        self._compressor = zstandard.ZstdCompressor(_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, number: int) -> None:
        """Compress a value."""
        entry: T | _Packed = self.data[number]
        if not isinstance(entry, _Packed):
            text = pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
            self._file.seek(self._end)
            size = self._file.write(self._compressor.compress(text))
            self.data[number] = _Packed(self._end, size)
            self._end += size

    def open(self, number: int) -> T:
        """Keep a value unpacked, and return it. Raises `KeyError` for an unknown number."""
        value = self[number] = self[number]
        return value

    def is_packed(self, number: int) -> bool:
        """Return whether there is a value with this number, and it is packed."""
        return isinstance(self.data.get(number), _Packed)

    def __getitem__(self, number: int) -> T:
        entry: T | _Packed = self.data[number]
        if not isinstance(entry, _Packed):
            return entry
        value = self._in_use.get(number)
        if value is None:
            self._file.seek(entry.start)
            # The bytes were written by `pack` in this process.
            text = self._decompressor.decompress(self._file.read(entry.size))
            unpacked: T = pickle.loads(text)
            self._in_use[number] = value = unpacked
        return value

    # The text of a dictionary would have all values.
    __repr__ = object.__repr__

    def __setitem__(self, number: int, value: T) -> None:
        self.data[number] = value
        self._in_use.pop(number, None)
