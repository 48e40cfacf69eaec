"""Applies a function to many values, in parallel processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

T = TypeVar("T")


def in_processes(
    function: Callable[[str], T],
    values: Sequence[str],
    killed: Callable[[str], T],
    processes: int | None = None,
) -> Iterator[T]:
    """Yield the result of a function for each value, in the order of the values.

    The default number of processes is the number of cores. If a process is killed, for example
    without memory, the result of its value is `killed(value)`. The function must be importable.
    """
    count = min(len(values), processes or os.cpu_count() or 1)
    if count <= 1:
        yield from map(function, values)
        return
    pool = _pool(count)
    try:
        waiting = [(value, pool.submit(function, value)) for value in values]
        for value, future in waiting:
            try:
                yield future.result()
            except BrokenProcessPool:
                # The end of one process breaks the pool for all values after it.
                yield _apart(function, value, killed)
    finally:
        pool.shutdown(cancel_futures=True)


def _apart(function: Callable[[str], T], value: str, killed: Callable[[str], T]) -> T:
    with _pool(1) as pool:
        try:
            return pool.submit(function, value).result()
        except BrokenProcessPool:
            return killed(value)


def _pool(count: int) -> ProcessPoolExecutor:
    # A fork would copy the threads of the progress bar in an undefined state.
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
