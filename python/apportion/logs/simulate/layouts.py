"""Bytes that each task of a stage reads in a scenario, with Apportion's or Spark's decisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from itertools import chain

from apportion._util.units import count_text
from apportion.decision import HeldRows
from apportion.errors import ApportionError
from apportion.logs.simulate import logged_policy
from apportion.logs.simulate.arithmetic import (
    adaptive_writes,
    spark_reads,
    subpartitions,
    writes,
)
from apportion.logs.simulate.arithmetic.decider import decide
from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import (
    COALESCING,
    MIN_SIZE,
    SHUFFLE_PARTITIONS,
    Confs,
    Policy,
)
from apportion.logs.simulate.arithmetic.ranges import sum_each, sums
from apportion.logs.simulate.scenarios import AS_LOGGED, Scenario
from apportion.logs.simulate.workload import Group, LoggedStage, Shuffle, ShuffleWrite, Workload

# Larger scenarios raise an error, because they would not fit into memory.
MAX_TASKS = 5_000_000
MAX_SUBPARTITIONS = 1_000_000
_NO_ROW_BYTES = (
    "volume_measure=estimated is ignored: a log has the bytes of rows only if it was recorded "
    "with this setting"
)


@dataclasses.dataclass(frozen=True)
class Read:
    """Read of a group of shuffles, or of files."""

    task_bytes: list[int]
    """Bytes that each task reads."""
    is_as_logged: bool
    """Whether these are the logged tasks, except for the scale of the data."""


class Layouts:
    """The reads of a query's stages in a scenario.

    Stages must be laid out in order, because the output of a stage is the input of later stages.
    """

    def __init__(self, workload: Workload, scenario: Scenario) -> None:
        self.slots = scenario.slots or workload.slots
        self._slots_per_executor = scenario.executor_slots or workload.slots_per_executor
        self.notes: list[str] = []
        self._workload = workload
        self._scale = scenario.scale
        self._logged = Confs(workload.confs)
        self._confs = Confs(workload.changed_confs(scenario.conf), scenario.conf)
        self.read_confs = self._confs.read
        self._written: dict[int, Sequence[int]] = {}
        self.changes_more_than_slots = scenario.scale != 1 or any(
            workload.confs.get(key) != value for key, value in scenario.conf.items()
        )
        self._is_unchanged = self.slots == workload.slots and not self.changes_more_than_slots
        # The group that reads the output of a stage, by the place of the stage.
        self._readers = {
            writer: group
            for group in workload.groups
            for shuffle in group.shuffles
            for writer in shuffle.writers
        }

    def check(self, tasks: int) -> None:
        """Raise `ApportionError` if a query has too many tasks to simulate."""
        if tasks > MAX_TASKS:
            raise ApportionError(
                f"query {self._workload.query} has at least {tasks:,} tasks in this scenario; the "
                f"maximum is {MAX_TASKS:,}: use a smaller scale, or larger tasks"
            )

    def add_output(self, place: int, task_bytes: Sequence[int]) -> None:
        """Record the bytes that each task of a stage writes."""
        self._written[place] = task_bytes

    def reads(self, stage: LoggedStage) -> tuple[list[Read], list[Read]]:
        """Return the reads of a stage's groups of shuffles, and of its scans.

        A group keeps its logged tasks if the calculation gives the same for the scenario as for
        the logged configuration. The log does not have all that the extension knew.
        """
        groups = self._groups(stage.groups)
        if self._scale == 1 and self._confs.enabled == self._logged.enabled:
            before = groups if self._is_unchanged else self._for_log._groups(stage.groups)
            groups = [
                self._kept(stage, group, read) if read.task_bytes == old.task_bytes else read
                for group, read, old in zip(stage.groups, groups, before, strict=True)
            ]
        return groups, self._scans(stage)

    def write_change(self, place: int) -> float:
        """Return the change of the time in which each task of a stage writes its shuffle."""
        write = self._workload.stages[place].writes
        if write is None or not write.seconds_per_file or self._is_unchanged:
            return 0.0
        before, after = (each._files(place, write) for each in (self._for_log, self))
        return write.seconds_per_file * (after - before)

    def _files(self, place: int, write: ShuffleWrite) -> int:
        """Return the number of files that each task of a stage opens to write its shuffle."""
        bypass_up_to = self._confs.number(writes.BYPASS) or 1
        group = self._readers.get(place)
        is_free = self._is_free(group) if group else write.is_free
        is_adaptive = is_free and self._confs.writes_adaptively
        if group:
            partitions = self._subpartitions(group)
        elif is_adaptive:
            partitions = self._planned
        else:
            partitions = (self._confs.shuffle_partitions if is_free else None) or write.partitions
        if not is_adaptive:
            return writes.files(partitions, bypass_up_to)
        task_bytes = self._written.get(place) or [0]
        row_bytes = sum(task_bytes) / len(task_bytes) * write.expansion
        levels = [partitions]
        if group is None or not group.shuffles[0].logged.range_partitioned:
            policy = self._policy(group, self.slots) if group else self._session_policy
            levels = adaptive_writes.written_levels(
                partitions, sum(task_bytes), policy, len(task_bytes), max(write.expansion, 1.0)
            )
        return adaptive_writes.files(levels, partitions, row_bytes, bypass_up_to)

    def _groups(self, groups: Sequence[Group]) -> list[Read]:
        if not self._confs.enabled:
            return self._by_spark(groups)
        shares = spark_reads.shared(self.slots, [group.bytes for group in groups])
        return [self._decided(group, slots) for group, slots in zip(groups, shares, strict=True)]

    @cached_property
    def _for_log(self) -> Layouts:
        """The layouts in the logged configuration."""
        layouts = Layouts(self._workload, AS_LOGGED)
        for place, stage in enumerate(self._workload.stages):
            layouts.add_output(place, stage.written_bytes)
        return layouts

    def _kept(self, stage: LoggedStage, group: Group, read: Read) -> Read:
        """Return a read with the logged number of tasks."""
        logged, calculated = group.decision.tasks, len(read.task_bytes)
        if logged == calculated:
            return Read(read.task_bytes, True)
        if self._is_unchanged and not group.is_assumed:
            self.notes.append(
                f"stage {stage.id} keeps its {count_text(logged, 'logged task')}. The calculation "
                f"from this log gives {calculated:,}, so predictions for this stage are less "
                "certain"
            )
        return self._equal(group, logged)

    def _decided(self, group: Group, slots: int) -> Read:
        if logged_policy.is_unchanged(group.decision):
            return self._equal(group, group.decision.tasks)
        policy = self._policy(group, slots)
        if policy.parallelism is None and not self._confs.flag(COALESCING):
            return self._coalesced(group, self._resized(group), 1)
        expansion = self._expansion(group)
        inputs = [
            ShuffleInput(
                bytes=sizes if expansion == 1 else [int(size * expansion) for size in sizes],
                written=self._written_of(shuffle),
                splittable=shuffle.logged.splittable,
                held=HeldRows(
                    shuffle.logged.held.per_byte / expansion,
                    [each / expansion for each in shuffle.logged.held.arrays],
                ),
                groups=self._written_groups(shuffle, sizes, policy),
            )
            for sizes, shuffle in zip(self._resized(group), group.shuffles, strict=True)
        ]
        broadcast = int(group.decision.broadcast_bytes * self._scale)
        layout = decide(inputs, broadcast, policy)
        self._note_averages(group, layout.tasks)
        if group.decision.layout == "local":
            return self._equal(group, layout.tasks)
        task_bytes = layout.task_bytes
        if expansion != 1:
            task_bytes = [int(size / expansion) for size in task_bytes]
        if group.is_assumed or group.decision.layout == "skew":
            # The log does not have the bytes of each partition, or of each part of a split.
            return Read(task_bytes, group.decision.tasks == len(task_bytes))
        is_decided = group.decision.layout != "observed"
        return Read(task_bytes, is_decided and group.decision.ranges == layout.ranges)

    def _by_spark(self, groups: Sequence[Group]) -> list[Read]:
        sizes = [
            None if logged_policy.is_unchanged(group.decision) else self._resized(group)
            for group in groups
        ]
        totals = [sum(map(sum, shuffles)) for shuffles in sizes if shuffles is not None]
        parallelism = self._confs.default_parallelism(self.slots)
        minimums = iter(spark_reads.min_tasks(self._confs, parallelism, totals))
        return [
            self._equal(group, group.decision.tasks)
            if shuffles is None
            else self._coalesced(group, shuffles, next(minimums))
            for group, shuffles in zip(groups, sizes, strict=True)
        ]

    def _coalesced(self, group: Group, shuffles: list[list[int]], min_tasks: int) -> Read:
        """Return Spark's own read of shuffles with these bytes of their subpartitions."""
        sizes, splits = sum_each(shuffles), self._skew_splits(group, shuffles)
        advisory = logged_policy.write_size(group.logged)
        if logged_policy.multiplies_rows(group.logged):
            advisory = self._confs.size(MIN_SIZE)
        ranges = spark_reads.coalesced(sizes, min_tasks, self._confs, advisory, splits)
        if group.decision.layout == "local":
            map_tasks = len(self._written_of(group.shuffles[0]))
            return self._equal(group, spark_reads.local_tasks(len(ranges), map_tasks))
        task_bytes = [*sums(sizes, ranges), *chain.from_iterable(splits.values())]
        if group.decision.layout == "observed":
            # The log does not have Spark's ranges, only their number and the largest one.
            largest = group.decision.largest_task_bytes
            is_logged = len(task_bytes) == group.decision.tasks and max(task_bytes) == largest
            return Read(task_bytes, is_logged)
        return Read(task_bytes, not splits and group.decision.ranges == ranges)

    def _skew_splits(self, group: Group, shuffles: list[list[int]]) -> dict[int, list[int]]:
        if group.decision.operator not in spark_reads.JOINS:
            return {}
        sides = [
            ShuffleInput(sizes, self._written_of(shuffle), shuffle.logged.splittable)
            for sizes, shuffle in zip(shuffles, group.shuffles, strict=True)
        ]
        return spark_reads.splits(sides, self._confs)

    def _equal(self, group: Group, tasks: int) -> Read:
        """Return a read with tasks of equal size, as in a local read of map outputs."""
        size = int(group.bytes * self._scale) // tasks
        return Read([size] * tasks, tasks == group.decision.tasks)

    def _scans(self, stage: LoggedStage) -> list[Read]:
        """Return the scans of a stage. All their tasks read equally many bytes."""
        reads = []
        for scan in stage.scans:
            logged = stage.scan_tasks(scan)
            requested = logged_policy.scan_tasks(scan, self._confs, self.slots, self._scale)
            before = logged_policy.scan_tasks(scan, self._logged, self._workload.slots)
            # Spark's number can differ a little from the requested one. So the logged number
            # stays if the scenario requests the same number.
            tasks = logged if requested == before and self._scale == 1 else requested
            self.check(tasks)
            size = int(sum(stage.input_bytes) * self._scale / len(stage.scans) / tasks)
            reads.append(Read([size] * tasks, tasks == logged))
        return reads

    def _written_of(self, shuffle: Shuffle) -> list[int]:
        return [size for writer in shuffle.writers for size in self._written.get(writer, ())]

    def _expansion(self, group: Group) -> float:
        """Return the ratio of row bytes to stored bytes; 1 if tasks are sized by stored bytes."""
        if self._confs.setting("volume_measure") != "estimated":
            return 1.0
        if self._logged.setting("volume_measure") != "estimated":
            if _NO_ROW_BYTES not in self.notes:
                self.notes.append(_NO_ROW_BYTES)
            return 1.0
        return max(1.0, group.decision.input_bytes / group.bytes) if group.bytes else 1.0

    def _resized(self, group: Group) -> list[list[int]]:
        """Return the bytes of each shuffle's subpartitions in this scenario."""
        number, scale = self._subpartitions(group), self._scale
        if number > MAX_SUBPARTITIONS:
            raise ApportionError(
                f"a shuffle of query {self._workload.query} has {number:,} shuffle partitions in "
                f"this scenario; the maximum is {MAX_SUBPARTITIONS:,}: lower {SHUFFLE_PARTITIONS}"
            )
        resized = []
        for shuffle in group.logged.shuffles:
            sizes = subpartitions.resized(shuffle.bytes, number, shuffle.range_partitioned)
            resized.append(sizes if scale == 1 else [int(size * scale) for size in sizes])
        return resized

    def _written_groups(self, shuffle: Shuffle, sizes: Sequence[int], policy: Policy) -> int | None:
        """Return the groups of subpartitions that each map task writes, over all levels."""
        is_adaptive = shuffle.is_free and self._confs.writes_adaptively
        if shuffle.logged.range_partitioned or not is_adaptive:
            return None
        map_tasks = sum(len(self._written.get(place, ())) for place in shuffle.writers)
        expansion = max(shuffle.row_bytes / max(sum(shuffle.logged.bytes), 1), 1.0)
        levels = adaptive_writes.written_levels(
            len(sizes), sum(sizes), policy, max(map_tasks, 1), expansion
        )
        return sum(levels)

    def _note_averages(self, group: Group, tasks: int) -> None:
        """Add a note if the log does not show skew among neighbouring subpartitions."""
        largest = max(group.logged.shuffles, key=lambda shuffle: sum(shuffle.bytes))
        width = group.logged.subpartitions_per_sum
        groups = max(largest.levels, default=tasks)
        if tasks > groups and not self._is_unchanged:
            width = max(width, group.decision.subpartitions // groups)
        note = f"the log has only averages over {width} neighbouring shuffle partitions"
        if width > 1 and note not in self.notes:
            self.notes.append(note)

    def _subpartitions(self, group: Group) -> int:
        """Return N in this scenario. A number that the query sets stays fixed."""
        logged = group.decision.subpartitions
        if not self._is_free(group):
            return logged
        if not self._confs.writes_adaptively:
            return self._confs.shuffle_partitions or logged
        chosen = self._adaptive_number(group)
        if not any(shuffle.levels for shuffle in group.logged.shuffles):
            return chosen
        before = self._for_log._adaptive_number(group)
        if chosen == before:
            return logged
        # The logged number can differ from the formula, which does not know all tables.
        return min(max(1, logged * chosen // before), adaptive_writes.MAX_PARTITIONS)

    @staticmethod
    def _is_free(group: Group) -> bool:
        return any(shuffle.is_free for shuffle in group.shuffles)

    def _adaptive_number(self, group: Group) -> int:
        """Return the number of subpartitions with adaptive writes."""
        first = group.shuffles[0]
        if not first.logged.range_partitioned:
            return self._planned
        row_bytes = int(first.row_bytes * self._scale)
        return adaptive_writes.ranges(row_bytes, self._planned, self._policy(group, self.slots))

    @cached_property
    def _planned(self) -> int:
        """Return the number of subpartitions of all shuffles with adaptive writes."""
        free = [group for group in self._workload.groups if self._is_free(group)]
        scanned = sum(scan.bytes for stage in self._workload.stages for scan in stage.scans)
        size = int(scanned * self._scale)
        policy = Policy.from_confs(self._confs, self.slots, size)
        return adaptive_writes.partitions(
            self._confs.shuffle_partitions or 1,
            size,
            policy.data_volume_per_task,
            [policy, *(self._policy(group, self.slots) for group in free)],
        )

    @cached_property
    def _session_policy(self) -> Policy:
        return Policy.from_confs(self._confs, self.slots)

    def _policy(self, group: Group, slots: int) -> Policy:
        task_memory = None
        if group.is_assumed:
            task_memory = self._confs.task_memory(self._slots_per_executor)
        size = int(group.bytes * self._scale)
        return logged_policy.policy(group.logged, self._confs, slots, size, task_memory)
