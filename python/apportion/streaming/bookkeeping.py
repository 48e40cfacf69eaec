"""Bookkeeping of a running stream: its records, in memory, in the JVM and in its journal.

A failure of bookkeeping never stops the query. It is logged, and the next batch tries again.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

from apportion._spark import jvm
from apportion.logs.stream_record import StreamRecord
from apportion.streaming.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_MOST_RECORDS = 1000
# The journal is written as a whole, so not after each batch, and less often if it takes long.
_JOURNAL_SECONDS = 10.0
_JOURNAL_SHARE = 0.002
# A failure that goes on is logged again after this time.
_LOG_SECONDS = 3600.0


class Attempt:
    """Context of a task whose exceptions are logged once, and do not leave it.

    `checkpoint` is the location of the stream's checkpoint, for the log.
    """

    def __init__(self, checkpoint: str, task: str) -> None:
        self._checkpoint = checkpoint
        self._task = task
        self._logged = float("-inf")

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        # KeyboardInterrupt and SystemExit are not failures of the task.
        if not isinstance(error, Exception):
            return False
        if time.monotonic() - self._logged > _LOG_SECONDS:
            self._logged = time.monotonic()
            _log.warning(
                "the stream in %s cannot %s, and tries again",
                self._checkpoint,
                self._task,
                exc_info=error,
            )
        return True


class Records:
    """The last records of a stream, which go to `apportion_streams()` and to the journal."""

    def __init__(self, spark: SparkSession, checkpoint: Checkpoint) -> None:
        self.newest: deque[StreamRecord] = deque(maxlen=_MOST_RECORDS)
        self._spark = spark
        self._checkpoint = checkpoint
        self._lines: deque[str] = deque(maxlen=_MOST_RECORDS)
        self._has_earlier_lines = False
        self._due = float("-inf")
        self._reporting = Attempt(checkpoint.location, "report its records to Spark")
        self._writing = Attempt(checkpoint.location, "write its journal")

    def add(self, record: StreamRecord) -> None:
        """Report a record, and write the journal if it is due."""
        self.newest.append(record)
        with self._reporting:
            line = json.dumps(record.to_json())
            self._lines.append(line)
            jvm.report_stream(self._spark, line)
        if record.event != "batch" or time.monotonic() > self._due:
            began = time.monotonic()
            with self._writing:
                self._write_journal()
            ended = time.monotonic()
            self._due = ended + max(_JOURNAL_SECONDS, (ended - began) / _JOURNAL_SHARE)

    def _write_journal(self) -> None:
        if not self._has_earlier_lines:
            # Without them, the records of earlier runs would be lost.
            earlier = self._checkpoint.read_journal()
            self._lines = deque([*earlier, *self._lines], maxlen=_MOST_RECORDS)
            self._has_earlier_lines = True
        self._checkpoint.write_journal(self._lines)
