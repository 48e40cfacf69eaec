"""A JVM without Spark, for the controller of streams: a checkpoint in memory, and its batches."""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from apportion._spark import jvm
from apportion.streaming import sizes
from apportion.streaming.checkpoint import PARTITIONS, Checkpoint
from apportion.streaming.controller import Plan, Stream
from apportion.streaming.policies import Policy
from apportion.streaming.sizes import Bounds

PENDING = "_apportion/rescale.json"
JOURNAL = "_apportion/journal.jsonl"


class FakeSpark:
    """Spark and its JVM. `fail` makes some calls of a function raise an error."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.files: dict[str, str] = {}
        self.sink: set[int] = set()
        self.calls: Counter[str] = Counter()
        self.failures: dict[str, tuple[int, BaseException]] = {}
        self.batches = 0
        self.seconds: Callable[[int], float] = lambda partitions: 1.0
        self.sink_description = "FileSink[/out]"
        self.query_error: Exception | None = None
        self.interrupts_batches = False
        self.is_idle = threading.Event()
        # Each batch takes 10 s of this clock.
        self._now = 1_000_000_000.0
        patch.setattr(jvm, "CheckpointFiles", lambda spark, location: self)
        patch.setattr(jvm, "await_batch", self.await_batch)
        patch.setattr(jvm, "most_slots", lambda spark: self.called("most_slots", 64))
        patch.setattr(jvm, "report_stream", lambda spark, line: self.called("report_stream"))
        patch.setattr(jvm, "repartition_state", self.repartition_state)
        patch.setattr(jvm, "add_empty_file_batch", self.add_empty_file_batch)
        patch.setattr(sizes.StateSizes, "needed", lambda *_: self.called("decide", 1))
        clock = SimpleNamespace(time=lambda: self._now, monotonic=time.monotonic)
        patch.setattr("apportion.streaming.controller.time", clock)
        patch.setattr("apportion.streaming.controller._WAIT_SECONDS", 0.001)

    def fail(self, name: str, error: BaseException, times: int = 1_000_000) -> None:
        self.failures[name] = (times, error)

    def called(self, name: str, answer: int = 0) -> int:
        self.calls[name] += 1
        times, error = self.failures.get(name, (0, OSError()))
        if times > 0:
            self.failures[name] = (times - 1, error)
            raise error
        return answer

    def list(self, folder: str) -> list[tuple[str, bool]]:
        below = [name[len(folder) + 1 :] for name in self.files if name.startswith(f"{folder}/")]
        return sorted({(name.partition("/")[0], "/" in name) for name in below})

    def read(self, name: str) -> str | None:
        self.called(f"read {name}")
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.called(f"write {name}")
        self.files[name] = text

    def delete(self, name: str) -> None:
        self.called(f"delete {name}")
        self.files.pop(name, None)

    def last(self, log: str) -> int:
        return max((int(name) for name, _ in self.list(log)), default=-1)

    def partitions(self) -> int:
        last = self.files.get(f"offsets/{self.last('offsets')}", '\n{"conf": {}}')
        return int(json.loads(last.splitlines()[1])["conf"].get(PARTITIONS, 2))

    def begin_batch(self, partitions: int) -> int:
        batch = self.last("offsets") + 1
        metadata = json.dumps({"conf": {PARTITIONS: str(partitions)}})
        self.files[f"offsets/{batch}"] = f"v1\n{metadata}"
        return batch

    def end_batch(self) -> None:
        batch = self.last("offsets")
        self.files[f"commits/{batch}"] = ""
        self.sink.add(batch)

    def repartition_state(self, spark: object, location: str, partitions: int) -> None:
        self.called("repartition before it begins")
        if self.last("offsets") == self.last("commits"):
            self.begin_batch(partitions)
        batch = self.last("offsets")
        self.files[f"state/0/0/{batch + 1}.zip"] = ""
        self.called("repartition")
        self.files[f"commits/{batch}"] = ""

    def add_empty_file_batch(self, spark: object, sink: str, batch: int) -> None:
        self.called("complete_sink")
        self.sink.add(batch)

    def await_batch(self, *_: object) -> dict[str, Any]:
        """Run one batch. The query fails or waits after the last one of `batches`."""
        self.called("await_batch")
        if not self.batches:
            self.is_idle.set()
            time.sleep(0.001)
            return {"ended": not self.query().isActive, "progress": [], "bytes": None}
        partitions = self.partitions()
        batch = self.begin_batch(partitions)
        self.end_batch()
        self.batches -= 1
        seconds = self.seconds(partitions)
        began = datetime.datetime.fromtimestamp(self._now, datetime.timezone.utc)
        self._now += 10
        progress = {
            "id": "query", "runId": "run", "timestamp": began.isoformat(), "batchId": batch,
            "batchDuration": round(seconds * 1000), "numInputRows": 1000, "inputRowsPerSecond": 100,
            "stateOperators": [{"numShufflePartitions": partitions}],
            "sink": {"description": self.sink_description},
        }  # fmt: skip
        return {"ended": False, "progress": [progress], "bytes": None}

    def query(self) -> FakeQuery:
        return FakeQuery(self)

    def start(self, policy: Policy, cooldown: float = 0) -> Stream:
        """Return a stream with a batch each 10 s, which begins with 2 partitions."""
        spark: Any = self
        build: Any = lambda: FakeWriter(self)  # noqa: E731
        plan = Plan(policy, 10.0, 0, cooldown, Bounds(1, 64, 1 << 30))
        return Stream(spark, build, Checkpoint(spark, "/checkpoint"), plan)

    def run(self, batches: int) -> None:
        """Run batches, and wait until the stream has seen them."""
        self.is_idle.clear()
        self.batches = batches
        assert self.is_idle.wait(5), "the stream does not read its batches"


class FakeQuery:
    def __init__(self, spark: FakeSpark) -> None:
        self._spark = spark

    @property
    def isActive(self) -> bool:  # noqa: N802
        self._spark.called("isActive")
        return self._spark.query_error is None

    def stop(self) -> None:
        self._spark.called("stop")
        if self._spark.interrupts_batches:
            self._spark.begin_batch(self._spark.partitions())

    def awaitTermination(self) -> None:  # noqa: N802
        self._spark.called("await")
        if self._spark.query_error:
            raise self._spark.query_error
        self._spark.end_batch()


class FakeWriter:
    def __init__(self, spark: FakeSpark) -> None:
        self._spark = spark

    def option(self, *_: object) -> FakeWriter:
        return self

    def trigger(self, **_: object) -> FakeWriter:
        return self

    def start(self) -> FakeQuery:
        self._spark.called("start")
        return self._spark.query()
