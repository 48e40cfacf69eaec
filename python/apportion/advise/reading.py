"""Reads several logs in parallel processes. Only their advice stays in memory."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from apportion.advise.advice import read
from apportion.advise.findings import ApplicationAdvice, Unread


def read_all(
    logs: Sequence[str], numbers: Sequence[int] = (), processes: int | None = None
) -> Iterator[ApplicationAdvice | Unread]:
    """Yield the advice for each log, in the order of the logs.

    The default number of processes is the number of cores. A log whose process is killed, for
    example without memory, is listed as unread.
    """
    count = min(len(logs), processes or os.cpu_count() or 1)
    if count <= 1:
        yield from (read(log, numbers) for log in logs)
        return
    pool = _pool(count)
    try:
        waiting = [(log, pool.submit(read, log, numbers)) for log in logs]
        for log, future in waiting:
            try:
                yield future.result()
            except BrokenProcessPool:
                # The end of one process breaks the pool for all logs after it.
                yield _read_apart(log, numbers)
    finally:
        pool.shutdown(cancel_futures=True)


def _read_apart(log: str, numbers: Sequence[int]) -> ApplicationAdvice | Unread:
    with _pool(1) as pool:
        try:
            return pool.submit(read, log, numbers).result()
        except BrokenProcessPool:
            return Unread(log, "its process was killed, probably because of its memory")


def _pool(count: int) -> ProcessPoolExecutor:
    # A fork would copy the threads of the progress bar in an undefined state.
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
