"""Policy of a decision, from the confs of a query and its task slots."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

from apportion._util.checks import LARGEST_LONG, power_down, power_up
from apportion._util.units import count_text, read_bytes
from apportion.errors import SettingError
from apportion.settings import find

MAX_REDUCER_PARTITIONS = "spark.sql.adaptive.coalescePartitions.maxReducerPartitionsPerTask"
# Blocks in batches that cost as much as one request: `BlocksPerRequest` in `Policy.scala`.
_BLOCKS_PER_REQUEST = 32
ADVISORY_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
COALESCING = "spark.sql.adaptive.coalescePartitions.enabled"
MIN_SIZE = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
SKEW_JOIN = "spark.sql.adaptive.skewJoin.enabled"
SKEW_FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
SKEW_THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
_INITIAL_PARTITIONS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
MAX_PARTITION_BYTES = "spark.sql.files.maxPartitionBytes"
OPEN_COST = "spark.sql.files.openCostInBytes"
_MEMORY_SHARE = "spark.memory.fraction"
# Waves of tasks below Spark's minimum size: `SessionPolicy.scala`.
_WAVES_OF_TINY_TASKS = 4
# Bytes of a heap that Spark leaves free: `UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES`.
_RESERVED = 300 << 20
# Plugins of Gluten, the RAPIDS Accelerator and Comet: `Cluster.hasOtherEngine`.
_ENGINES = (".GlutenPlugin", "com.nvidia.spark.SQLPlugin", ".CometPlugin")
_DEFAULTS: dict[str, str] = {
    ADVISORY_SIZE: "64MB",
    COALESCING: "true",
    MIN_SIZE: "1MB",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
    "spark.shuffle.manager": "sort",
    "spark.sql.adaptive.fetchShuffleBlocksInBatch": "true",
    SKEW_JOIN: "true",
    SKEW_FACTOR: "5.0",
    SKEW_THRESHOLD: "256MB",
    MAX_PARTITION_BYTES: "128MB",
    OPEN_COST: "4MB",
    SHUFFLE_PARTITIONS: "200",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.memory.offHeap.size": "0",
    _MEMORY_SHARE: "0.6",
    "spark.shuffle.sort.bypassMergeThreshold": "200",
}
_ALLOW_ZERO = {
    OPEN_COST,
    SKEW_THRESHOLD,
    "spark.memory.offHeap.size",
    "spark.shuffle.sort.bypassMergeThreshold",
}
# A number without a unit is in MiB, unlike other sizes.
_IN_MEBIBYTES = {"spark.driver.memory", "spark.executor.memory"}


# Kinds of sources of a policy's values; see `io.apportion.decision.SourceKind`.
REQUESTED_SIZE = "requested-size"
MULTIPLIED_ROWS = "multiplied-rows"


class Confs:
    """Typed confs of a query. Missing and malformed values have their defaults.

    A malformed value raises `SettingError` if its key is one of `changed`.
    """

    def __init__(self, values: Mapping[str, str], changed: Collection[str] = ()) -> None:
        self._values = values
        self._changed = changed
        self.read: set[str] = set()
        """Keys of Spark's confs that were read."""

    def setting(self, keyword: str) -> Any:
        """Return the value of one of Apportion's settings, by its keyword."""
        setting = find(keyword)
        text = self._values.get(setting.key)
        try:
            return setting.default if text is None else setting.check(text)
        except SettingError:
            return setting.default

    def is_set(self, keyword: str) -> bool:
        """Return whether one of Apportion's settings is set, even if to its default."""
        return find(keyword).key in self._values

    def text(self, key: str) -> str | None:
        """Return the text of a conf, or its default in `_DEFAULTS`."""
        self.read.add(key)
        return self._values.get(key, _DEFAULTS.get(key))

    def _texts(self, key: str) -> list[str]:
        """Return the text of a conf and its default, without spaces around them."""
        self.read.add(key)
        return [values[key].strip() for values in (self._values, _DEFAULTS) if key in values]

    def _refuse(self, key: str, allowed: str) -> None:
        if key in self._changed:
            raise SettingError(f"{key} is {self._values[key]!r}: allowed is {allowed}")

    def size(self, key: str) -> int:
        """Return one of Spark's sizes in bytes, 1 or more; 0 where Spark allows it."""
        least = int(key not in _ALLOW_ZERO)
        unit = "m" if key in _IN_MEBIBYTES else ""
        for text in self._texts(key):
            size = read_bytes(text + unit if text.isdecimal() else text)
            if least <= size <= LARGEST_LONG:
                return size
            self._refuse(key, f"a size of {count_text(least, 'byte')} or more, such as 64MB")
        return least

    def number(self, key: str) -> int | None:
        """Return one of Spark's confs as a whole number, 1 or more; 0 where Spark allows it."""
        least = int(key not in _ALLOW_ZERO)
        for text in self._texts(key):
            if text.isdecimal() and least <= int(text) < 2**31:
                return int(text)
            self._refuse(key, f"a whole number of {least} or more")
        return None

    def factor(self, key: str, most: float = math.inf) -> float:
        """Return one of Spark's confs as a number from 0 to `most`."""
        for text in self._texts(key):
            with contextlib.suppress(ValueError):
                if 0 <= (value := float(text)) <= most and value < math.inf:
                    return value
            self._refuse(key, "a number of 0 or more" if most == math.inf else f"0 to {most:g}")
        return 0.0

    def flag(self, key: str) -> bool:
        """Return whether a conf is true."""
        text = (self.text(key) or "false").strip().lower()
        if text not in ("true", "false"):
            self._refuse(key, "true or false")
        return text == "true"

    @property
    def shuffle_partitions(self) -> int | None:
        """Number of partitions with which Spark writes a shuffle."""
        initial = self.number(_INITIAL_PARTITIONS) if self.flag(COALESCING) else None
        return initial or self.number(SHUFFLE_PARTITIONS)

    @property
    def is_local(self) -> bool:
        """Whether tasks run in the driver, whose memory is not that of executors."""
        master = self.text("spark.master") or ""
        return master == "local" or master.startswith("local[")

    def default_parallelism(self, slots: int) -> int:
        """Return Spark's default parallelism with a number of task slots."""
        least = 1 if self.is_local else 2
        return self.number("spark.default.parallelism") or max(slots, least)

    def task_memory(self, slots: int) -> int | None:
        """Return the bytes of execution memory that rows of a task may fill; None for no limit.

        `slots` is the number of task slots of an executor: `Cluster.scala` and `SessionPolicy`.
        """
        if not self.setting("memory_enabled") or (
            self._has_other_engine() and not self.is_set("memory_enabled")
        ):
            return None
        heap = self.size("spark.driver.memory" if self.is_local else "spark.executor.memory")
        memory = max(heap - _RESERVED, 0) * self.factor(_MEMORY_SHARE, most=1)
        if self.flag("spark.memory.offHeap.enabled"):
            memory = self.size("spark.memory.offHeap.size")
        return max(1, int(memory / slots * self.setting("memory_fraction")))

    def _has_other_engine(self) -> bool:
        """Return whether another engine runs the operators, in memory of its own."""
        plugins = (self.text("spark.plugins") or "").split(",")
        return any(plugin.strip().endswith(_ENGINES) for plugin in plugins)

    @property
    def enabled(self) -> bool:
        """Whether Apportion decides the tasks, instead of Spark."""
        return bool(self.setting("enabled")) and self.setting("mode") != "observe"

    @property
    def is_dynamic(self) -> bool:
        """Whether Spark adds and removes executors."""
        is_local = (self.text("spark.master") or "").startswith("local")
        return self.flag("spark.dynamicAllocation.enabled") and not is_local

    @property
    def writes_adaptively(self) -> bool:
        """Whether map tasks decide how finely they write: `PlainWrites` and `PlainShuffles`."""
        disabled = str(self.setting("rules_disabled") or "").split(",")
        return (
            self.enabled
            and bool(self.setting("adaptive_writes"))
            and self.flag(COALESCING)
            and not {"AdaptiveWrites", "DecideShuffleReads"} & set(disabled)
            and self._has_plain_shuffles()
            and not self._has_other_engine()
        )

    @property
    def fetches_in_batch(self) -> bool:
        """Whether Spark fetches the blocks of a map task in one request."""
        return (
            self.flag("spark.sql.adaptive.fetchShuffleBlocksInBatch")
            and not self.flag("spark.io.encryption.enabled")
            and self._has_plain_shuffles()
        )

    def _has_plain_shuffles(self) -> bool:
        """Return whether the shuffle manager is Spark's own, without the push-based shuffle."""
        manager = (self.text("spark.shuffle.manager") or "").rpartition(".")[2].lower()
        exclusions = ("spark.shuffle.push.enabled", "spark.shuffle.useOldFetchProtocol")
        is_own = manager in ("sort", "tungsten-sort", "sortshufflemanager")
        return is_own and not any(map(self.flag, exclusions))


@dataclasses.dataclass(frozen=True)
class Policy:
    """Values that a decision depends on; see `io.apportion.decision.Policy`. Sizes are bytes."""

    data_volume_per_task: int
    broadcast_ratio: float = 0.5
    min_parallelism: int = 1
    max_parallelism: int = 32768
    parallelism: int | None = None
    slots: int | None = None
    """Slots that a stage may fill with more tasks than its bytes need; None in active mode."""
    steady_slots: int | None = None
    min_task_volume: int = 1 << 20
    balanced: bool = False
    rounding: str = "power-of-two"
    max_blocks_per_task: int = 1 << 15
    fetches_in_batch: bool = False
    max_subpartitions_per_task: int | None = None
    sparks_partitions: int | None = None
    """Number of subpartitions with which Spark would write a shuffle; None if it is unknown."""
    task_memory: int | None = None
    """Bytes of execution memory that the rows of a task may fill; None for no limit."""

    @classmethod
    def from_confs(cls, confs: Confs, slots: int, size: int = 0) -> Policy:
        """Return the policy for shuffles of `size` bytes whose tasks do not share the `slots`.

        A `size` of 0 is unknown.
        """
        parallelism = confs.setting("parallelism")
        steady_slots = None if confs.is_dynamic else slots
        # Spark's tasks read at least the minimum size, so a smaller advisory size makes few tasks.
        few = steady_slots * _WAVES_OF_TINY_TASKS if steady_slots else confs.shuffle_partitions
        volume = max(confs.size(ADVISORY_SIZE), min(confs.size(MIN_SIZE), size // (few or 1)))
        return cls(
            data_volume_per_task=confs.setting("data_volume_per_task") or volume,
            broadcast_ratio=confs.setting("broadcast_ratio"),
            min_parallelism=confs.setting("min_parallelism"),
            max_parallelism=confs.setting("max_parallelism"),
            parallelism=None if parallelism == -1 else parallelism,
            slots=None if confs.setting("mode") == "active" else slots,
            steady_slots=steady_slots,
            min_task_volume=confs.setting("min_task_volume"),
            balanced=confs.setting("ranges") == "balanced",
            rounding=confs.setting("rounding"),
            fetches_in_batch=confs.fetches_in_batch,
            max_subpartitions_per_task=confs.number(MAX_REDUCER_PARTITIONS),
            sparks_partitions=confs.shuffle_partitions,
        )

    @property
    def max_blocks_per_range(self) -> int:
        """Maximum number of blocks per task. It is higher if blocks are fetched in batches."""
        return self.max_blocks_per_task * (_BLOCKS_PER_REQUEST if self.fetches_in_batch else 1)

    @property
    def is_power_of_two(self) -> bool:
        """Whether the number of tasks is a power of two."""
        return not self.balanced or self.rounding == "power-of-two"

    @property
    def lower_bound(self) -> int:
        """Minimum number of tasks, rounded."""
        return power_up(self.min_parallelism) if self.is_power_of_two else self.min_parallelism

    @property
    def upper_bound(self) -> int:
        """Maximum number of tasks, rounded."""
        return power_down(self.max_parallelism) if self.is_power_of_two else self.max_parallelism

    @property
    def broadcast_cap(self) -> int:
        """Maximum bytes of the target size per task that broadcasts take up."""
        return math.ceil(self.data_volume_per_task * self.broadcast_ratio)


def source_policy(confs: Confs, slots: int, spark_tasks: int) -> Policy:
    """Return the policy for a scan of files that has `spark_tasks` tasks with Spark."""
    parallelism = confs.setting("sources_parallelism")
    max_parallelism = confs.setting("sources_max_parallelism")
    if not confs.is_set("sources_max_parallelism"):
        max_parallelism = max(max_parallelism, spark_tasks)
    shuffle_policy = Policy.from_confs(confs, slots)
    # Without a target size, a scan has at least as many tasks as Spark makes.
    min_parallelism = spark_tasks
    if confs.setting("data_volume_per_task"):
        min_parallelism = confs.number("spark.sql.files.minPartitionNum") or 1
    return dataclasses.replace(
        shuffle_policy,
        data_volume_per_task=(
            confs.setting("data_volume_per_task") or confs.size(MAX_PARTITION_BYTES)
        ),
        min_parallelism=min(min_parallelism, max_parallelism),
        max_parallelism=max_parallelism,
        parallelism=None if parallelism == -1 else parallelism,
        min_task_volume=max(shuffle_policy.min_task_volume, confs.size(OPEN_COST)),
        # Files can be cut anywhere, so the number of tasks is not rounded.
        balanced=True,
        rounding="exact",
    )
