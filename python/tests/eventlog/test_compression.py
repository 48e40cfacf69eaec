from __future__ import annotations

import base64
import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
import zstandard

from apportion import ApportionError
from apportion.logs.eventlog.input.files import MAX_LINE, Skipped, lines

LINES = [b"one", b"two", b"again " * 40, b"three"]
TEXT = b"\n".join(LINES) + b"\n"
LONG = b"".join(b'{"Event":"SparkListenerTaskEnd","Stage ID":%d}\n' % n for n in range(5_000))

# TEXT as the Java libraries of Spark 4.2 write it.
SPARK_LZ4 = "Oj<NTY;R+0B^m$#0RI3008KLe2=8xhWeRk6Zwg^&VQFq41_0M^3Up|4Wn~IXS~NmzZ)0l}000000000000000"
SPARK_SNAPPY = "f>TaGP*7O_00001000010000b{{b{_Ze<E|cW(+|XJKh>ApQmb{ssX41^}i802m5%XmVv`3I"
SPARK_ZSTD_FLUSHED = "D77#B09fPz0H|+nWeRk6Zwg^&VQFq43Up|4Wn~Hh0OwFe2>"
SPARK_LZF = "T2=u78UX(dZ*FA@ba!tGVP|1!ZXn>{1qKRqXmVv`3I"

Compress = Callable[[bytes], bytes]


def spark_lz4(text: bytes, size: int = 32 << 10) -> bytes:
    """The format of LZ4BlockOutputStream, without checksums of the blocks."""
    stored = bytearray()
    for start in range(0, len(text), size):
        content = text[start : start + size]
        block = bytes(cramjam.lz4.compress_block(content, store_size=False))
        method, block = (0x20, block) if len(block) < len(content) else (0x10, content)
        stored += b"LZ4Block" + struct.pack("<Biii", method | 5, len(block), len(content), 0)
        stored += block
    return bytes(stored) + b"LZ4Block" + struct.pack("<Biii", 0x15, 0, 0, 0)


def spark_snappy(text: bytes, size: int = 32 << 10) -> bytes:
    stored = bytearray(b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1))
    for start in range(0, len(text), size):
        block = bytes(cramjam.snappy.compress_raw(text[start : start + size]))
        stored += struct.pack(">i", len(block)) + block
    return bytes(stored)


def zstd(text: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(text)


FORMATS: dict[str, Compress] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
    "spark's lz4": spark_lz4,
    "spark's snappy": spark_snappy,
}
COMPRESSED = {name: compress for name, compress in FORMATS.items() if name != "plain"}


def formats(named: dict[str, Compress]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("compress", named.values(), ids=named)


def read(path: Path, content: bytes) -> tuple[list[bytes], list[str]]:
    path.write_bytes(content)
    skipped = Skipped()
    return list(lines(path, skipped)), skipped.messages()


@formats(FORMATS)
def test_the_format_of_a_log_is_known_by_its_bytes_and_not_by_its_name(
    tmp_path: Path, compress: Compress
) -> None:
    for name in ("local-17", "local-17.zstd", "local-17.txt"):
        assert read(tmp_path / name, compress(TEXT)) == (LINES, [])


@formats(FORMATS)
def test_logs_of_many_blocks_are_read(tmp_path: Path, compress: Compress) -> None:
    found, skipped = read(tmp_path / "log", compress(LONG))
    assert b"".join(line + b"\n" for line in found) == LONG
    assert skipped == []


@formats(FORMATS)
def test_streams_in_a_row_are_one_log(tmp_path: Path, compress: Compress) -> None:
    content = compress(b"one\nt") + compress(b"wo\n" + LONG)
    found, skipped = read(tmp_path / "log", content)
    assert found == [b"one", b"two", *LONG.splitlines()]
    assert skipped == []


@formats(FORMATS)
def test_empty_logs_have_no_lines(tmp_path: Path, compress: Compress) -> None:
    assert read(tmp_path / "log", compress(b"")) == ([], [])
    assert read(tmp_path / "log", b"") == ([], [])


@formats(FORMATS)
def test_blocks_that_do_not_get_smaller_are_read(tmp_path: Path, compress: Compress) -> None:
    noise = bytes(random.Random(1).choices(range(97, 123), k=5000)) + b"\n"
    assert read(tmp_path / "log", compress(noise)) == ([noise[:-1]], [])


@pytest.mark.parametrize("log", [SPARK_LZ4, SPARK_SNAPPY])
def test_lz4_and_snappy_by_the_java_libraries_of_spark_are_read(tmp_path: Path, log: str) -> None:
    assert read(tmp_path / "log", base64.b85decode(log)) == (LINES, [])


@formats(COMPRESSED)
@pytest.mark.parametrize("part", [0.1, 0.35, 0.5, 0.77, 0.99])
def test_a_truncated_log_is_read_to_its_end_with_one_remark(
    tmp_path: Path, compress: Compress, part: float
) -> None:
    text = LONG + bytes(random.Random(2).choices(range(97, 123), k=300_000)) + b"\n" + LONG
    content = compress(text)
    found, skipped = read(tmp_path / "log", content[: int(len(content) * part)])
    assert found == text.splitlines()[: len(found)]
    # Blocks of the format snappy do not tell whether there are more of them.
    ends_between_blocks = not skipped and compress is spark_snappy
    assert (
        skipped == ["the end of log, because the application was killed or still runs"]
        or ends_between_blocks
    )


@formats(COMPRESSED)
def test_a_log_that_stops_at_any_byte_is_read_up_to_it(tmp_path: Path, compress: Compress) -> None:
    content = compress(TEXT)
    for length in range(1, len(content)):
        found, skipped = read(tmp_path / "log", content[:length])
        assert found == LINES[: len(found)]
        assert len(skipped) == 1 or (compress is spark_snappy and length == 16)


def test_a_zstd_log_that_spark_still_writes_is_read_to_its_last_flush(tmp_path: Path) -> None:
    found, skipped = read(tmp_path / "log.zstd.inprogress", base64.b85decode(SPARK_ZSTD_FLUSHED))
    assert found == LINES
    assert len(skipped) == 1


@formats(COMPRESSED)
def test_a_damaged_log_raises_no_error(tmp_path: Path, compress: Compress) -> None:
    compressed = compress(LONG)
    for seed in range(20):
        draw = random.Random(seed)
        content = bytearray(compressed)
        for _ in range(draw.choice([1, 100])):
            content[draw.randrange(16, len(content))] = draw.randrange(256)
        _, skipped = read(tmp_path / "log", bytes(content))
        assert len(skipped) <= 1


@formats(COMPRESSED)
def test_a_log_with_other_bytes_at_its_end_is_read_up_to_them(
    tmp_path: Path, compress: Compress
) -> None:
    found, skipped = read(tmp_path / "log", compress(TEXT) + b"\xf0 these bytes are not valid")
    assert found == LINES
    (message,) = skipped
    assert message.startswith("the rest of log, which is damaged: ")


@pytest.mark.parametrize(
    "content",
    [
        spark_lz4(TEXT)[:9] + struct.pack("<iii", 20, 1 << 30, 0) + bytes(20),
        spark_lz4(TEXT)[:9] + struct.pack("<iii", -1, 20, 0) + bytes(20),
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 1 << 30) + bytes(20),
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, -5) + bytes(20),
        b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, 8) + b"\xff\xff\xff\xff\x0fabc",
    ],
)
def test_blocks_with_invalid_sizes_are_damaged(tmp_path: Path, content: bytes) -> None:
    found, skipped = read(tmp_path / "log", content)
    assert found == []
    assert [message[:36] for message in skipped] == ["the rest of log, which is damaged: a"] or (
        "corrupt" in skipped[0]
    )


@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_a_log_that_becomes_huge_is_read_with_bounded_memory(
    tmp_path: Path, compress: Compress
) -> None:
    content = compress(b"x" * (MAX_LINE + 1))
    assert read(tmp_path / "log", content) == ([], ["a line longer than 64 MiB in log"])


def test_a_skippable_frame_of_zstd_is_left_out(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    content = skippable + zstd(b"one\n") + skippable + zstd(b"two\n")
    assert read(tmp_path / "log", content) == ([b"one", b"two"], [])


def test_zeros_after_a_gzip_log_are_left_out(tmp_path: Path) -> None:
    assert read(tmp_path / "log", gzip.compress(TEXT) + bytes(700)) == (LINES, [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (base64.b85decode(SPARK_LZF), r"log has the format lzf, which is not supported"),
        (
            bytes(cramjam.lz4.compress(TEXT)),
            "log has the format of the tool lz4, which is not supported",
        ),
        (b"PK\x03\x04\x14\0\0\0", "log has the format zip, which is not supported"),
        (b"PAR1\x15\x04\x15\0", "log is not an event log: its format is unknown"),
        (b"\0" * 20, "log is not an event log: its format is unknown"),
    ],
)
def test_an_unsupported_format_raises_an_error_with_the_supported_formats(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(ApportionError, match=message) as raised:
        read(tmp_path / "log", content)
    text = str(raised.value)
    assert text.startswith(str(tmp_path))
    assert text.endswith("Supported formats are plain text, gzip, zstd, lz4 and snappy")
    assert "\n" not in text
