"""Bytes that each task of a stage reads in a scenario, with Apportion's or Spark's decisions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from apportion._util.units import count_text
from apportion.errors import ApportionError
from apportion.simulate import logged_policy
from apportion.simulate.arithmetic import coalescing, memory, subpartitions, writes
from apportion.simulate.arithmetic.decider import Layout, decide
from apportion.simulate.arithmetic.inputs import ShuffleInput
from apportion.simulate.arithmetic.policy import Confs, Policy
from apportion.simulate.arithmetic.ranges import Range, sum_each, sums
from apportion.simulate.scenarios import AS_LOGGED, Scenario
from apportion.simulate.workload import Group, LoggedStage, Shuffle, ShuffleWrite, Workload

# Larger scenarios raise an error, because they would not fit into memory.
MAX_TASKS = 5_000_000
MAX_SUBPARTITIONS = 1_000_000
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_INITIAL_PARTITIONS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
_BYPASS = "spark.shuffle.sort.bypassMergeThreshold"
_EXACT_SIZES = "spark.shuffle.minNumPartitionsToHighlyCompress"
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
    """Whether these are the logged tasks."""


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
        self._confs = Confs(workload.changed_confs(scenario.conf))
        self._written: dict[int, Sequence[int]] = {}
        self._is_unchanged = (
            self.slots == workload.slots
            and scenario.scale == 1
            and all(workload.confs.get(key) == value for key, value in scenario.conf.items())
        )
        self._logged_layouts: Layouts | None = None
        # The group that reads the output of a stage, by the place of the stage.
        self._readers: dict[int, Group] | None = None

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
            before = groups if self._is_unchanged else self._for_log()._groups(stage.groups)
            groups = [
                self._kept(stage, group, read) if read.task_bytes == old.task_bytes else read
                for group, read, old in zip(stage.groups, groups, before, strict=True)
            ]
        return groups, self._scans(stage)

    def write_change(self, place: int) -> float:
        """Return the change of the time in which each task of a stage writes its shuffle."""
        write = self._workload.stages[place].writes
        if write is None or self._is_unchanged:
            return 0.0
        before, after = (
            writes.files(each._partitions_of(place, write), each._confs.number(_BYPASS) or 1)
            for each in (self._for_log(), self)
        )
        return writes.change(write.seconds, before, after)

    def _partitions_of(self, place: int, write: ShuffleWrite) -> int:
        """Return the number of partitions that a stage writes in this scenario."""
        if self._readers is None:
            self._readers = {
                writer: group
                for stage in self._workload.stages
                for group in stage.groups
                for shuffle in group.shuffles
                for writer in shuffle.writers
            }
        if place in self._readers:
            return self._subpartitions(self._readers[place])
        is_ours = self._workload.ran_plain and self._confs.enabled and write.is_free
        if not is_ours:
            return write.partitions
        policy = Policy.from_confs(self._confs, self.slots)
        return subpartitions.unestimated(self._defaults(self._confs), policy)

    def _groups(self, groups: Sequence[Group]) -> list[Read]:
        if not self._confs.enabled:
            return self._by_spark(groups)
        shares = self._shares(groups)
        return [self._decided(group, slots) for group, slots in zip(groups, shares, strict=True)]

    def _for_log(self) -> Layouts:
        """Return the layouts in the logged configuration."""
        if self._logged_layouts is None:
            self._logged_layouts = Layouts(self._workload, AS_LOGGED)
            for place, stage in enumerate(self._workload.stages):
                self._logged_layouts.add_output(place, stage.written_bytes)
        return self._logged_layouts

    def _kept(self, stage: LoggedStage, group: Group, read: Read) -> Read:
        """Return a read with the logged number of tasks."""
        logged, calculated = group.decision.tasks, len(read.task_bytes)
        if logged == calculated:
            return Read(read.task_bytes, True)
        if self._is_unchanged and not group.is_assumed:
            self.notes.append(
                f"{stage.name} keeps its {count_text(logged, 'logged task')}. The calculation from "
                f"this log gives {calculated:,}, so predictions for this stage are less certain"
            )
        return Read([group.bytes // logged] * logged, True)

    def _shares(self, groups: Sequence[Group]) -> list[int]:
        """Return the slots of each group. Groups of a stage share slots in proportion to bytes."""
        sizes = [group.bytes for group in groups]
        total = sum(sizes)
        if not total:
            return [self.slots] * len(groups)
        return [max(1, math.floor(self.slots * size / total + 0.5)) for size in sizes]

    def _decided(self, group: Group, slots: int) -> Read:
        if logged_policy.is_unchanged(group.decision):
            return self._unchanged(group)
        expansion = self._expansion(group)
        inputs = [
            ShuffleInput(
                bytes=sizes if expansion == 1 else [int(size * expansion) for size in sizes],
                written=self._written_of(shuffle),
                splittable=shuffle.splittable,
                held=memory.divided(shuffle.held, expansion),
            )
            for sizes, shuffle in zip(self._resized(group), group.shuffles, strict=True)
        ]
        broadcast = int(group.decision.broadcast_bytes * self._scale)
        layout = decide(inputs, broadcast, self._policy(group, self._confs, slots))
        if group.decision.layout == "local":
            return self._local(group, layout.tasks)
        task_bytes = layout.task_bytes
        if expansion != 1:
            task_bytes = [int(size / expansion) for size in task_bytes]
        return Read(task_bytes, self._is_logged(group, layout))

    def _is_logged(self, group: Group, layout: Layout) -> bool:
        if group.is_assumed or group.decision.layout == "skew":
            # The log does not have the bytes of each partition, or of each part of a split.
            return self._scale == 1 and group.decision.tasks == len(layout.task_bytes)
        return group.decision.layout != "observed" and self._are_logged(group, layout.ranges)

    def _are_logged(self, group: Group, ranges: Sequence[Range]) -> bool:
        """Return whether these are the ranges of the log, over the same number of partitions."""
        return (
            self._scale == 1
            and ranges[-1][1] <= group.decision.subpartitions
            and list(map(tuple, group.decision.ranges)) == ranges
        )

    def _by_spark(self, groups: Sequence[Group]) -> list[Read]:
        sizes = [
            None if logged_policy.is_unchanged(group.decision) else sum_each(self._resized(group))
            for group in groups
        ]
        totals = [sum(group_sizes) for group_sizes in sizes if group_sizes is not None]
        parallelism = self._confs.default_parallelism(self.slots)
        minimums = iter(coalescing.min_tasks(self._confs, parallelism, totals))
        return [
            self._unchanged(group)
            if group_sizes is None
            else self._coalesced(group, group_sizes, next(minimums))
            for group, group_sizes in zip(groups, sizes, strict=True)
        ]

    def _coalesced(self, group: Group, sizes: list[int], min_tasks: int) -> Read:
        advisory = logged_policy.write_size(group.logged)
        if logged_policy.multiplies_rows(group.logged):
            advisory = self._confs.size(coalescing.MIN_SIZE)
        ranges = coalescing.coalesced(sizes, min_tasks, self._confs, advisory)
        if group.decision.layout == "local":
            map_tasks = len(self._written_of(group.shuffles[0]))
            return self._local(group, coalescing.local_tasks(len(ranges), map_tasks))
        task_bytes = sums(sizes, ranges)
        if group.decision.layout == "observed":
            # The log does not have Spark's ranges, only their number and the largest one.
            largest = group.decision.largest_task_bytes
            is_logged = len(task_bytes) == group.decision.tasks and max(task_bytes) == largest
            return Read(task_bytes, self._scale == 1 and is_logged)
        return Read(task_bytes, self._are_logged(group, ranges))

    def _local(self, group: Group, tasks: int) -> Read:
        """Return a local read of map outputs, with tasks of equal size."""
        is_as_logged = self._scale == 1 and tasks == group.decision.tasks
        return Read([int(group.bytes * self._scale) // tasks] * tasks, is_as_logged)

    def _unchanged(self, group: Group) -> Read:
        tasks = max(1, group.decision.tasks)
        return Read([int(group.bytes * self._scale) // tasks] * tasks, self._scale == 1)

    def _scans(self, stage: LoggedStage) -> list[Read]:
        """Return the scans of a stage. All their tasks read equally many bytes."""
        reads = []
        for scan in stage.scans:
            slots, logged = self._workload.slots, stage.scan_tasks(scan)
            parallelism = self._confs.default_parallelism(self.slots)
            requested = logged_policy.scan_tasks(
                scan, self._confs, self.slots, parallelism, self._scale
            )
            before = logged_policy.scan_tasks(
                scan, self._logged, slots, self._logged.default_parallelism(slots)
            )
            # Spark's number can differ a little from the requested one. So the logged number
            # stays if the scenario requests the same number.
            tasks = logged if requested == before and self._scale == 1 else requested
            self.check(tasks)
            size = int(sum(stage.input_bytes) * self._scale / len(stage.scans) / tasks)
            reads.append(Read([size] * tasks, tasks == logged and self._scale == 1))
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
        self._note_averages(group)
        if number > MAX_SUBPARTITIONS:
            raise ApportionError(
                f"a shuffle of query {self._workload.query} has {number:,} shuffle partitions in "
                f"this scenario; the maximum is {MAX_SUBPARTITIONS:,}: lower {_SHUFFLE_PARTITIONS}"
            )
        resized = []
        for shuffle in group.shuffles:
            sizes = subpartitions.resized(shuffle.bytes, number, shuffle.contiguous)
            resized.append(sizes if scale == 1 else [int(size * scale) for size in sizes])
        return resized

    def _note_averages(self, group: Group) -> None:
        """Add a note if the log does not show skew among neighbouring subpartitions."""
        width = max((shuffle.subpartitions_per_sum for shuffle in group.shuffles), default=1)
        note = f"the log has only averages over {width} neighbouring shuffle partitions"
        if width > 1 and note not in self.notes:
            self.notes.append(note)

    def _subpartitions(self, group: Group) -> int:
        """Return N in this scenario. A number that the query sets stays fixed."""
        logged = group.decision.subpartitions
        if all(shuffle.partitions_set_by is None for shuffle in group.logged.shuffles):
            return logged
        if not self._confs.enabled:
            initial = self._confs.number(_INITIAL_PARTITIONS)
            return initial or self._confs.number(_SHUFFLE_PARTITIONS) or logged
        chosen = self._chosen(group, self._confs, self.slots, self._scale)
        if not self._logged.enabled:
            return chosen
        before = self._chosen(group, self._logged, self._workload.slots, 1)
        if chosen == before:
            return logged
        # The logged number can differ from the formula, for example if shuffles have to agree.
        return min(max(1, logged * chosen // before), subpartitions.MAX_SUBPARTITIONS)

    def _chosen(self, group: Group, confs: Confs, slots: int, scale: float) -> int:
        """Return the number of subpartitions that Apportion chooses for the estimated bytes."""
        policy = self._policy(group, confs, slots)
        defaults = self._defaults(confs)
        if confs.setting("subpartitions") == "spark":
            return subpartitions.unestimated(defaults, policy)
        low, high = self._estimate(group)
        map_tasks = [len(self._written_of(shuffle)) for shuffle in group.shuffles]
        rows = (
            shuffle.rows * scale / max(count, 1)
            for shuffle, count in zip(group.shuffles, map_tasks, strict=True)
        )
        return subpartitions.estimated(
            int(low * scale),
            None if high is None else int(high * scale),
            sum(map_tasks),
            defaults,
            policy,
            max(rows, default=0),
        )

    def _policy(self, group: Group, confs: Confs, slots: int) -> Policy:
        task_memory = confs.task_memory(self._slots_per_executor) if group.is_assumed else None
        return logged_policy.policy(group.logged, confs, slots, task_memory)

    def _defaults(self, confs: Confs) -> subpartitions.Defaults:
        return subpartitions.Defaults(
            confs.number(_SHUFFLE_PARTITIONS) or 1,
            confs.number(_BYPASS) or 1,
            confs.number(_EXACT_SIZES) or 1,
        )

    def _estimate(self, group: Group) -> tuple[int, int | None]:
        """Return the interval of the estimated bytes, with None for no upper bound."""
        estimates = [
            (shuffle.estimated_low, shuffle.estimated_high)
            for shuffle in group.logged.shuffles
            if shuffle.estimated_low is not None
        ]
        # All shuffles of a group have the estimate for the group.
        known = next(((low, high) for low, high in estimates if low is not None), None)
        # A plain log has no estimate. Most estimates have a high upper end.
        return known or (group.bytes, None if group.is_assumed else group.bytes)
