"""Runs a streaming query, watches its load, and changes its state partitions.

A rescale has three steps: stop the query at the end of a batch, repartition its state, and start it
again. `Checkpoint.begin` notes it first, so that the next start continues it after a crash.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark import InheritableThread

from apportion._spark import jvm
from apportion.session import confs
from apportion.stream_record import Event, StreamRecord
from apportion.streaming.batches import Batch
from apportion.streaming.checkpoint import PARTITIONS, Checkpoint, PendingRescale
from apportion.streaming.policies import Fixed, Load, Policy, load_of
from apportion.streaming.sizes import Bounds, StateSizes
from apportion.streaming.stabilizer import Stabilizer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    Build = Callable[[], DataStreamWriter]

_log = logging.getLogger(__name__)

# A load is that of this many batches.
_BATCHES = 5
_MOST_RECORDS = 1000
# The journal is written as a whole, so not after each batch, and less often if it takes long.
_JOURNAL_SECONDS = 10.0
_JOURNAL_SHARE = 0.002
_SLOTS_SECONDS = 10.0
# A batch ends the wait for it, so this is only the longest time that `stop` takes.
_WAIT_SECONDS = 0.5
_FILE_SINK = "FileSink["


@dataclasses.dataclass(frozen=True)
class Plan:
    """What `start` was asked to do. Times are seconds."""

    policy: Policy
    trigger: float | None
    stabilization: float
    cooldown: float
    bounds: Bounds


@dataclasses.dataclass(frozen=True)
class _Rescale:
    """A rescale whose first batch has not ended. Times are seconds since 1970."""

    pending: PendingRescale
    stopped: float
    repartitioning: float
    started: float


class Stream:
    """A streaming query whose state partitions follow its load."""

    def __init__(self, spark: SparkSession, build: Build, checkpoint: Checkpoint, plan: Plan):
        self._spark = spark
        self._build = build
        self._checkpoint = checkpoint
        self._plan = plan
        self._sizes = StateSizes(spark, plan.bounds)
        self._stabilizer = Stabilizer(plan.stabilization, plan.cooldown)
        self._batches: deque[Batch] = deque(maxlen=_BATCHES)
        self._records: deque[StreamRecord] = deque(maxlen=_MOST_RECORDS)
        self._lines: deque[str] = deque(maxlen=_MOST_RECORDS)
        self._rescale: _Rescale | None = None
        self._is_refused = False
        self._is_warm = False
        self._last: Batch | None = None
        self._progress: jvm.Progress | None = None
        self._slots = (float("-inf"), 1)
        self._journal_due = float("-inf")
        self._stopping = threading.Event()
        self._error: BaseException | None = None
        self._partitions = checkpoint.partitions()
        self._continue_rescale()
        self._query = self._first_start()
        self._thread = InheritableThread(target=self._run, name="apportion-stream", daemon=True)
        self._thread.start()

    @property
    def query(self) -> StreamingQuery:
        """The running query. A rescale replaces it."""
        return self._query

    @property
    def partitions(self) -> int | None:
        """Number of state partitions now; None before the first batch."""
        return self._partitions

    @property
    def records(self) -> list[StreamRecord]:
        """The last 1,000 records, oldest first."""
        return list(self._records)

    @property
    def rescales(self) -> list[StreamRecord]:
        """Records of the rescales among `records`."""
        return [record for record in self.records if record.event == "rescale"]

    def stop(self) -> None:
        """Stop the query, and wait until its thread has ended."""
        self._stopping.set()
        self._thread.join()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the query ends, and return whether it did within `timeout` seconds.

        Raises the query's error if it failed.
        """
        self._thread.join(timeout)
        if self._error:
            raise self._error
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                query = self._query
                ended, batches = self._await_batches()
                for batch in batches:
                    # A rescale replaces the query, and later batches are those of the old one.
                    if self._query is query:
                        self._observe(batch)
                if ended and self._query is query:
                    query.awaitTermination()
                    break
        except BaseException as error:
            self._error = error
        finally:
            # A lost connection must not hide the query's own error.
            with contextlib.suppress(Exception):
                self._query.stop()
                if self._last:
                    self._record("ended", self._last, "the stream ended")
                self._write_journal()

    def _await_batches(self) -> tuple[bool, list[Batch]]:
        """Return whether the query has ended, and its new batches."""
        known = self._progress["timestamp"] if self._progress else None
        found = jvm.await_batch(self._spark, self._query, known, _WAIT_SECONDS)
        batches = [Batch.from_progress(report) for report in found["progress"]]
        if batches:
            self._progress = found["progress"][-1]
            batches[-1] = batches[-1].with_bytes(found["bytes"])
        return found["ended"], batches

    def _observe(self, batch: Batch) -> None:
        self._last = batch
        self._partitions = batch.partitions or self._partitions
        if self._rescale:
            self._end_rescale(self._rescale, batch)
        elif self._is_warm:
            self._batches.append(batch)
            self._decide(batch)
        else:
            self._record("batch", batch, "the first batch also loads classes and state")
        self._is_warm = self._is_warm or batch.partitions is not None

    def _decide(self, batch: Batch) -> None:
        load = self._load()
        if load is None:
            return
        wanted = self._plan.policy.wanted(load)
        wanted = self._plan.bounds.apply(wanted, self._sizes.needed(load), load)
        now = batch.ended.timestamp()
        steady = self._stabilizer.steady(now, load.partitions, wanted)
        self._record("batch", batch, wanted.reason, target=wanted.partitions)
        if steady and not self._is_refused:
            self._change(load.partitions, steady.partitions, steady.reason)
            self._stabilizer.changed(time.time())

    def _load(self) -> Load | None:
        if self._partitions is None:
            return None
        slots = self._most_slots()
        return load_of(list(self._batches), self._partitions, slots, self._plan.trigger)

    def _most_slots(self) -> int:
        asked, slots = self._slots
        if time.monotonic() - asked > _SLOTS_SECONDS:
            slots = min(jvm.most_slots(self._spark), self._plan.bounds.most)
            self._slots = (time.monotonic(), slots)
        return slots

    def _change(self, before: int, after: int, reason: str) -> None:
        pending = PendingRescale(
            before, after, f"{before} -> {after} partitions: {reason}", _file_sink(self._progress)
        )
        _log.info("%s", pending.reason)
        stopped = time.time()
        self._checkpoint.begin(pending)
        self._query.stop()
        self._finish_batch()
        finished = time.time()
        try:
            self._repartition(after, pending.file_sink)
        except Exception as error:
            self._checkpoint.end()
            refused = self._refuse(pending.reason, error)
            if self._last:
                self._record("failure", self._last, refused, changed=pending)
        else:
            self._rescale = _Rescale(pending, stopped, finished, time.time())
        self._query = self._start()
        self._progress = None
        self._is_warm = False
        self._batches.clear()

    def _repartition(self, partitions: int, file_sink: str | None) -> None:
        self._checkpoint.repartition(partitions)
        self._checkpoint.complete_sink(file_sink)
        self._partitions = partitions

    def _end_rescale(self, rescale: _Rescale, batch: Batch) -> None:
        self._rescale = None
        self._checkpoint.end()
        ended = batch.ended.timestamp()
        self._record(
            "rescale",
            batch,
            rescale.pending.reason,
            changed=rescale.pending,
            stop_millis=_millis(rescale.repartitioning - rescale.stopped),
            repartition_millis=_millis(rescale.started - rescale.repartitioning),
            start_millis=_millis(ended - rescale.started),
            pause_millis=_millis(ended - rescale.stopped),
        )

    def _refuse(self, rescale: str, error: Exception) -> str:
        """Keep the number from now on, because Spark would refuse a change again."""
        self._is_refused = True
        reason = f"{rescale}: Spark cannot repartition the state: {_first_line(error)}"
        _log.warning("%s", reason)
        return reason

    def _continue_rescale(self) -> None:
        """Finish the rescale that a crash has interrupted. The query is not running."""
        pending = self._checkpoint.pending()
        wanted = self._checkpoint.unfinished_repartition()
        if wanted is None and pending and pending.to_partitions != self._partitions:
            self._finish_batch()
            wanted = pending.to_partitions
        if wanted is not None:
            try:
                self._repartition(wanted, pending.file_sink if pending else None)
            except Exception as error:
                self._refuse(f"the interrupted rescale to {wanted} partitions", error)
        elif pending:
            self._checkpoint.complete_sink(pending.file_sink)
        self._checkpoint.end()

    def _finish_batch(self) -> None:
        """Run the batch that the stop has interrupted, and no other.

        Sinks that know batches by their id must get this batch again (Spark's LAST_BATCH_FAILED).
        `Trigger.Once` runs only an uncommitted batch if there is one (SingleBatchExecutor).
        """
        if self._checkpoint.uncommitted_batch() is not None:
            self._writer().trigger(once=True).start().awaitTermination()

    def _first_start(self) -> StreamingQuery:
        policy = self._plan.policy
        if self._partitions is None and isinstance(policy, Fixed):
            with confs(self._spark, {PARTITIONS: str(policy.partitions)}):
                return self._start()
        return self._start()

    def _start(self) -> StreamingQuery:
        writer = self._writer()
        if self._plan.trigger is not None:
            millis = _millis(self._plan.trigger)
            writer = writer.trigger(processingTime=f"{millis} milliseconds")
        return writer.start()

    def _writer(self) -> DataStreamWriter:
        return self._build().option("checkpointLocation", self._checkpoint.location)

    def _record(
        self,
        event: Event,
        batch: Batch,
        reason: str,
        *,
        target: int | None = None,
        changed: PendingRescale | None = None,
        **millis: int,
    ) -> None:
        partitions = self._partitions or 0
        record = StreamRecord(
            stream=batch.name,
            query_id=batch.query_id,
            run_id=batch.run_id,
            at=batch.ended,
            event=event,
            batch=batch.id,
            policy=self._plan.policy.name,
            partitions=partitions,
            target=target or partitions,
            slots=self._most_slots(),
            batch_millis=_millis(batch.seconds),
            trigger_millis=None if self._plan.trigger is None else _millis(self._plan.trigger),
            input_rows=batch.input_rows,
            input_rows_per_second=batch.input_rows_per_second,
            processed_rows_per_second=batch.processed_rows_per_second,
            backlog_rows=batch.backlog_rows,
            state_rows=batch.state_rows,
            state_bytes=batch.state_bytes,
            batch_bytes=sum(batch.shuffled) if batch.shuffled else None,
            largest_share=batch.largest_share,
            reason=reason,
            from_partitions=changed.from_partitions if changed else None,
            to_partitions=changed.to_partitions if changed else None,
            **millis,
        )
        line = json.dumps(record.to_json())
        self._records.append(record)
        self._lines.append(line)
        jvm.report_stream(self._spark, line)
        if event != "batch" or time.monotonic() > self._journal_due:
            self._write_journal()

    def _write_journal(self) -> None:
        began = time.monotonic()
        self._checkpoint.write_journal(self._lines)
        ended = time.monotonic()
        self._journal_due = ended + max(_JOURNAL_SECONDS, (ended - began) / _JOURNAL_SHARE)


def _file_sink(progress: jvm.Progress | None) -> str | None:
    """Return the path of a query's file sink; None for other sinks."""
    # Spark shows a file sink as FileSink[path] (FileStreamSink.toString), and has no field for it.
    description = str(progress["sink"]["description"]) if progress else ""
    is_file = description.startswith(_FILE_SINK) and description.endswith("]")
    return description[len(_FILE_SINK) : -1] if is_file else None


def _millis(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
