"""Reads several logs in parallel processes. Only their advice stays in memory."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from apportion._util.parallel import in_processes
from apportion.advise.advice import read
from apportion.advise.findings import ApplicationAdvice
from apportion.eventlog import Unread


def read_all(
    logs: Sequence[str], numbers: Sequence[int] = (), processes: int | None = None
) -> Iterator[ApplicationAdvice | Unread]:
    """Yield the advice for each log, in the order of the logs.

    The default number of processes is the number of cores. A log whose process is killed, for
    example without memory, is listed as unread.
    """
    return in_processes(functools.partial(read, numbers=numbers), logs, Unread.killed, processes)
