"""Files and lines of an event log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from apportion.errors import ApportionError

# Longer lines are left out, so that memory is bounded for logs of any size.
MAX_LINE = 64 << 20
_CHUNK = 1 << 20

_ROLLED = re.compile(r"events_(\d+)_[^.]*(?P<suffix>(?:\.\w+)*)")
_OTHER_CODECS = {".lz4", ".lzf", ".snappy"}


class Skipped:
    """Counter for the omitted parts of a log, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        self._counts[reason] += 1

    def messages(self) -> list[str]:
        """Return a line for each reason, such as `3 times: a line that is not JSON`."""
        return [
            reason if count == 1 else f"{count} times: {reason}"
            for reason, count in self._counts.items()
        ]


def parts(path: Path) -> list[Path]:
    """Return the files of a log in order: the path itself, or the files of a rolling log.

    A directory of logs works if it has only one log. Raises `ApportionError` for a path without an
    event log, or with several.
    """
    if not path.exists():
        raise ApportionError(f"there is no event log at {path}")
    if path.is_file():
        return [path]
    if path.name.startswith("eventlog_v2_"):
        return _rolled(path)
    logs = sorted(
        (log for log in path.iterdir() if not log.name.startswith(".")),
        key=lambda log: log.stat().st_mtime,
        reverse=True,
    )
    if len(logs) == 1:
        return parts(logs[0])
    if not logs:
        raise ApportionError(f"{path} is an empty directory: it has no event log")
    newest = ", ".join(log.name for log in logs[:5])
    raise ApportionError(f"{path} has {len(logs)} files: choose one of them. Newest: {newest}")


def _rolled(directory: Path) -> list[Path]:
    """Return the event files of a rolling log. A compacted file replaces all earlier files."""
    rolled = []
    for file in directory.iterdir():
        if match := _ROLLED.fullmatch(file.name):
            rolled.append((int(match[1]), ".compact" in match["suffix"], file))
    if not rolled:
        raise ApportionError(f"{directory} is a rolling event log without files of events")
    start = max((index for index, compacted, _ in rolled if compacted), default=0)
    return [
        file
        for index, compacted, file in sorted(rolled)
        if index > start or (index == start and compacted) or start == 0
    ]


def lines(path: Path, skipped: Skipped) -> Iterator[bytes]:
    """Yield the readable lines of a log.

    Raises `ApportionError` for an unsupported compression, and for a file that cannot be read.
    """
    try:
        for part in parts(path):
            with _open(part) as stream:
                yield from _split(stream, part, skipped)
    except OSError as error:
        raise ApportionError(
            f"{error.filename or path} cannot be read: {error.strerror}"
        ) from error


def _open(file: Path) -> IO[bytes]:
    suffixes = set(file.suffixes)
    if codec := next(iter(suffixes & _OTHER_CODECS), None):
        raise ApportionError(
            f"{file} is compressed with {codec[1:]}, which is not supported. Write logs with "
            "spark.eventLog.compression.codec=zstd, which is Spark's default, or uncompressed"
        )
    if ".zstd" not in suffixes:
        return file.open("rb")
    try:
        import zstandard
    except ImportError:
        raise ApportionError(
            f"{file} is compressed: to read it, run pip install 'apportion[logs]'"
        ) from None
    reader = zstandard.ZstdDecompressor().stream_reader(file.open("rb"), read_across_frames=True)
    return cast("IO[bytes]", reader)


def _split(stream: IO[bytes], file: Path, skipped: Skipped) -> Iterator[bytes]:
    pending: list[bytes] = []
    size = 0
    while chunk := _read(stream, file, skipped):
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            if size + len(line) <= MAX_LINE:
                yield b"".join([*pending, line])
            else:
                skipped.add(f"a line longer than {MAX_LINE >> 20} MiB in {file.name}")
            pending, size = [], 0
        size += len(rest)
        # A line that is too long is dropped; only its length is kept.
        pending = [*pending, rest] if size <= MAX_LINE else []
    if pending and size:
        yield b"".join(pending)
    elif size:
        skipped.add(f"a line longer than {MAX_LINE >> 20} MiB in {file.name}")


def _read(stream: IO[bytes], file: Path, skipped: Skipped) -> bytes:
    try:
        return stream.read(_CHUNK)
    except Exception as error:  # Each codec has its own errors.
        skipped.add(f"the rest of {file.name}, which is damaged: {error}")
        return b""
