"""Streams that rescale: stateful queries whose state partitions follow their load.

from apportion import streaming

stream = streaming.start(spark, build, "/checkpoints/orders", trigger="30s")
stream.await_termination()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, SupportsFloat

from apportion._spark import jvm
from apportion._util import checks
from apportion._util.units import read_bytes, read_seconds
from apportion.errors import ApportionError, InputError
from apportion.logs.stream_record import StreamRecord, read_line
from apportion.streaming.batches import Batch
from apportion.streaming.checkpoint import Checkpoint
from apportion.streaming.controller import Plan, Stream
from apportion.streaming.policies import Backlog, BatchTime, Fixed, Load, Policy, Wanted
from apportion.streaming.simulation import StreamSimulation, simulate
from apportion.streaming.sizes import Bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = [
    "Backlog",
    "Batch",
    "BatchTime",
    "Fixed",
    "Load",
    "Policy",
    "Stream",
    "StreamRecord",
    "StreamSimulation",
    "Wanted",
    "read_line",
    "simulate",
    "start",
]

_LEAST_VERSION = (4, 2)
_MOST_SECONDS = 86_400


def start(
    spark: SparkSession,
    build: Callable[[], DataStreamWriter],
    checkpoint: str,
    *,
    policy: Policy | None = None,
    trigger: str | float | None = None,
    stabilization: str | float = "5min",
    cooldown: str | float = "10min",
    min_partitions: int = 1,
    max_partitions: int = 1024,
    state_per_partition: int | str = "512MB",
) -> Stream:
    """Start a stateful query, and change its number of state partitions when its load changes.

    `build` returns the query as a `DataStreamWriter`, without `start`, checkpoint and trigger. It
    is called again for each rescale. `checkpoint` is the location of Spark's checkpoint. If a
    rescale was interrupted there, it is finished first. Failures of the policy, of the journal and
    of the records are logged, and do not stop the query. `policy` is `BatchTime()` by default.
    `trigger` is the interval between batches; None starts a batch when the one before has ended.

    The number changes after the policy has wanted it for the time `stabilization`, and not sooner
    after a change than `cooldown`. Times are text such as "30s" or numbers of seconds. It stays
    between `min_partitions` and `max_partitions`, and is at least the bytes of the state divided by
    `state_per_partition`, rounded to a power of two.

    Raises `InputError` for a value that is not allowed, and for a state that Spark cannot
    repartition. Raises `ApportionError` before Spark 4.2, on Spark Connect, and without Apportion.
    """
    if not jvm.is_classic(spark):
        raise ApportionError("streaming.start needs a classic Spark session, not Spark Connect")
    if tuple(int(part) for part in spark.version.split(".")[:2]) < _LEAST_VERSION:
        raise ApportionError(
            f"streaming.start needs Spark 4.2 or later, which can repartition the state of a "
            f"stream. This is Spark {spark.version}"
        )
    if not callable(build):
        raise InputError(f"build is {build!r}: allowed is a function that returns the query")
    if not isinstance(checkpoint, str) or not checkpoint:
        raise InputError(f"checkpoint is {checkpoint!r}: allowed is text with a location")
    policy = BatchTime() if policy is None else policy
    if not isinstance(policy, Policy):
        raise InputError(f"policy is {policy!r}: allowed is an object with `name` and `wanted`")
    # Spark starts batches with the interval 0 as without one.
    interval = (None if trigger is None else _seconds("trigger", trigger)) or None
    if isinstance(policy, BatchTime) and interval is None:
        raise InputError("the policy BatchTime needs a trigger, such as trigger='30s'")
    plan = Plan(
        policy=policy,
        trigger=interval,
        stabilization=_seconds("stabilization", stabilization),
        cooldown=_seconds("cooldown", cooldown),
        bounds=Bounds(
            min_partitions,
            max_partitions,
            _bytes("state_per_partition", state_per_partition),
        ),
    )
    found = Checkpoint(spark, checkpoint)
    found.check()
    return Stream(spark, build, found, plan)


def _seconds(name: str, value: str | float) -> float:
    seconds = read_seconds(value) if isinstance(value, str) else value
    is_number = isinstance(seconds, SupportsFloat) and not isinstance(seconds, bool)
    # NaN is not in any range.
    if not is_number or not 0 <= seconds <= _MOST_SECONDS:
        raise InputError(
            f"{name} is {value!r}: allowed is a time of at most one day, such as '30s' or '5min'"
        )
    return float(seconds)


def _bytes(name: str, value: int | str) -> int:
    size = read_bytes(value) if isinstance(value, str) else checks.whole_number(value)
    if size is None or size < 1:
        raise InputError(f"{name} is {value!r}: allowed is a size of at least 1 byte, as '512MB'")
    return size
