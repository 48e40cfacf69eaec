"""Files and lines of event logs."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from apportion._util.paths import existing_path
from apportion.errors import ApportionError
from apportion.logs.eventlog.input import compression
from apportion.logs.eventlog.input.compression import DamagedError, TruncatedError
from apportion.redaction import printable

# Paths of standard input. The second cannot be opened if standard input is a socket.
STANDARD_INPUT = ("-", "/dev/stdin")
# Longer lines are left out, so that memory is bounded for logs of any size.
MAX_LINE = 64 << 20
_CHUNK = 1 << 20

_ROLLED = re.compile(r"events_(\d+)_[^.]*(?P<suffix>(?:\.\w+)*)")
# Databricks writes `eventlog`, and moves its content to a file with the time, such as
# `eventlog-2021-06-15--15-00.gz`.
_DATABRICKS = re.compile(r"eventlog(-\d{4}-\d\d-\d\d--\d\d-\d\d(\.\w+)?)?")


class Skipped:
    """Counter for the omitted parts of a log, by reason. Its memory is bounded."""

    _MAX_REASONS = 40
    _MAX_LENGTH = 200
    _FURTHER = "a part for a further reason"

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Count an omitted part. `reason` must be a kind of problem, without values of the log."""
        text = " ".join(printable(reason[: self._MAX_LENGTH]).split())
        is_counted = text in self._counts or len(self._counts) < self._MAX_REASONS
        self._counts[text if is_counted else self._FURTHER] += 1

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
    _check_exists(path)
    if not path.is_dir() or _is_standard_input(path):
        return [path]
    if _has_rolling_name(path):
        return _rolled(path)
    if rolled := _databricks(path):
        return rolled
    found = sorted(
        (log for log in path.iterdir() if is_log_name(log.name)),
        key=lambda log: log.stat().st_mtime,
        reverse=True,
    )
    if len(found) == 1:
        return parts(found[0])
    if not found:
        raise ApportionError(f"{path} is an empty directory: it has no event log")
    newest = ", ".join(log.name for log in found[:5])
    raise ApportionError(f"{path} has {len(found)} files: choose one of them. Newest: {newest}")


def logs(path: Path) -> list[Path]:
    """Return each event log in a directory and its subdirectories, in the order of the paths.

    A rolling log is one log: its directory. Each attempt of an application is a log. A path that is
    not a directory is returned as it is. Raises `ApportionError` for a missing path, and for a
    directory that cannot be read.
    """
    _check_exists(path)
    if not path.is_dir() or _is_standard_input(path):
        return [path]
    found = []
    try:
        if _has_rolling_name(path) or _databricks(path):
            return [path]
        for name, folders, files in os.walk(path, onerror=_raise):
            directory = Path(name)
            visible = list(filter(is_log_name, folders))
            rolling = [folder for folder in visible if _is_rolling(directory / folder)]
            folders[:] = [folder for folder in visible if folder not in rolling]
            # Opening a pipe waits for a writer, so only regular files are logs.
            names = [f for f in files if is_log_name(f) and (directory / f).is_file()]
            found += [directory / each for each in [*rolling, *names]]
    except OSError as error:
        raise _unreadable(path, error) from error
    return sorted(found)


def is_log_name(name: str) -> bool:
    """Return whether a file with this name can be a log. Rolling logs have files of their state."""
    return not name.startswith((".", "appstatus_"))


def _has_rolling_name(path: Path) -> bool:
    """Return whether a path is named as a rolling log, or is `.` in one, or a link to one."""
    return any(each.name.startswith("eventlog_v2_") for each in (path, path.resolve()))


def _is_rolling(directory: Path) -> bool:
    return directory.name.startswith("eventlog_v2_") or bool(_databricks(directory))


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


def _missing_files(files: list[Path]) -> Iterator[str]:
    """Yield the names of the files of a rolling log that are missing before the last one."""
    found = [match for file in files if (match := _ROLLED.fullmatch(file.name))]
    # A compacted file has the events of all files before it.
    is_compacted = found and ".compact" in found[0]["suffix"]
    numbers = [*([] if is_compacted else [0]), *(int(match[1]) for match in found)]
    for before, after in pairwise(numbers):
        if after > before + 1:
            last = f" to events_{after - 1}" if after > before + 2 else ""
            yield f"events_{before + 1}{last}"


def _databricks(directory: Path) -> list[Path]:
    """Return the files of a rolling log of Databricks, or no files for another directory."""
    files = [file for file in directory.iterdir() if is_log_name(file.name)]
    if not all(_DATABRICKS.fullmatch(file.name) and file.is_file() for file in files):
        return []
    # The file without a time is the current one.
    return sorted(files, key=lambda file: (file.name == "eventlog", file.name))


def lines(path: Path, skipped: Skipped) -> Iterator[bytes]:
    """Yield the readable lines of a log.

    Raises `ApportionError` for an unsupported format, and for a file that cannot be read.
    """
    try:
        files = parts(path)
        for missing in _missing_files(files):
            skipped.add(f"{missing} of the rolling log, because of missing files")
        for part in files:
            with _open(part) as stream:
                yield from _split(stream, part, skipped)
    except OSError as error:
        raise _unreadable(path, error) from error


def _check_exists(path: Path) -> None:
    if not _is_standard_input(path) and not existing_path(str(path)):
        raise ApportionError(f"there is no event log at {path}")


def _is_standard_input(path: Path) -> bool:
    return str(path) in STANDARD_INPUT


def is_open_here(log: str) -> bool:
    """Return whether only this process can read a log: standard input, or a pipe of its shell."""
    return log in STANDARD_INPUT or log.startswith("/dev/fd/")


def _raise(error: OSError) -> None:
    raise error


def _unreadable(path: Path, error: OSError) -> ApportionError:
    return ApportionError(f"{error.filename or path} cannot be read: {error.strerror or error}")


@contextmanager
def _open(file: Path) -> Iterator[BinaryIO]:
    if not _is_standard_input(file):
        with file.open("rb") as stream:
            yield stream
    elif sys.stdin is None:
        raise ApportionError("there is no standard input: give the path of an event log")
    else:
        yield sys.stdin.buffer


def _split(stream: BinaryIO, file: Path, skipped: Skipped) -> Iterator[bytes]:
    is_file = not _is_standard_input(file)
    name, title = (file.name, str(file)) if is_file else ("standard input", "standard input")
    too_long = f"a line longer than {MAX_LINE >> 20} MiB in {name}"
    pending = bytearray()
    size = 0
    try:
        for chunk in compression.decompress(stream, title, _CHUNK):
            *complete, rest = chunk.split(b"\n")
            for line in complete:
                if size + len(line) <= MAX_LINE:
                    yield bytes(pending) + line if pending else line
                else:
                    skipped.add(too_long)
                pending.clear()
                size = 0
            size += len(rest)
            # A line that is too long is dropped; only its length is kept.
            if size <= MAX_LINE:
                pending += rest
            else:
                pending.clear()
    # A line at the stop is incomplete, because Spark ends each event with a line end.
    except TruncatedError:
        skipped.add(f"the end of {name}, because the application was killed or still runs")
    except DamagedError as error:
        skipped.add(f"the rest of {name}, which is damaged: {error}")
    else:
        if size > MAX_LINE:
            skipped.add(too_long)
        elif pending:
            yield bytes(pending)
