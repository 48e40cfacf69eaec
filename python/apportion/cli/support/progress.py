"""Progress display while a command waits for Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from apportion.cli.support.console import err

if TYPE_CHECKING:
    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN_LOOKS = 0.2
# The remaining time is estimated from the speed in this period.
_SECONDS_OF_A_LONG_QUERY = 3600.0


@contextmanager
def stoppable(message: str) -> Iterator[None]:
    """Give Ctrl-C a message: what was stopped, and how to go on. An inner message stays."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        if not stopped.args:
            stopped.args = (message,)
        raise


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner with a text, on a terminal."""
    with err.status(escape(what)):
        yield


@contextmanager
def query_progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show the running stages and their finished tasks, on a terminal."""
    if not err.is_terminal:
        yield
        return
    done = threading.Event()
    with Progress(*_columns(), console=err, transient=True) as progress:
        # The query runs in the main thread, so that Ctrl-C reaches it.
        watcher = threading.Thread(target=_watch, args=(spark, what, progress, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def counted(names: Sequence[str], what: str = "Query") -> Iterator[str]:
    """Yield the names. On a terminal, show the current name and the remaining time."""
    with Progress(
        *_columns(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
        speed_estimate_period=_SECONDS_OF_A_LONG_QUERY,
    ) as progress:
        bar = progress.add_task("", total=len(names))
        for name in names:
            progress.update(bar, description=f"{what} {name}", refresh=True)
            yield name
            progress.advance(bar)


def _columns() -> Sequence[ProgressColumn]:
    text = TextColumn("{task.description}", markup=False)
    return text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()


def _watch(spark: SparkSession, what: str, progress: Progress, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    bar = progress.add_task(what, total=None)
    # If Spark has stopped, the query in the main thread reports it.
    with suppress(Exception):
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            progress.update(bar, **_state(what, [stage for stage in stages if stage is not None]))


def _state(what: str, running: Sequence[SparkStageInfo]) -> dict[str, Any]:
    """Return a progress bar's description, finished tasks, and tasks (None if unknown)."""
    ids = ", ".join(str(stage.stageId) for stage in running)
    return {
        "description": f"{what}: stage {ids}" if ids else what,
        "completed": sum(stage.numCompletedTasks for stage in running),
        "total": sum(stage.numTasks for stage in running) or None,
    }
