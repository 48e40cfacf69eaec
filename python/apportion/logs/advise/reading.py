"""Reads several logs in parallel processes. Only their advice stays in memory.

The advice for each log is kept in a cache, so that a command that was stopped can continue.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import zstandard

from apportion._util import cache
from apportion._util.parallel import in_processes
from apportion.errors import ApportionError
from apportion.logs.advise.advice import read
from apportion.logs.advise.model.findings import ApplicationAdvice
from apportion.logs.eventlog import Unread
from apportion.logs.eventlog.input.files import is_open_here, parts

# The entries that were not used for the longest time are deleted above this limit.
MAX_CACHE = 256 << 20
_SUFFIX = ".json.zst"


def read_all(
    logs: Sequence[str],
    numbers: Sequence[int] = (),
    processes: int | None = None,
    kept: Path | None = None,
) -> Generator[ApplicationAdvice | Unread, None, None]:
    """Yield the advice for each log, in the order of the logs.

    The default number of processes is the number of cores. A log whose process is killed, for
    example without memory, is listed as unread. `kept` is a folder for the advice for each log. A
    log that did not change since then is not read again.
    """
    use = functools.partial(read, numbers=numbers)
    if kept is not None:
        _delete_oldest(kept)
        use = functools.partial(_read_once, kept=kept, version=_version(), numbers=numbers)
    return in_processes(use, logs, Unread.killed, processes, is_open_here)


def default_folder() -> Path:
    """Return the folder for the advice of earlier runs."""
    return cache.directory() / "advice"


def _read_once(
    log: str, kept: Path, version: str, numbers: Sequence[int]
) -> ApplicationAdvice | Unread:
    try:
        file = kept / f"{_key(log, version, numbers)}{_SUFFIX}"
    except (OSError, ApportionError):
        # The log cannot be found or opened; the message is that of `read`.
        return read(log, numbers)
    if known := _load(file):
        return dataclasses.replace(known, log=log)
    advice = read(log, numbers)
    # The reason why a log cannot be read can be temporary.
    if isinstance(advice, ApplicationAdvice):
        _save(file, advice)
    return advice


def _key(log: str, version: str, numbers: Sequence[int]) -> str:
    """Return a name for this content of a log, which changes if any of its files changes."""
    files = [(str(file), file.stat()) for file in parts(Path(log))]
    states = [(name, state.st_size, state.st_mtime_ns) for name, state in files]
    text = repr((version, log, str(Path(log).resolve()), states, list(numbers)))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _version() -> str:
    """Return the version of Apportion, with the last change of its files for a checkout."""
    sources = Path(__file__).parents[2].rglob("*.py")
    newest = max(source.stat().st_mtime_ns for source in sources)
    return f"{importlib.metadata.version('apportion')} {newest}"


def _load(file: Path) -> ApplicationAdvice | None:
    """Return the advice in an entry; None without an entry, and for a damaged one."""
    try:
        text = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes())
        advice = msgspec.json.decode(text, type=ApplicationAdvice)
        # Its time is the time of its last use.
        os.utime(file)
    except (OSError, ValueError, zstandard.ZstdError):
        return None
    return advice


def _save(file: Path, advice: ApplicationAdvice) -> None:
    # Without space or permission for the cache, the log is read again next time.
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = zstandard.ZstdCompressor().compress(msgspec.json.encode(advice))
        # The process can be stopped at any time, so an entry is complete when it gets its name.
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=_SUFFIX, delete=False) as part:
            part.write(text)
        Path(part.name).replace(file)


def _delete_oldest(kept: Path) -> None:
    with suppress(OSError):
        entries = [(file.stat(), file) for file in kept.glob(f"*{_SUFFIX}")]
        entries.sort(key=lambda entry: entry[0].st_mtime_ns, reverse=True)
        total = 0
        for state, file in entries:
            total += state.st_size
            if total > MAX_CACHE:
                file.unlink(missing_ok=True)
