"""What the tasks of a stage read in a scenario, by Apportion's decisions or by Spark's own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from apportion.errors import ApportionError
from apportion.simulate import logged_policy
from apportion.simulate.arithmetic import coalescing, subpartitions
from apportion.simulate.arithmetic.decider import Layout, ShuffleInput, decide
from apportion.simulate.arithmetic.policy import Confs
from apportion.simulate.arithmetic.ranges import Range, sum_each, sums
from apportion.simulate.scans import scan_tasks
from apportion.simulate.scenarios import Scenario
from apportion.simulate.workload import Group, LoggedStage, Shuffle, Workload

# More are refused, as they would not fit into memory.
MOST_TASKS = 5_000_000
MOST_SUBPARTITIONS = 1_000_000
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_INITIAL_PARTITIONS = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
_NO_ROW_BYTES = (
    "volume_measure=estimated is left out: only a log recorded with it tells the bytes of rows"
)


@dataclasses.dataclass(frozen=True)
class Read:
    """What tasks read of a group of shuffles, or of files."""

    task_bytes: list[int]
    is_as_logged: bool
    """Whether the tasks are those that ran."""


class Layouts:
    """Lays out the reads of a query's stages, each after those that write what it reads."""

    def __init__(self, workload: Workload, scenario: Scenario) -> None:
        self.slots = scenario.slots or workload.slots
        self.notes: list[str] = []
        self._workload = workload
        self._scale = scenario.scale
        self._logged = Confs(workload.confs)
        self._confs = Confs({**workload.confs, **scenario.conf})
        self._written: dict[int, Sequence[int]] = {}

    def check(self, tasks: int) -> None:
        """Raise `ApportionError` for more tasks of a query than can be simulated."""
        if tasks > MOST_TASKS:
            raise ApportionError(
                f"query {self._workload.query} has {tasks:,} tasks or more in this scenario, and "
                f"{MOST_TASKS:,} are simulated at most: take a smaller scale, or larger tasks"
            )

    def wrote(self, place: int, task_bytes: Sequence[int]) -> None:
        """Take note of what the tasks of a stage write."""
        self._written[place] = task_bytes

    def reads(self, stage: LoggedStage) -> tuple[list[Read], list[Read]]:
        """Return what is read of a stage's groups of shuffles, and of its scans."""
        if self._confs.enabled:
            groups = [
                self._decided(group, slots)
                for group, slots in zip(stage.groups, self._shares(stage.groups), strict=True)
            ]
        else:
            groups = self._by_spark(stage.groups)
        return groups, self._scans(stage)

    def _shares(self, groups: Sequence[Group]) -> list[int]:
        """Groups of a stage run at the same time: they share the slots by their bytes."""
        sizes = [group.bytes for group in groups]
        total = sum(sizes)
        if not total:
            return [self.slots] * len(groups)
        return [max(1, math.floor(self.slots * own / total + 0.5)) for own in sizes]

    def _decided(self, group: Group, slots: int) -> Read:
        if logged_policy.is_left_alone(group.decision):
            return self._unchanged(group)
        expansion = self._expansion(group)
        inputs = [
            ShuffleInput(
                bytes=sizes if expansion == 1 else [int(size * expansion) for size in sizes],
                written=self._written_of(shuffle),
                splittable=shuffle.splittable,
            )
            for sizes, shuffle in zip(self._resized(group), group.shuffles, strict=True)
        ]
        broadcast = int(group.decision.broadcast_bytes * self._scale)
        layout = decide(inputs, broadcast, logged_policy.policy(group.decision, self._confs, slots))
        if group.decision.layout == "local":
            return self._local(group, layout.tasks)
        sizes = layout.task_bytes
        if expansion != 1:
            sizes = [int(size / expansion) for size in sizes]
        return Read(sizes, self._is_logged(group, layout))

    def _is_logged(self, group: Group, layout: Layout) -> bool:
        if group.decision.layout == "observed":
            return False
        if group.decision.layout == "skew":
            # What each part of a split has is not logged.
            return self._scale == 1 and group.decision.tasks == len(layout.task_bytes)
        return self._are_logged(group, layout.ranges)

    def _are_logged(self, group: Group, ranges: Sequence[Range]) -> bool:
        """Whether these are the ranges that were read; all have to end where the log's do."""
        return (
            self._scale == 1
            and ranges[-1][1] <= group.decision.subpartitions
            and list(map(tuple, group.decision.ranges)) == ranges
        )

    def _by_spark(self, groups: Sequence[Group]) -> list[Read]:
        sizes = [
            None if logged_policy.is_left_alone(group.decision) else sum_each(self._resized(group))
            for group in groups
        ]
        totals = [sum(each) for each in sizes if each is not None]
        least = iter(coalescing.min_tasks(self._confs, self._default_parallelism(), totals))
        return [
            self._unchanged(group) if each is None else self._coalesced(group, each, next(least))
            for group, each in zip(groups, sizes, strict=True)
        ]

    def _coalesced(self, group: Group, sizes: list[int], least: int) -> Read:
        advisory = logged_policy.of_write(group.decision)
        if logged_policy.multiplies_rows(group.decision):
            advisory = self._confs.size(coalescing.MIN_SIZE)
        ranges = coalescing.coalesced(sizes, least, self._confs, advisory)
        if group.decision.layout == "local":
            map_tasks = len(self._written_of(group.shuffles[0]))
            return self._local(group, coalescing.local_tasks(len(ranges), map_tasks))
        read = sums(sizes, ranges)
        if group.decision.layout == "observed":
            # The ranges of Spark are not in the log: their number and the largest have to do.
            largest = group.decision.largest_task_bytes
            is_logged = len(read) == group.decision.tasks and max(read) == largest
            return Read(read, self._scale == 1 and is_logged)
        return Read(read, self._are_logged(group, ranges))

    def _local(self, group: Group, tasks: int) -> Read:
        """Map outputs that are read where they are, by tasks of about the same size."""
        is_as_logged = self._scale == 1 and tasks == group.decision.tasks
        return Read([int(group.bytes * self._scale) // tasks] * tasks, is_as_logged)

    def _unchanged(self, group: Group) -> Read:
        tasks = max(1, group.decision.tasks)
        return Read([int(group.bytes * self._scale) // tasks] * tasks, self._scale == 1)

    def _scans(self, stage: LoggedStage) -> list[Read]:
        """The tasks of a stage share equally what all of them read of files."""
        found = []
        for scan in stage.scans:
            slots, logged = self._workload.slots, stage.scan_tasks(scan)
            own = self._default_parallelism()
            wanted = scan_tasks(scan, self._confs, self.slots, own, self._scale)
            before = scan_tasks(scan, self._logged, slots, self._default_parallelism(slots))
            # Spark may make some more or fewer than wanted; the same wish makes the same tasks.
            tasks = logged if wanted == before and self._scale == 1 else wanted
            self.check(tasks)
            size = int(sum(stage.input_bytes) * self._scale / len(stage.scans) / tasks)
            found.append(Read([size] * tasks, tasks == logged and self._scale == 1))
        return found

    def _default_parallelism(self, slots: int | None = None) -> int:
        given = self._confs.number("spark.default.parallelism")
        is_local = (self._confs.text("spark.master") or "").startswith("local")
        cores = slots or self.slots
        return given or (cores if is_local else max(cores, 2))

    def _written_of(self, shuffle: Shuffle) -> list[int]:
        return [size for writer in shuffle.writers for size in self._written.get(writer, ())]

    def _expansion(self, group: Group) -> float:
        """The bytes of rows for a stored one, where tasks are made by these."""
        if self._confs.setting("volume_measure") != "estimated":
            return 1.0
        if self._logged.setting("volume_measure") != "estimated":
            if _NO_ROW_BYTES not in self.notes:
                self.notes.append(_NO_ROW_BYTES)
            return 1.0
        return max(1.0, group.decision.input_bytes / group.bytes) if group.bytes else 1.0

    def _resized(self, group: Group) -> list[list[int]]:
        """The bytes of a group's subpartitions in this scenario."""
        number, scale = self._subpartitions(group), self._scale
        self._note_averages(group)
        if number > MOST_SUBPARTITIONS:
            raise ApportionError(
                f"a shuffle of query {self._workload.query} has {number:,} subpartitions in this "
                f"scenario, and {MOST_SUBPARTITIONS:,} are simulated at most: lower "
                f"{_SHUFFLE_PARTITIONS}"
            )
        found = []
        for shuffle in group.shuffles:
            sizes = subpartitions.resized(shuffle.bytes, number, shuffle.contiguous)
            found.append(sizes if scale == 1 else [int(size * scale) for size in sizes])
        return found

    def _note_averages(self, group: Group) -> None:
        """Notes that skew within neighbouring subpartitions is not in the log."""
        width = max((shuffle.subpartitions_per_sum for shuffle in group.shuffles), default=1)
        note = f"bytes of subpartitions are averages of {width} neighbours in the log"
        if width > 1 and note not in self.notes:
            self.notes.append(note)

    def _subpartitions(self, group: Group) -> int:
        """N in this scenario. A number that the query gives stays."""
        logged = group.decision.subpartitions
        why = group.decision.sources.get("subpartitions")
        if why is None:
            return logged
        if not self._confs.enabled:
            initial = self._confs.number(_INITIAL_PARTITIONS)
            return initial or self._confs.number(_SHUFFLE_PARTITIONS) or logged
        now = self._chosen(group, why, self._confs, self.slots, self._scale)
        if not self._logged.enabled:
            return now
        before = self._chosen(group, why, self._logged, self._workload.slots, 1)
        # Shuffles that have to agree, or that ran already, may have another number than their own.
        return logged if now == before else min(max(1, logged * now // before), subpartitions.MOST)

    def _chosen(self, group: Group, why: str, confs: Confs, slots: int, scale: float) -> int:
        policy = logged_policy.policy(group.decision, confs, slots)
        likely = logged_policy.estimate(why)
        if likely is None and self._logged.setting("subpartitions") == "spark":
            # Nobody has estimated; what it came to be is the best there is.
            likely = group.bytes
        if likely is None or confs.setting("subpartitions") == "spark":
            return subpartitions.unestimated(confs.number(_SHUFFLE_PARTITIONS) or 1, policy)
        map_tasks = sum(len(self._written_of(shuffle)) for shuffle in group.shuffles)
        return subpartitions.estimated(int(likely * scale), map_tasks, policy)
