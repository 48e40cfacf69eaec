"""The files of an event log, and their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from apportion.errors import ApportionError

# Longer lines are left out, so that a log of any size is read in bounded memory.
MAX_LINE = 64 << 20
_CHUNK = 1 << 20

_ROLLED = re.compile(r"events_(\d+)_[^.]*(?P<suffix>(?:\.\w+)*)")
_OTHER_CODECS = {".lz4", ".lzf", ".snappy"}


class Skipped:
    """Counts what was left out of a log, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        self._counts[reason] += 1

    def messages(self) -> list[str]:
        """Return a line for each reason, such as `3 times: a line that is no JSON`."""
        return [
            reason if count == 1 else f"{count} times: {reason}"
            for reason, count in self._counts.items()
        ]


def parts(path: Path) -> list[Path]:
    """Return the files of a log in order: itself, or those of a rolling log's directory.

    The directory that holds logs will do if there is only one in it. Raises `ApportionError` for
    a path that is no event log, or holds several.
    """
    if not path.exists():
        raise ApportionError(f"there is no event log at {path}")
    if path.is_file():
        return [path]
    if path.name.startswith("eventlog_v2_"):
        return _rolled(path)
    logs = sorted(
        (each for each in path.iterdir() if not each.name.startswith(".")),
        key=lambda each: each.stat().st_mtime,
        reverse=True,
    )
    if len(logs) == 1:
        return parts(logs[0])
    if not logs:
        raise ApportionError(f"{path} is empty: there is no event log in it")
    newest = ", ".join(each.name for each in logs[:5])
    raise ApportionError(f"{path} holds {len(logs)} files; name one of them. The newest: {newest}")


def _rolled(directory: Path) -> list[Path]:
    """The events of a rolling log; what was compacted stands for the files before it."""
    found = []
    for file in directory.iterdir():
        if match := _ROLLED.fullmatch(file.name):
            found.append((int(match[1]), ".compact" in match["suffix"], file))
    if not found:
        raise ApportionError(f"{directory} is the directory of an event log without events")
    start = max((index for index, compacted, _ in found if compacted), default=0)
    return [
        file
        for index, compacted, file in sorted(found)
        if index > start or (index == start and compacted) or start == 0
    ]


def lines(path: Path, skipped: Skipped) -> Iterator[bytes]:
    """Yield the lines of a log, as far as they can be read.

    Raises `ApportionError` for a compression that is not known here, and a file that cannot be
    read.
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
            f"{file} is compressed as {codec[1:]}, which is not read here. Write logs with "
            "spark.eventLog.compression.codec=zstd, Spark's default, or uncompressed"
        )
    if ".zstd" not in suffixes:
        return file.open("rb")
    try:
        import zstandard
    except ImportError:
        raise ApportionError(
            f"{file} is compressed: reading it needs pip install 'apportion[logs]'"
        ) from None
    reader = zstandard.ZstdDecompressor().stream_reader(file.open("rb"), read_across_frames=True)
    return cast("IO[bytes]", reader)


def _split(stream: IO[bytes], file: Path, skipped: Skipped) -> Iterator[bytes]:
    pending: list[bytes] = []
    size = 0
    while chunk := _read(stream, file, skipped):
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            if size + len(line) <= MAX_LINE:
                yield b"".join([*pending, line])
            else:
                skipped.add(f"a line above {MAX_LINE >> 20} MiB in {file.name}")
            pending, size = [], 0
        size += len(rest)
        # Of a line that is too long, nothing but its length is kept.
        pending = [*pending, rest] if size <= MAX_LINE else []
    if pending and size:
        yield b"".join(pending)
    elif size:
        skipped.add(f"a line above {MAX_LINE >> 20} MiB in {file.name}")


def _read(stream: IO[bytes], file: Path, skipped: Skipped) -> bytes:
    try:
        return stream.read(_CHUNK)
    except Exception as error:  # Each codec has errors of its own.
        skipped.add(f"the rest of {file.name}, which is damaged: {error}")
        return b""
