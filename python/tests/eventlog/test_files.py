from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

from apportion import ApportionError
from apportion.eventlog import files
from apportion.eventlog.files import Skipped, lines, parts


def read(path: Path) -> tuple[list[bytes], list[str]]:
    skipped = Skipped()
    return list(lines(path, skipped)), skipped.messages()


def compress(*texts: bytes) -> bytes:
    """A frame for each text, as Spark writes one whenever it flushes."""
    return b"".join(zstandard.ZstdCompressor().compress(text) for text in texts)


@pytest.mark.parametrize("name", ["local-17", "app-20261121-0001.inprogress"])
def test_lines_of_a_plain_log_are_read(tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    log.write_bytes(b"one\ntwo\nthree")
    assert read(log) == ([b"one", b"two", b"three"], [])


def test_lines_of_a_zstd_log_with_many_frames_are_read(tmp_path: Path) -> None:
    log = tmp_path / "local-17.zstd"
    log.write_bytes(compress(b"one\nt", b"wo\n", b"three\n"))
    assert read(log) == ([b"one", b"two", b"three"], [])


def test_a_truncated_zstd_log_is_read_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "local-17.zstd"
    log.write_bytes(compress(b"one\n", b"two\n")[:-5])
    assert read(log)[0][0] == b"one"


def test_a_damaged_zstd_log_is_read_up_to_the_damage(tmp_path: Path) -> None:
    log = tmp_path / "local-17.zstd"
    log.write_bytes(compress(b"one\n") + b"\x28\xb5\x2f\xfd rubbish that is no frame")
    found, skipped = read(log)
    assert found in ([b"one"], [])
    assert len(skipped) == 1
    assert skipped[0].startswith("the rest of local-17.zstd, which is damaged: ")


def test_lines_longer_than_a_chunk_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK", 3)
    log = tmp_path / "log"
    log.write_bytes(b"a\nbcdefghi\n\njklm")
    assert read(log) == ([b"a", b"bcdefghi", b"", b"jklm"], [])


@pytest.mark.parametrize("chunk", [3, 4, 7, 100])
def test_lines_that_are_too_long_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(files, "_CHUNK", chunk)
    monkeypatch.setattr(files, "MAX_LINE", 5)
    log = tmp_path / "log"
    log.write_bytes(b"12345\n123456\nabc\n" + b"x" * 50 + b"\nd\n" + b"y" * 50)
    found, skipped = read(log)
    assert found == [b"12345", b"abc", b"d"]
    assert skipped == ["3 times: a line longer than 0 MiB in log"]


def test_a_rolling_log_is_read_in_order(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_local-17"
    log.mkdir()
    (log / "appstatus_local-17").touch()
    for index in (1, 2, 10):
        (log / f"events_{index}_local-17.zstd").write_bytes(compress(b"%d\n" % index))
    assert read(log)[0] == [b"1", b"2", b"10"]


def test_a_compacted_file_replaces_earlier_files(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_local-17"
    log.mkdir()
    for name in ("events_1_local-17", "events_2_local-17", "events_2_local-17.compact"):
        (log / name).write_text(f"{name}\n")
    (log / "events_3_local-17").write_text("last\n")
    assert read(log)[0] == [b"events_2_local-17.compact", b"last"]


def test_a_directory_with_one_log_is_that_log(tmp_path: Path) -> None:
    (tmp_path / "local-17").write_bytes(b"one\n")
    (tmp_path / ".local-17.crc").touch()
    assert parts(tmp_path) == [tmp_path / "local-17"]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([], "is an empty directory: it has no event log"),
        (["a", "b"], "has 2 files: choose one of them. Newest: "),
        (["eventlog_v2_a/appstatus_a"], "is a rolling event log without files of events"),
    ],
)
def test_a_directory_without_exactly_one_log_raises(
    tmp_path: Path, made: list[str], message: str
) -> None:
    for name in made:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(ApportionError, match=message):
        parts(tmp_path)


def test_a_missing_log_raises(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match="there is no event log at"):
        parts(tmp_path / "none")


def test_an_unsupported_compression_raises(tmp_path: Path) -> None:
    (tmp_path / "local-17.lz4").touch()
    with pytest.raises(ApportionError, match="compressed with lz4, which is not supported"):
        read(tmp_path / "local-17.lz4")
