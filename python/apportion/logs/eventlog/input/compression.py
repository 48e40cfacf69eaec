"""Decompression of event logs. The first bytes of a log tell its format, not its name.

A log can be a pipe, so nothing here seeks. All sizes in a log are checked before memory is used.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import cramjam
import zstandard

from apportion.errors import ApportionError

_SUPPORTED = "Supported formats are plain text, gzip, zstd, lz4 and snappy"
# Compressed bytes that are decompressed at once. The smallest zstd block has 4 bytes and can become
# 128 KiB, so that a piece becomes at most 32 MiB. A piece of gzip becomes at most 1 MiB.
_PIECE = 1 << 10
# Largest block of snappy. Spark's default is 32 KiB (spark.io.compression.snappy.blockSize).
_LARGEST_BLOCK = 64 << 20
# Enough to find a control character in any binary format.
_HEAD = 512
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")


class TruncatedError(Exception):
    """The log stops in the middle of a block or frame."""


class DamagedError(Exception):
    """The log has bytes that are not valid in its format."""


def decompress(stream: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    """Yield the content of a log in pieces. Pieces of a plain log have at most `size` bytes.

    `name` is the name of the log in messages. Raises `ApportionError` for a format that is not
    supported. Raises `TruncatedError` or `DamagedError` after the last readable piece.
    """
    source = _Source(stream)
    head = source.peek(_HEAD)
    if head and any(magic.startswith(head) and magic != head for magic in _DECODERS):
        raise TruncatedError
    for magic, decoder in _DECODERS.items():
        if head.startswith(magic):
            return _checked(decoder(source))
    for magic, format in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise ApportionError(
                f"{name} has the format {format}, which is not supported. {_SUPPORTED}"
            )
    # The skippable frame of zstd. The tool pzstd starts its files with one.
    if head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50:
        return _checked(_zstd(source))
    if _BINARY.search(head):
        raise ApportionError(f"{name} is not an event log: its format is unknown. {_SUPPORTED}")
    return iter(lambda: source.read(size), b"")


def _checked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from pieces
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError) as error:
        raise DamagedError(str(error)) from None


class _Source:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._peeked = b""

    def peek(self, size: int) -> bytes:
        """Return the next bytes, which stay unread. There are fewer than `size` only at the end."""
        while len(self._peeked) < size:
            more = self._stream.read(size - len(self._peeked))
            if not more:
                break
            self._peeked += more
        return self._peeked[:size]

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, and no bytes at the end."""
        if self._peeked:
            head, self._peeked = self._peeked[:size], self._peeked[size:]
            return head
        return self._stream.read(size)

    def read_exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            more = self.read(size - len(found))
            if not more:
                raise TruncatedError
            found += more
        return bytes(found)


def _gzip(source: _Source) -> Iterator[bytes]:
    # gzip allows zeros after the last member, for example to fill the block of a tape.
    return _frames(source, lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), b"\0")


def _zstd(source: _Source) -> Iterator[bytes]:
    return _frames(source, lambda: zstandard.ZstdDecompressor().decompressobj())


def _frames(
    source: _Source, new_decoder: Callable[[], Any], padding: bytes | None = None
) -> Iterator[bytes]:
    """Yield the content of all frames of zstd, or of all members of gzip."""
    piece = source.read(_PIECE)
    while piece:
        if padding and piece.startswith(padding):
            piece = piece.lstrip(padding) or source.read(_PIECE)
            continue
        # An object for each frame, because it reports whether the frame is complete.
        decoder = new_decoder()
        while not decoder.eof:
            if not piece:
                raise TruncatedError
            yield decoder.decompress(piece)
            piece = decoder.unused_data or source.read(_PIECE)


def _spark_lz4(source: _Source) -> Iterator[bytes]:
    """Read the format of `net.jpountz.lz4.LZ4BlockOutputStream`, which Spark writes as lz4.

    Each block has a magic, a token, two sizes and a checksum. An empty block ends a stream.
    Several streams can follow each other.
    """
    has_ended = False
    while source.peek(1):
        if source.read_exactly(len(_SPARK_LZ4)) != _SPARK_LZ4:
            raise DamagedError("a block of lz4 has no magic")
        token, stored, size, _ = struct.unpack("<BiiI", source.read_exactly(13))
        method, largest = token & 0xF0, 1 << (10 + (token & 0x0F))
        # A raw block is as long as its content.
        is_valid = stored == size if method == _LZ4_RAW else method == _LZ4_BLOCK
        if not is_valid or not 0 <= size <= largest or not 0 <= stored <= largest:
            raise DamagedError("a block of lz4 has an invalid header")
        block = source.read_exactly(stored)
        has_ended = size == 0
        if method == _LZ4_RAW:
            yield block
        elif size:
            yield bytes(cramjam.lz4.decompress_block(block, output_len=size))
    if not has_ended:
        raise TruncatedError


def _snappy(source: _Source) -> Iterator[bytes]:
    """Read the format of `org.xerial.snappy.SnappyOutputStream`, which Spark writes as snappy.

    A header with two versions comes first, then blocks of raw snappy, each after its length.
    Several streams can follow each other.
    """
    while source.peek(1):
        if source.peek(len(_SNAPPY)) == _SNAPPY:
            source.read_exactly(len(_SNAPPY) + 8)
            continue
        (stored,) = struct.unpack(">i", source.read_exactly(4))
        if not 0 <= stored <= _LARGEST_BLOCK:
            raise DamagedError("a block of snappy has an invalid length")
        block = source.read_exactly(stored)
        if cramjam.snappy.decompress_raw_len(block) > _LARGEST_BLOCK:
            raise DamagedError("a block of snappy is too large")
        yield bytes(cramjam.snappy.decompress_raw(block))


_SPARK_LZ4 = b"LZ4Block"
_LZ4_RAW, _LZ4_BLOCK = 0x10, 0x20
_SNAPPY = b"\x82SNAPPY\0"

_DECODERS: dict[bytes, Callable[[_Source], Iterator[bytes]]] = {
    b"\x1f\x8b": _gzip,
    b"\x28\xb5\x2f\xfd": _zstd,
    _SPARK_LZ4: _spark_lz4,
    _SNAPPY: _snappy,
}
_UNSUPPORTED = {
    b"\x04\x22\x4d\x18": "of the tool lz4",
    # Chunks of com.ning.compress.lzf, which Spark writes as lzf.
    b"ZV\0": "lzf",
    b"ZV\x01": "lzf",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
    b"\xff\x06\0\0sNaPpY": "framed snappy",
}
