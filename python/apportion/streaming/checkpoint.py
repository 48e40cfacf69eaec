"""The checkpoint of a stream: its batches, its state partitions, and an unfinished rescale.

Spark writes `offsets/N` before batch N runs, and `commits/N` after it. A repartition of the state
is a batch too: its offsets are those of the batch before, with another number of partitions.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from apportion._spark import jvm
from apportion.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "RocksDBStateStoreProvider"
_PENDING = "_apportion/rescale.json"
_JOURNAL = "_apportion/journal.jsonl"
_UNSUPPORTED = "STATE_REPARTITION_INVALID_CHECKPOINT.UNSUPPORTED_"
# Files of a state store begin with their version: 7.zip, 7.changelog, 7_<id>.zip, 7.delta.
_VERSION = re.compile(r"(\d+)[._]")


@dataclasses.dataclass(frozen=True)
class PendingRescale:
    """A rescale that has begun.

    It is written before the query stops. It is deleted when the state is repartitioned, and when
    the log of a file sink has the batch that did it.
    """

    from_partitions: int
    to_partitions: int
    reason: str
    file_sink: str | None
    """Path of a file sink; None for other sinks."""


class _Metadata(msgspec.Struct):
    """Spark's `OffsetSeqMetadata`."""

    conf: dict[str, str] = {}


def is_unsupported(error: Exception) -> bool:
    """Return whether Spark says that it can never repartition this state."""
    return jvm.condition(error).startswith(_UNSUPPORTED)


class Checkpoint:
    """Checkpoint of one streaming query."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location
        self._spark = spark
        self._files = jvm.CheckpointFiles(spark, location)

    def partitions(self) -> int | None:
        """Return the state partitions of the last batch; None if no batch has begun."""
        last = self._last("offsets")
        return None if last is None else self._partitions_of(last)

    def uncommitted_batch(self) -> int | None:
        """Return the batch that has begun and has not ended; None if there is none."""
        last = self._last("offsets")
        return last if last is not None and last != self._last("commits") else None

    def unfinished_repartition(self) -> int | None:
        """Return the number of partitions of a repartition that has begun and has not ended."""
        batch = self.uncommitted_batch()
        return self._partitions_of(batch) if batch and self._is_repartition(batch) else None

    def check(self) -> None:
        """Raise `InputError` if Spark cannot repartition this state."""
        provider = self._spark.conf.get(_PROVIDER) or ""
        last = self._last("offsets")
        if last is not None:
            provider = self._conf(last).get(_PROVIDER, provider)
        if not provider.endswith(_ROCKSDB):
            raise InputError(
                f"the state of {self.location} is in {provider.rpartition('.')[2]}: Spark "
                f"repartitions only {_ROCKSDB}. Start a new checkpoint with "
                f"{_PROVIDER}=org.apache.spark.sql.execution.streaming.state.{_ROCKSDB}"
            )

    def repartition(self, partitions: int) -> None:
        """Change the state partitions of the stopped query, or finish an unfinished change.

        Raises Spark's own error, after the checkpoint is as it was before. An unfinished change
        stays if another attempt can finish it, because another process may be writing it.
        """
        before = self.uncommitted_batch()
        try:
            jvm.repartition_state(self._spark, self.location, partitions)
        except Exception as error:
            batch = self.uncommitted_batch()
            is_own = batch != before or is_unsupported(error)
            if batch and is_own and self._is_repartition(batch):
                self._undo(batch)
            raise

    def complete_sink(self, file_sink: str | None) -> None:
        """Add the last repartition to the log of a file sink, unless the log has it.

        Later batches may have been committed since.
        """
        if not file_sink:
            return
        batches = sorted(self._ids("offsets"), reverse=True)
        batch = next(filter(self._is_repartition, batches), None)
        if batch is not None and batch != self.uncommitted_batch():
            jvm.add_empty_file_batch(self._spark, f"{file_sink}/_spark_metadata", batch)

    def pending(self) -> PendingRescale | None:
        """Return the rescale that has begun; None if there is none."""
        text = self._files.read(_PENDING)
        try:
            return None if text is None else msgspec.json.decode(text, type=PendingRescale)
        except (ValueError, msgspec.DecodeError) as error:
            raise InputError(
                f"{self.location}/{_PENDING} is not a rescale that Apportion wrote: {error}"
            ) from None

    def begin(self, rescale: PendingRescale) -> None:
        """Note that a rescale begins."""
        self._files.write(_PENDING, json.dumps(dataclasses.asdict(rescale)))

    def end(self) -> None:
        """Note that no rescale is pending."""
        self._files.delete(_PENDING)

    def write_journal(self, lines: Iterable[str]) -> None:
        """Replace the journal, which has one record per line."""
        self._files.write(_JOURNAL, "".join(f"{line}\n" for line in lines))

    def read_journal(self) -> list[str]:
        """Return the lines of the journal; empty if there is none."""
        return (self._files.read(_JOURNAL) or "").splitlines()

    def _ids(self, log: str) -> list[int]:
        names = [name for name, is_folder in self._files.list(log) if not is_folder]
        return [int(name) for name in names if name.isdecimal()]

    def _last(self, log: str) -> int | None:
        return max(self._ids(log), default=None)

    def _conf(self, batch: int) -> dict[str, str]:
        lines = (self._files.read(f"offsets/{batch}") or "").splitlines()
        # The first line is the version of the format, and the second has the confs.
        try:
            return msgspec.json.decode(lines[1], type=_Metadata).conf if len(lines) > 1 else {}
        except (ValueError, msgspec.DecodeError) as error:
            raise InputError(
                f"{self.location}/offsets/{batch} is not a batch that Spark wrote: {error}"
            ) from None

    def _partitions_of(self, batch: int) -> int | None:
        number = self._conf(batch).get(PARTITIONS)
        return None if number is None else int(number)

    def _is_repartition(self, batch: int) -> bool:
        """As Spark's `OfflineStateRepartitionUtils.isRepartitionBatch`."""
        if batch == 0:
            return False
        before, after = self._partitions_of(batch - 1), self._partitions_of(batch)
        return None not in (before, after) and before != after

    def _undo(self, batch: int) -> None:
        """Delete what the repartition `batch` has written.

        Batch N writes version N + 1 of the state. The versions before it are unchanged. The
        offsets are deleted last: until then, a crash leaves an unfinished repartition.
        """
        for name in list(self._state_files("state")):
            version = _VERSION.match(name.rpartition("/")[2])
            if version and int(version[1]) > batch:
                self._files.delete(name)
        for operator, _ in self._files.list("state"):
            self._files.delete(f"state/{operator}/_metadata/v2/{batch}")
        self._files.delete(f"offsets/{batch}")

    def _state_files(self, folder: str) -> Iterator[str]:
        for name, is_folder in self._files.list(folder):
            if not is_folder:
                yield f"{folder}/{name}"
            # Files of RocksDB have unique names, and no other version uses them.
            elif name not in ("SSTs", "_metadata"):
                yield from self._state_files(f"{folder}/{name}")
