"""Policy of a decision, from the confs of a query and its task slots."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from apportion._util.checks import power_down, power_up
from apportion.errors import SettingError
from apportion.settings import find

MAX_REDUCER_PARTITIONS = "spark.sql.adaptive.coalescePartitions.maxReducerPartitionsPerTask"
# Blocks in batches that cost as much as one request: `BlocksPerRequest` in `Policy.scala`.
_BLOCKS_PER_REQUEST = 32
ADVISORY_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
MAX_PARTITION_BYTES = "spark.sql.files.maxPartitionBytes"
OPEN_COST = "spark.sql.files.openCostInBytes"
_DEFAULTS: dict[str, str] = {
    ADVISORY_SIZE: "64MB",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1MB",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "true",
    "spark.shuffle.manager": "sort",
    "spark.sql.adaptive.fetchShuffleBlocksInBatch": "true",
    MAX_PARTITION_BYTES: "128MB",
    OPEN_COST: "4MB",
    "spark.sql.shuffle.partitions": "200",
    "spark.shuffle.sort.bypassMergeThreshold": "200",
    "spark.shuffle.minNumPartitionsToHighlyCompress": "2000",
}


class Confs:
    """Typed confs of a query. Missing and malformed values have their defaults."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def setting(self, keyword: str) -> Any:
        """Return the value of one of Apportion's settings, by its keyword."""
        setting = find(keyword)
        text = self._values.get(setting.key)
        try:
            return setting.default if text is None else setting.parse(text)
        except SettingError:
            return setting.default

    def is_set(self, keyword: str) -> bool:
        """Return whether one of Apportion's settings is set, even if to its default."""
        return find(keyword).key in self._values

    def text(self, key: str) -> str | None:
        """Return the text of a conf, or its default in `_DEFAULTS`."""
        return self._values.get(key, _DEFAULTS.get(key))

    def size(self, key: str) -> int:
        """Return one of Spark's sizes in bytes, 1 or more."""
        size_setting = find("data_volume_per_task")
        for text in (self._values.get(key), _DEFAULTS[key]):
            try:
                return int(size_setting.parse(text or ""))
            except SettingError:
                continue
        return 1

    def number(self, key: str) -> int | None:
        """Return one of Spark's confs as a whole number, 1 or more."""
        for text in (self._values.get(key), _DEFAULTS.get(key)):
            if text is not None and text.isdecimal() and 1 <= int(text) < 2**31:
                return int(text)
        return None

    def flag(self, key: str) -> bool:
        """Return whether a conf is true."""
        return (self.text(key) or "false").strip().lower() == "true"

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
    def fetches_in_batch(self) -> bool:
        """Whether Spark fetches the blocks of a map task in one request."""
        exclusions = (
            "spark.io.encryption.enabled",
            "spark.shuffle.push.enabled",
            "spark.shuffle.useOldFetchProtocol",
        )
        manager = (self.text("spark.shuffle.manager") or "").rpartition(".")[2].lower()
        return (
            self.flag("spark.sql.adaptive.fetchShuffleBlocksInBatch")
            and not any(map(self.flag, exclusions))
            and manager in ("sort", "tungsten-sort", "sortshufflemanager")
        )


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
    max_blocks_per_shuffle: int = 1 << 24
    task_memory: int | None = None
    """Bytes of execution memory that the rows of a task may fill; None for no limit."""

    @classmethod
    def from_confs(cls, confs: Confs, slots: int) -> Policy:
        """Return the policy for a shuffle whose tasks do not share the `slots`."""
        parallelism = confs.setting("parallelism")
        return cls(
            data_volume_per_task=confs.setting("data_volume_per_task") or confs.size(ADVISORY_SIZE),
            broadcast_ratio=confs.setting("broadcast_ratio"),
            min_parallelism=confs.setting("min_parallelism"),
            max_parallelism=confs.setting("max_parallelism"),
            parallelism=None if parallelism == -1 else parallelism,
            slots=None if confs.setting("mode") == "active" else slots,
            steady_slots=None if confs.is_dynamic else slots,
            min_task_volume=confs.setting("min_task_volume"),
            balanced=confs.setting("ranges") == "balanced",
            rounding=confs.setting("rounding"),
            max_blocks_per_task=confs.setting("max_blocks_per_task"),
            fetches_in_batch=confs.fetches_in_batch,
            max_subpartitions_per_task=confs.number(MAX_REDUCER_PARTITIONS),
            max_blocks_per_shuffle=confs.setting("max_blocks_per_shuffle"),
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
