"""Runs a streaming query, watches its load, and changes its state partitions.

A rescale has three steps: stop the query at the end of a batch, repartition its state, and start it
again. `Checkpoint.begin` notes it first, so that the next start continues it after a crash.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark import InheritableThread
from pyspark.errors import StreamingQueryException

from apportion._spark import jvm
from apportion.errors import InputError
from apportion.logs.stream_record import Event, StreamRecord, name_by_place
from apportion.redaction import one_line
from apportion.session import confs
from apportion.streaming.batches import Batch, file_sink
from apportion.streaming.bookkeeping import Attempt, Records
from apportion.streaming.checkpoint import (
    PARTITIONS,
    Checkpoint,
    PendingRescale,
    is_unsupported,
)
from apportion.streaming.policies import Fixed, Load, Policy, Wanted, load_of
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
_SLOTS_SECONDS = 10.0
# A batch ends the wait for it, so this is only the longest time that `stop` takes.
_WAIT_SECONDS = 0.5
# Without the entry of a rescale, a file sink fails at every tenth batch, and the query ends. So the
# start waits up to 20 seconds for a log that cannot be written.
_SINK_ATTEMPTS = 40


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
        self._records = Records(spark, checkpoint)
        self._policy_name = str(plan.policy.name)
        self._pending: PendingRescale | None = None
        self._rescale: _Rescale | None = None
        self._before: Load | None = None
        self._is_unsupported = False
        self._is_warm = False
        self._last: Batch | None = None
        self._progress: jvm.Progress | None = None
        self._slots: int | None = None
        self._slots_due = float("-inf")
        attempt = functools.partial(Attempt, checkpoint.location)
        self._watching = attempt("read the batches of its query")
        self._counting = attempt("read the task slots")
        self._deciding = attempt(f"ask the policy {self._policy_name}")
        self._reading = attempt("read the state partitions of its checkpoint")
        self._settling = attempt("end a rescale in its checkpoint and in the log of its sink")
        self._ending = attempt("stop its query")
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
        return list(self._records.newest)

    @property
    def rescales(self) -> list[StreamRecord]:
        """Records of the rescales among `records`."""
        return [record for record in self.records if record.event == "rescale"]

    def stop(self) -> None:
        """Stop the query, and wait until its thread has ended.

        Raises the query's error if it failed.
        """
        self._stopping.set()
        self.await_termination()

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
            self._watch()
        except Exception as error:
            _log.exception("the stream in %s has ended with an error", self._checkpoint.location)
            self._error = error
        except BaseException as error:
            self._error = error
            raise
        finally:
            # After an error outside the query, the query still runs.
            with self._ending:
                self._query.stop()
            if self._last:
                end = f" with an error: {jvm.first_line(self._error)}" if self._error else ""
                self._record("ended", self._last, f"the stream ended{end}")

    def _watch(self) -> None:
        """Observe batches until the query ends, or is to stop. Raises the query's error."""
        is_ended = False
        while not is_ended and not self._stopping.is_set():
            query = self._query
            is_ended, batches = self._await_batches()
            for batch in batches:
                # A rescale replaces the query, and later batches are those of the old one.
                if self._query is query:
                    self._observe(batch)
            is_ended = is_ended and self._query is query
        if self._query.isActive:
            self._query.stop()
        else:
            self._query.awaitTermination()

    def _await_batches(self) -> tuple[bool, list[Batch]]:
        """Return whether the query has ended, and its new batches."""
        known = self._progress["timestamp"] if self._progress else None
        with self._watching:
            found = jvm.await_batch(self._spark, self._query, known, _WAIT_SECONDS)
            if found["progress"]:
                self._progress = found["progress"][-1]
            batches = [Batch.from_progress(report) for report in found["progress"]]
            if batches:
                batches[-1] = batches[-1].with_bytes(found["bytes"])
            return found["ended"], batches
        self._stopping.wait(_WAIT_SECONDS)
        return not self._query.isActive, []

    def _observe(self, batch: Batch) -> None:
        self._last = batch
        self._partitions = batch.partitions or self._partitions
        self._settle()
        if self._rescale:
            self._end_rescale(self._rescale, batch)
        elif self._is_warm:
            self._batches.append(batch)
            self._decide(batch)
        else:
            self._record("batch", batch, "the first batch also loads classes and state")
        self._is_warm = self._is_warm or batch.partitions is not None

    def _decide(self, batch: Batch) -> None:
        partitions, slots = self._partitions, self._most_slots()
        if partitions is None:
            return
        load: Load | None = None
        wanted = Wanted(partitions, "the number stays, because the policy failed")
        if slots is None:
            wanted = Wanted(partitions, "the number stays, because the task slots are not known")
        else:
            with self._deciding:
                batches, trigger = list(self._batches), self._plan.trigger
                load = load_of(batches, partitions, slots, trigger, self._before)
                needed = self._sizes.needed(load)
                wanted = self._plan.bounds.apply(self._plan.policy.wanted(load), needed, load)
        steady = self._stabilizer.steady(batch.ended.timestamp(), partitions, wanted)
        self._record("batch", batch, wanted.reason, target=wanted.partitions)
        if steady and not self._is_unsupported and not self._pending:
            self._change(partitions, steady.partitions, steady.reason)
            self._stabilizer.changed(time.time())
            self._before = load

    def _most_slots(self) -> int | None:
        """Return the task slots; the last known number if Spark does not tell them."""
        if time.monotonic() > self._slots_due:
            self._slots_due = time.monotonic() + _SLOTS_SECONDS
            with self._counting:
                self._slots = min(jvm.most_slots(self._spark), self._plan.bounds.most)
        return self._slots

    def _change(self, before: int, after: int, reason: str) -> None:
        pending = PendingRescale(
            before, after, f"{before} -> {after} partitions: {reason}", self._file_sink()
        )
        _log.info("%s", pending.reason)
        self._pending = pending
        try:
            self._checkpoint.begin(pending)
        except Exception as error:
            # The query still runs.
            self._refuse(pending.reason, error, pending)
            return
        stopped = time.time()
        self._query.stop()
        finished = stopped
        try:
            self._finish_batch()
            finished = time.time()
            self._checkpoint.repartition(after)
        except StreamingQueryException:
            raise
        except Exception as error:
            self._refuse(pending.reason, error, pending)
        else:
            self._partitions = after
            self._rescale = _Rescale(pending, stopped, finished, time.time())
        self._settle_before_start()
        self._query = self._start()
        self._progress = None
        self._is_warm = False
        self._batches.clear()

    def _settle(self) -> None:
        """Delete the note of a rescale, after the log of a file sink has its batch."""
        if self._pending:
            with self._settling:
                self._checkpoint.complete_sink(self._pending.file_sink)
                self._checkpoint.end()
                self._pending = None

    def _settle_before_start(self) -> None:
        self._settle()
        for _ in range(_SINK_ATTEMPTS - 1):
            if self._pending and not self._stopping.wait(_WAIT_SECONDS):
                self._settle()

    def _end_rescale(self, rescale: _Rescale, batch: Batch) -> None:
        self._rescale = None
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

    def _refuse(self, rescale: str, error: Exception, pending: PendingRescale | None) -> None:
        """Keep the number of the checkpoint, for ever if Spark cannot repartition the state."""
        self._is_unsupported = is_unsupported(error)
        cause = "Spark cannot repartition the state" if self._is_unsupported else "it failed"
        reason = f"{rescale}: {cause}: {jvm.first_line(error)}"
        _log.warning("%s", reason)
        with self._reading:
            self._partitions = self._checkpoint.partitions()
        if self._last:
            self._record("failure", self._last, reason, changed=pending)

    def _continue_rescale(self) -> None:
        """Finish the rescale that a crash has interrupted. The query is not running."""
        self._pending = pending = self._checkpoint.pending()
        wanted = self._checkpoint.unfinished_repartition()
        if wanted is None and pending and pending.to_partitions != self._partitions:
            self._finish_batch()
            wanted = pending.to_partitions
        if wanted is not None:
            try:
                self._checkpoint.repartition(wanted)
            except Exception as error:
                if self._checkpoint.unfinished_repartition() is not None:
                    # With an unfinished repartition, the query does not start.
                    raise
                self._refuse(f"the interrupted rescale to {wanted} partitions", error, pending)
            else:
                self._partitions = wanted
        self._settle_before_start()

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
        writer = self._build()
        if not hasattr(writer, "trigger"):
            raise InputError(
                f"build returns {writer!r}: allowed is a DataStreamWriter, such as "
                "df.writeStream.format('parquet')"
            )
        return writer.option("checkpointLocation", self._checkpoint.location)

    def _file_sink(self) -> str | None:
        return file_sink(self._progress["sink"]["description"]) if self._progress else None

    def _name(self, batch: Batch) -> str:
        if batch.name != batch.query_id:
            return batch.name
        return one_line(name_by_place(self._checkpoint.location, batch.query_id))

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
            stream=self._name(batch),
            query_id=batch.query_id,
            run_id=batch.run_id,
            at=batch.ended,
            event=event,
            batch=batch.id,
            policy=self._policy_name,
            partitions=partitions,
            target=target or partitions,
            slots=self._most_slots() or 0,
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
        self._records.add(record)


def _millis(seconds: float) -> int:
    return max(0, round(seconds * 1000))
