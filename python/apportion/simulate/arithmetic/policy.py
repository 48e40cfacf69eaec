"""What a decision has to respect, from the confs of a query and the slots it runs on."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from apportion._util.checks import power_down, power_up
from apportion.errors import SettingError
from apportion.settings import find

MAX_REDUCER_PARTITIONS = "spark.sql.adaptive.coalescePartitions.maxReducerPartitionsPerTask"
# Blocks that cost as much as a request, where they are fetched in batches: as in the extension.
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
}


class Confs:
    """The confs of a query, typed; defaults stand for what is missing or not as Spark writes it."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def setting(self, keyword: str) -> Any:
        """Return a setting of Apportion's, by its keyword."""
        setting = find(keyword)
        text = self._values.get(setting.key)
        try:
            return setting.default if text is None else setting.parse(text)
        except SettingError:
            return setting.default

    def is_set(self, keyword: str) -> bool:
        """Return whether a setting of Apportion's is set, be it to its default."""
        return find(keyword).key in self._values

    def text(self, key: str) -> str | None:
        """Return the text of a conf, or of its default where one is known here."""
        return self._values.get(key, _DEFAULTS.get(key))

    def size(self, key: str) -> int:
        """Return a conf of Spark's as bytes, 1 or more."""
        sizes = find("data_volume_per_task")
        for text in (self._values.get(key), _DEFAULTS[key]):
            try:
                return int(sizes.parse(text or ""))
            except SettingError:
                continue
        return 1

    def number(self, key: str) -> int | None:
        """Return a conf of Spark's as a whole number, 1 or more."""
        for text in (self._values.get(key), _DEFAULTS.get(key)):
            if text is not None and text.isdecimal() and 1 <= int(text) < 2**31:
                return int(text)
        return None

    def flag(self, key: str) -> bool:
        """Return whether a conf is true."""
        return (self.text(key) or "false").strip().lower() == "true"

    @property
    def enabled(self) -> bool:
        """Whether Apportion decides, and not Spark."""
        return bool(self.setting("enabled")) and self.setting("mode") != "observe"

    @property
    def is_dynamic(self) -> bool:
        """Whether executors come and go."""
        local = (self.text("spark.master") or "").startswith("local")
        return self.flag("spark.dynamicAllocation.enabled") and not local

    @property
    def fetches_in_batch(self) -> bool:
        """Whether Spark fetches the blocks of a map task in one request."""
        off = (
            "spark.io.encryption.enabled",
            "spark.shuffle.push.enabled",
            "spark.shuffle.useOldFetchProtocol",
        )
        manager = (self.text("spark.shuffle.manager") or "").rpartition(".")[2].lower()
        return (
            self.flag("spark.sql.adaptive.fetchShuffleBlocksInBatch")
            and not any(map(self.flag, off))
            and manager in ("sort", "tungsten-sort", "sortshufflemanager")
        )


@dataclasses.dataclass(frozen=True)
class Policy:
    """The settings of a decision. Sizes are bytes; `io.apportion.decision.Policy` explains each."""

    volume: int
    broadcast_ratio: float = 0.5
    least: int = 1
    most: int = 32768
    parallelism: int | None = None
    slots: int | None = None
    """Slots that a stage may fill greedily: none in active mode."""
    steady_slots: int | None = None
    min_task_volume: int = 1 << 20
    balanced: bool = False
    rounding: str = "power-of-two"
    max_blocks_per_task: int = 1 << 15
    fetches_in_batch: bool = False
    max_subpartitions_per_task: int | None = None
    max_blocks_per_shuffle: int = 1 << 24

    @classmethod
    def of(cls, confs: Confs, slots: int) -> Policy:
        """Return the policy for a shuffle whose tasks have `slots` to themselves."""
        parallelism = confs.setting("parallelism")
        return cls(
            volume=confs.setting("data_volume_per_task") or confs.size(ADVISORY_SIZE),
            broadcast_ratio=confs.setting("broadcast_ratio"),
            least=confs.setting("min_parallelism"),
            most=confs.setting("max_parallelism"),
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
        """The most blocks that a task may fetch."""
        return self.max_blocks_per_task * (_BLOCKS_PER_REQUEST if self.fetches_in_batch else 1)

    @property
    def is_power_of_two(self) -> bool:
        """Whether numbers of tasks are powers of two."""
        return not self.balanced or self.rounding == "power-of-two"

    @property
    def lower_bound(self) -> int:
        """The least tasks that can be decided."""
        return power_up(self.least) if self.is_power_of_two else self.least

    @property
    def upper_bound(self) -> int:
        """The most tasks that can be decided."""
        return power_down(self.most) if self.is_power_of_two else self.most

    @property
    def broadcast_cap(self) -> int:
        """The most bytes that broadcasts take up of a task's volume."""
        return math.ceil(self.volume * self.broadcast_ratio)


def source_policy(confs: Confs, slots: int, sparks: int) -> Policy:
    """Return the policy for scans of files, of which Spark would make `sparks` tasks."""
    parallelism = confs.setting("sources_parallelism")
    most = confs.setting("sources_max_parallelism")
    if not confs.is_set("sources_max_parallelism"):
        most = max(most, sparks)
    of_shuffles = Policy.of(confs, slots)
    return dataclasses.replace(
        of_shuffles,
        volume=confs.setting("data_volume_per_task") or confs.size(MAX_PARTITION_BYTES),
        least=min(confs.number("spark.sql.files.minPartitionNum") or 1, most),
        most=most,
        parallelism=None if parallelism == -1 else parallelism,
        min_task_volume=max(of_shuffles.min_task_volume, confs.size(OPEN_COST)),
        # Files are cut anywhere.
        balanced=True,
        rounding="exact",
    )
