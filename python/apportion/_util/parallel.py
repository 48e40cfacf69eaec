"""Applies a function to many values, in parallel processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

T = TypeVar("T")


def in_processes(
    function: Callable[[str], T],
    values: Sequence[str],
    killed: Callable[[str], T],
    processes: int | None = None,
    is_own: Callable[[str], bool] = lambda value: False,
) -> Generator[T, None, None]:
    """Yield the result of a function for each value, in the order of the values.

    The default number of processes is the number of cores. If a process is killed, for example
    without memory, the result of its value is `killed(value)`. The function must be importable. If
    the iterator is closed, or if this process ends, the other processes end at once. The values for
    which `is_own` is true stay in this process.
    """
    own = set(filter(is_own, values))
    others = [value for value in values if value not in own]
    count = min(len(others), processes or os.cpu_count() or 1)
    if count <= 1:
        yield from map(function, values)
        return
    with _submitted(count, function, [(value,) for value in others]) as futures:
        waiting = iter(futures)
        for value in values:
            if value in own:
                yield function(value)
                continue
            try:
                yield next(waiting).result()
            except BrokenProcessPool:
                # The end of one process breaks the pool for all values after it.
                yield _apart(function, value, killed)


def in_process(function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function in another process, which ends at once if this one stops.

    Raises the errors of the function, and `BrokenProcessPool` if the process is killed. The
    function and its arguments must be picklable.
    """
    with _submitted(1, function, [arguments]) as (future,):
        return future.result()


def _apart(function: Callable[[str], T], value: str, killed: Callable[[str], T]) -> T:
    try:
        return in_process(function, value)
    except BrokenProcessPool:
        return killed(value)


@contextlib.contextmanager
def _submitted(
    count: int, function: Callable[..., T], calls: Iterable[tuple[object, ...]]
) -> Iterator[list[Future[T]]]:
    """Yield the results of calls in `count` processes, which end at once if the block fails."""
    others = multiprocessing.active_children()
    # A fork would copy the threads of the progress bar in an undefined state.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_only_end_with_parent)
    futures = [pool.submit(function, *arguments) for arguments in calls]
    # Not at the end: a later pool may have started its processes by then.
    own = set(multiprocessing.active_children()).difference(others)
    try:
        yield futures
    except BaseException:
        for process in own:
            process.terminate()
        raise
    finally:
        # Before Python 3.12, the thread of a broken pool can close its pipe while this writes.
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
