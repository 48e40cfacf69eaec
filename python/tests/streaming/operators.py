"""Streaming queries with each stateful operator of Spark."""
# Spark calls methods and arguments by these names.
# ruff: noqa: N802, N803

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

# The Python workers of Spark cannot import the tests.
_by_value: Any = cloudpickle.register_pickle_by_value
_by_value(sys.modules[__name__])

_LATENESS = "90 seconds"


def _marked(events: DataFrame) -> DataFrame:
    return events.withWatermark("at", _LATENESS)


def aggregation(events: DataFrame) -> DataFrame:
    return events.groupBy("key").agg(sql.count("*"), sql.sum("amount"))


def windows(events: DataFrame) -> DataFrame:
    """Windows that the watermark closes."""
    grouped = _marked(events).groupBy(sql.window("at", "1 minute"), "key")
    return grouped.agg(sql.count("*"), sql.sum("amount"))


def session_windows(events: DataFrame) -> DataFrame:
    grouped = _marked(events).groupBy(sql.session_window("at", "20 seconds"), "key")
    return grouped.agg(sql.count("*"), sql.sum("amount"))


def deduplication(events: DataFrame) -> DataFrame:
    return events.dropDuplicates(["key", "amount"])


def deduplication_by_time(events: DataFrame) -> DataFrame:
    return _marked(events).dropDuplicates(["key", "amount", "at"])


def deduplication_within_watermark(events: DataFrame) -> DataFrame:
    return _marked(events).dropDuplicatesWithinWatermark(["key", "amount"])


def _join(how: str) -> Callable[[DataFrame], DataFrame]:
    def joined(events: DataFrame) -> DataFrame:
        left = _marked(events.where("side = 'left'")).alias("l")
        right = _marked(events.where("side = 'right'")).alias("r")
        minute = sql.expr("INTERVAL 1 MINUTE")
        is_near = sql.col("r.at").between(sql.col("l.at") - minute, sql.col("l.at") + minute)
        return left.join(right, (sql.col("l.key") == sql.col("r.key")) & is_near, how)

    return joined


inner_join = _join("inner")
left_outer_join = _join("left_outer")
full_outer_join = _join("full_outer")
left_semi_join = _join("left_semi")


def groups_with_state(events: DataFrame) -> DataFrame:
    """Count rows per key until a key has no row for a minute of event time."""

    def count(
        key: tuple[Any, ...], batches: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            (rows,) = state.get
            state.remove()
            yield pd.DataFrame({"key": [key[0]], "rows": [rows], "is_last": [True]})
            return
        (rows,) = state.get if state.exists else (0,)
        rows += sum(len(batch) for batch in batches)
        state.update((rows,))
        state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 60_000)
        yield pd.DataFrame({"key": [key[0]], "rows": [rows], "is_last": [False]})

    return (
        _marked(events)
        .groupBy("key")
        .applyInPandasWithState(
            count,
            "key string, rows long, is_last boolean",
            "rows long",
            "update",
            GroupStateTimeout.EventTimeTimeout,
        )
    )


class _Counts(StatefulProcessor):
    """Keeps a value, a list, a map and a timer for each key."""

    ttl: int | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        # Typed as values that can be None, although `exists` was asked.
        self.rows: Any = handle.getValueState("rows", "n long", ttlDurationMs=self.ttl)
        self.amounts: Any = handle.getListState("amounts", "amount long", ttlDurationMs=self.ttl)
        self.sides: Any = handle.getMapState(
            "sides", "side string", "n long", ttlDurationMs=self.ttl
        )

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        batch = pd.concat(list(rows))
        count = (self.rows.get()[0] if self.rows.exists() else 0) + len(batch)
        self.rows.update((count,))
        for amount in sorted(batch["amount"]):
            self.amounts.appendValue((int(amount),))
        for side, size in batch.groupby("side").size().items():
            before = self.sides.getValue((side,))[0] if self.sides.containsKey((side,)) else 0
            self.sides.updateValue((side,), (before + int(size),))
        self._set_timer(timerValues)
        yield self._row(key, count, is_last=False)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        yield self._row(key, self.rows.get()[0], is_last=True)

    def _set_timer(self, timerValues: Any) -> None:
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(timerValues.getCurrentWatermarkInMs() + 60_000)

    def _row(self, key: Any, count: int, is_last: bool) -> pd.DataFrame:
        sides = sorted((side[0], size[0]) for side, size in self.sides.iterator())
        amounts = sum(amount[0] for amount in self.amounts.get())
        values = {
            "key": [key[0]],
            "n": [count],
            "amounts": [amounts],
            "sides": [str(sides)],
            "is_last": [is_last],
        }
        return pd.DataFrame(values)

    def close(self) -> None:
        pass


_OUTPUT = "key string, n long, amounts long, sides string, is_last boolean"


def transform_with_state(events: DataFrame) -> DataFrame:
    """Value, list and map state, and timers of event time."""
    grouped = _marked(events).groupBy("key")
    return grouped.transformWithStateInPandas(_Counts(), _OUTPUT, "update", "eventTime")


class _Expiring(_Counts):
    # Longer than any test takes.
    ttl = 3_600_000

    def _set_timer(self, timerValues: Any) -> None:
        pass


def transform_with_ttl(events: DataFrame) -> DataFrame:
    """Value, list and map state that expires by processing time."""
    grouped = events.groupBy("key")
    return grouped.transformWithStateInPandas(_Expiring(), _OUTPUT, "update", "processingTime")


class _RowCounts(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.rows: Any = handle.getValueState("rows", "n long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        count = (self.rows.get()[0] if self.rows.exists() else 0) + sum(1 for _ in rows)
        self.rows.update((count,))
        yield Row(key=key[0], n=count)

    def close(self) -> None:
        pass


def transform_rows_with_state(events: DataFrame) -> DataFrame:
    grouped = events.groupBy("key")
    return grouped.transformWithState(_RowCounts(), "key string, n long", "update", "none")


def global_limit(events: DataFrame) -> DataFrame:
    return events.select("key", "amount").limit(50)


def two_aggregations(events: DataFrame) -> DataFrame:
    """Two stateful operators in one query."""
    minutes = (
        _marked(events).groupBy(sql.window("at", "1 minute"), "key").agg(sql.count("*").alias("n"))
    )
    return minutes.groupBy(sql.window("window", "2 minutes")).agg(sql.sum("n"))
