from __future__ import annotations

import gzip
import io
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from apportion import ApportionError
from apportion.logs.eventlog import locate
from apportion.logs.eventlog.input import files
from apportion.logs.eventlog.input.files import STANDARD_INPUT, Skipped, lines, logs, parts


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
    for index in range(1, 11):
        (log / f"events_{index}_local-17.zstd").write_bytes(compress(b"%d\n" % index))
    assert read(log) == ([b"%d" % index for index in range(1, 11)], [])


def test_a_compacted_file_replaces_earlier_files(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_local-17"
    log.mkdir()
    for name in ("events_1_local-17", "events_2_local-17", "events_2_local-17.compact"):
        (log / name).write_text(f"{name}\n")
    (log / "events_3_local-17").write_text("last\n")
    assert read(log)[0] == [b"events_2_local-17.compact", b"last"]


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["1", "2"], []),
        (["2"], ["events_1"]),
        (["94", "95"], ["events_1 to events_93"]),
        (["1", "3", "7"], ["events_2", "events_4 to events_6"]),
        (["5.compact", "6"], []),
        (["5.compact", "9"], ["events_6 to events_8"]),
        (["1", "99999999999999999999"], ["events_2 to events_99999999999999999998"]),
    ],
)
def test_missing_files_of_a_rolling_log_are_named(
    tmp_path: Path, names: list[str], missing: list[str]
) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    for name in names:
        number, _, suffix = name.partition(".")
        (log / f"events_{number}_app{suffix and '.' + suffix}").write_text("{}\n")
    remarks = [f"{each} of the rolling log, because of missing files" for each in missing]
    assert read(log)[1] == remarks


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


# The second name is longer than a file system allows.
@pytest.mark.parametrize("name", ["none", "x" * 300])
def test_a_missing_log_raises(tmp_path: Path, name: str) -> None:
    for find in (parts, logs):
        with pytest.raises(ApportionError, match="there is no event log at"):
            find(tmp_path / name)


def test_a_rolling_log_of_databricks_is_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "eventlog").write_text("last\n")
    for day in (9, 10):
        content = gzip.compress(b"%d\n" % day)
        (tmp_path / f"eventlog-2021-06-{day:02}--15-00.gz").write_bytes(content)
    assert read(tmp_path)[0] == [b"9", b"10", b"last"]


def test_logs_of_a_directory_are_listed(tmp_path: Path) -> None:
    listed = [
        "app-1.inprogress",
        "app-2_1.zstd",
        "app-2_2.zstd",
        "eventlog_v2_app-3",
        "older/app-4.lz4",
        "older/eventlog_v2_app-5",
        "older/workspace",
    ]
    for name in [
        "app-1.inprogress",
        ".app-1.inprogress.crc",
        "app-2_1.zstd",
        "app-2_2.zstd",
        "eventlog_v2_app-3/appstatus_app-3",
        "eventlog_v2_app-3/events_1_app-3",
        "eventlog_v2_app-3/events_2_app-3",
        "older/app-4.lz4",
        "older/eventlog_v2_app-5/events_1_app-5.zstd",
        "older/workspace/eventlog",
        "older/workspace/eventlog-2021-06-15--15-00.gz",
        "older/appstatus_app-6",
        ".hidden/app-7",
    ]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "broken").symlink_to("none")
    assert logs(tmp_path) == [tmp_path / name for name in listed]


def test_a_single_log_is_listed_as_itself(tmp_path: Path) -> None:
    rolling = tmp_path / "eventlog_v2_app-1"
    rolling.mkdir()
    (tmp_path / "app-2").touch()
    assert logs(rolling) == [rolling]
    assert logs(tmp_path / "app-2") == [tmp_path / "app-2"]
    assert logs(Path("-")) == [Path("-")]


@pytest.mark.parametrize("name", [".", "../latest"])
def test_a_rolling_log_is_found_by_its_own_folder_and_by_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    for index in (1, 2):
        (log / f"events_{index}_app").write_text(f"{index}\n")
    (tmp_path / "latest").symlink_to(log)
    monkeypatch.chdir(log)
    assert read(Path(name)) == ([b"1", b"2"], [])
    assert logs(Path(name)) == [Path(name)]


def test_logs_behind_links_in_a_directory_are_listed_once(tmp_path: Path) -> None:
    log = tmp_path / "eventlog_v2_app"
    log.mkdir()
    (tmp_path / "latest").symlink_to(log)
    assert logs(tmp_path) == [log]


def test_an_empty_directory_has_no_logs_and_a_missing_directory_raises(tmp_path: Path) -> None:
    assert logs(tmp_path) == []
    with pytest.raises(ApportionError, match="there is no event log at"):
        logs(tmp_path / "none")


def test_a_log_can_be_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[compress(b"one\n", b"two\n")])
    writer.start()
    assert read(pipe) == ([b"one", b"two"], [])
    writer.join()


@pytest.mark.parametrize("place", STANDARD_INPUT)
def test_a_log_can_be_standard_input(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(compress(b"one\n", b"two"))))
    with locate.event_log(place) as log:
        assert read(log) == ([b"one", b"two"], [])


def test_problems_of_standard_input_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(compress(b"one\n", b"two\n")[:-1]))
    )
    assert read(Path("-")) == (
        [b"one"],
        ["the end of standard input, because the application was killed or still runs"],
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ZV\0")))
    with pytest.raises(ApportionError, match="standard input has the format lzf"):
        read(Path("-"))
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ApportionError, match="there is no standard input"):
        read(Path("-"))


def test_a_pipe_from_the_shell_is_read() -> None:
    program = (
        "import sys; from pathlib import Path; from apportion.logs.eventlog.input.files import *;"
        "print(*lines(Path(sys.argv[1]), Skipped()))"
    )
    for place in STANDARD_INPUT:
        run = subprocess.run(
            [sys.executable, "-c", program, place],
            input=gzip.compress(b"one\ntwo\n"),
            capture_output=True,
            check=True,
        )
        assert run.stdout.decode().strip() == "b'one' b'two'"


def test_a_log_that_cannot_be_opened_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The address of a socket is at most 104 bytes long, so it is relative.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("log")
        with pytest.raises(ApportionError, match="log cannot be read: "):
            read(Path("log"))


def test_the_memory_for_reasons_is_bounded() -> None:
    skipped = Skipped()
    for number in range(100):
        skipped.add(f"reason {number} {'x' * 100_000}")
    skipped.add("reason 0 " + "x" * 100_000)
    messages = skipped.messages()
    assert len(messages) == 41
    assert max(map(len, messages)) < 220
    assert messages[0].startswith("2 times: reason 0 xxx")
    assert messages[-1] == "60 times: a part for a further reason"


def test_reasons_have_no_control_characters() -> None:
    skipped = Skipped()
    skipped.add("a \x1b[2J\x9b\r\nline\tof \ud800 a log")
    assert skipped.messages() == ["a \ufffd[2J\ufffd\ufffd line of \ufffd a log"]
