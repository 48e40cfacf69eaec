"""Applies a function to many values, in parallel processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

T = TypeVar("T")


def in_processes(
    function: Callable[[str], T],
    values: Sequence[str],
    killed: Callable[[str], T],
    processes: int | None = None,
) -> Generator[T, None, None]:
    """Yield the result of a function for each value, in the order of the values.

    The default number of processes is the number of cores. If a process is killed, for example
    without memory, the result of its value is `killed(value)`. The function must be importable. If
    the iterator is closed, or if this process ends, the other processes end at once.
    """
    count = min(len(values), processes or os.cpu_count() or 1)
    if count <= 1:
        yield from map(function, values)
        return
    others = multiprocessing.active_children()
    pool = _pool(count)
    waiting = [(value, pool.submit(function, value)) for value in values]
    # Not at the end: a later pool may have started its processes by then.
    own = set(multiprocessing.active_children()).difference(others)
    is_complete = False
    try:
        for value, future in waiting:
            try:
                yield future.result()
            except BrokenProcessPool:
                # The end of one process breaks the pool for all values after it.
                yield _apart(function, value, killed)
        is_complete = True
    finally:
        if not is_complete:
            for process in own:
                process.terminate()
        _shut_down(pool)


def in_process(function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function in another process, which ends at once if this one stops.

    Raises the errors of the function, and `BrokenProcessPool` if the process is killed. The
    function and its arguments must be picklable.
    """
    others = multiprocessing.active_children()
    pool = _pool(1)
    try:
        return pool.submit(function, *arguments).result()
    except KeyboardInterrupt:
        for process in set(multiprocessing.active_children()).difference(others):
            process.terminate()
        raise
    finally:
        _shut_down(pool)


def _apart(function: Callable[[str], T], value: str, killed: Callable[[str], T]) -> T:
    with _pool(1) as pool:
        try:
            return pool.submit(function, value).result()
        except BrokenProcessPool:
            return killed(value)


def _pool(count: int) -> ProcessPoolExecutor:
    # A fork would copy the threads of the progress bar in an undefined state.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_only_end_with_parent)


def _shut_down(pool: ProcessPoolExecutor) -> None:
    # Before Python 3.12, the thread of a broken pool can close its pipe while this writes to it.
    with contextlib.suppress(OSError):
        pool.shutdown(cancel_futures=True)


def _only_end_with_parent() -> None:
    # Ctrl-C reaches all processes of a terminal. Here it would only print a stack.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """Make this process end when the process that started it has ended, also if it was killed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)
