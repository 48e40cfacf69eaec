"""Stages of an application as they ran, each with its slots and the facts about its plan."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from apportion.logs.advise.model.findings import Gain
from apportion.logs.advise.model.plan_facts import PlanFacts, facts, query_facts
from apportion.logs.eventlog import Application, Query, Stage, placement
from apportion.logs.eventlog.fragments import Fragment, fragments
from apportion.logs.eventlog.tasks import Span, attempts_by_id, median, merged, running, spans
from apportion.logs.eventlog.work import attempts_of
from apportion.logs.simulate.arithmetic.policy import Confs

# Spark switches adaptive execution on by default since this version.
_ADAPTIVE_SINCE = (3, 2)
_VERSION = re.compile(r"(\d+)\.(\d+)")
ADAPTIVE = "spark.sql.adaptive.enabled"
_MAX_SLOTS = 1_000_000


@dataclasses.dataclass(kw_only=True)
class MeasuredStage(Stage):
    """All attempts of one of Spark's stages as one stage, with the facts about its plan."""

    facts: PlanFacts
    confs: SparkConfs
    """Confs of its query; those of the application for a stage outside of SQL."""
    slots: float
    """Mean number of task slots while it ran."""
    runs: int
    """How often Spark ran the stage."""
    seconds: float
    """Time from the first launch to the last end of a task, without the time between attempts."""
    alone: float
    """Share of this time in which no other stage ran."""

    # The sums are cached, because many rules use them.

    @functools.cached_property
    def millis(self) -> list[int]:
        """Time from the launch of each task to its end."""
        return self.task_millis

    @functools.cached_property
    def read_bytes(self) -> list[int]:
        """Bytes that each task read from shuffles and files."""
        return list(map(sum, zip(self.shuffle_read_bytes, self.input_bytes, strict=True)))

    @functools.cached_property
    def task_seconds(self) -> float:
        """Time of all tasks."""
        return sum(self.millis) / 1000

    @functools.cached_property
    def longest(self) -> float:
        """Seconds of the longest task, from its launch to its end."""
        return max(self.millis, default=0) / 1000

    @functools.cached_property
    def median(self) -> float:
        """Median seconds of a task."""
        return median(self.millis) / 1000

    @functools.cached_property
    def shuffle_total(self) -> int:
        """Bytes that all tasks read from shuffles."""
        return sum(self.shuffle_read_bytes)

    @functools.cached_property
    def read_total(self) -> int:
        """Bytes that all tasks read."""
        return sum(self.read_bytes)

    @functools.cached_property
    def peak(self) -> int:
        """The most tasks that ran at the same time, at least 1."""
        return max((running for _, running in self.running()), default=1) or 1

    def running(self) -> list[tuple[int, int]]:
        """Return the number of running tasks over time: `(milliseconds, tasks)`, in order."""
        return running(zip(self.launched, self.run_millis, strict=True))

    def gain(self, low: float, high: float) -> Gain:
        """Return a gain in seconds, which is at most the time of the stage.

        The lower bound counts only the time in which no other stage ran. At other times, a faster
        stage may save nothing.
        """
        high = min(max(high, 0.0), self.seconds)
        low = min(max(low, 0.0), high) * self.alone
        return Gain(low, high, low * self.slots / 3600, high * self.slots / 3600)


class SparkConfs(Confs):
    """Confs of a query or an application, with the version of Spark."""

    def __init__(self, application: Application, query: Query | None = None) -> None:
        found = _VERSION.match(application.spark_version)
        # Some distributions write no version.
        self.version = (int(found[1]), int(found[2])) if found else None
        # Distributions without a version in the log have it switched on.
        default = "true" if self.is_since(*_ADAPTIVE_SINCE) else "false"
        own = query.conf if query else {}
        super().__init__({ADAPTIVE: default, **application.conf, **own})

    def is_since(self, major: int, minor: int) -> bool:
        """Return whether the version is this one or later. Distributions may write no version."""
        return self.version is None or self.version >= (major, minor)


def measured(
    application: Application, query: Query, alone: Mapping[int, float]
) -> list[MeasuredStage]:
    """Return the stages of a query that ran tasks, in order of their ids.

    `alone` has the result of `seconds_alone`.
    """
    cut = fragments(query.plan) if query.plan else []
    owners, decided = _owners(query, cut), placement.placement(query, cut).placed
    known: dict[int, PlanFacts] = {}
    confs, shared = SparkConfs(application, query), query_facts(query.plan)
    stages: list[MeasuredStage] = []
    for id, runs in attempts_by_id(query.stages).items():
        plan = shared
        if (place := owners.get(id)) is not None:
            plan = known[place] = known.get(place) or facts(
                cut[place], query, decided.get(place, []), shared
            )
        stages.append(_stage(application, query.id, runs, confs, plan, alone))
    return stages


def measured_outside(application: Application, alone: Mapping[int, float]) -> list[MeasuredStage]:
    """Return the stages outside of SQL that ran tasks, in order of their ids."""
    confs, facts = SparkConfs(application), PlanFacts(is_outside_of_sql=True)
    return [
        _stage(application, None, runs, confs, facts, alone)
        for runs in attempts_by_id(application.other_stages).values()
    ]


def most_slots(application: Application) -> int:
    """Return the largest number of task slots."""
    return max(1, max((cores for _, cores in application.slots), default=1) // _cpus(application))


def _cpus(application: Application) -> int:
    return Confs(application.conf).number("spark.task.cpus") or 1


def _owners(query: Query, cut: Sequence[Fragment]) -> dict[int, int]:
    """Return the place of the fragment that each stage ran, by the id of the stage."""
    attempts = attempts_of(cut, query.stages)
    owners = {stage.id: place for place, own in enumerate(attempts) for stage in own}
    # The last fragment is the result. A second stage of it combines rows, as for a limit.
    first = min((id for id, place in owners.items() if place == len(cut) - 1), default=0)
    return {id: place for id, place in owners.items() if place < len(cut) - 1 or id == first}


def _stage(
    application: Application,
    query: int | None,
    attempts: Sequence[Stage],
    confs: SparkConfs,
    plan: PlanFacts,
    alone: Mapping[int, float],
) -> MeasuredStage:
    stage = merged(attempts)
    ran = spans(attempts)
    seconds = sum(end - start for start, end, _ in ran) / 1000
    # Truncated logs can lack executors, but each running task had a slot.
    busy = sum(stage.task_millis) / 1000 / seconds if seconds else 1
    return MeasuredStage(
        **{**vars(stage), "query": query},
        facts=plan,
        confs=confs,
        slots=max(_mean_slots(application, ran), busy),
        runs=len(attempts),
        seconds=seconds,
        alone=min(1.0, alone.get(stage.id, 0.0) / seconds) if seconds else 0.0,
    )


def seconds_alone(spans: Iterable[Span]) -> dict[int, float]:
    """Return the time in which each stage was the only one that ran."""
    # At the same time, ends come before starts.
    changes = sorted(
        change for start, end, id in spans for change in ((start, 1, id), (end, -1, id))
    )
    alone: dict[int, float] = {}
    active: dict[int, int] = {}
    before = 0
    for time, change, id in changes:
        if len(active) == 1:
            (only,) = active
            alone[only] = alone.get(only, 0.0) + (time - before) / 1000
        active[id] = active.get(id, 0) + change
        if not active[id]:
            del active[id]
        before = time
    return alone


def _mean_slots(application: Application, spans: Sequence[Span]) -> float:
    """Return the mean number of task slots in some spans of time.

    Without executors before them, the largest number counts.
    """
    changes = application.slots
    # Executors can register out of order.
    times = list(itertools.accumulate((time for time, _ in changes), max))
    most = max((cores for _, cores in changes), default=1)
    weighted, duration = 0.0, 0
    for start, end, _ in spans:
        first = bisect.bisect_right(times, start)
        cores = changes[first - 1][1] if first else most
        since = start
        for place in range(first, bisect.bisect_left(times, end)):
            weighted += cores * (times[place] - since)
            cores, since = changes[place][1], times[place]
        weighted += cores * (end - since)
        duration += end - start
    mean = weighted / duration if duration else float(most)
    return min(max(1.0, mean / _cpus(application)), _MAX_SLOTS)
