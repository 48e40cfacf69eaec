"""Replay of a stream's batches under other policies.

from apportion.streaming import BatchTime, journal, simulate

histories, _ = journal.read("/checkpoints/orders")
for run in simulate(histories[0], [BatchTime(0.8)]).runs:
    print(run.name, run.rescales, run.worst_lag)

Rows arrive as in the log. `batch_time.py` predicts how long a batch takes. The policy, the bounds
and the stabilizer are the ones of `streaming.start`.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import math
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate

from apportion._util import checks
from apportion._util.units import read_seconds
from apportion.errors import InputError, did_you_mean
from apportion.logs.stream_record import StreamRecord
from apportion.streaming.batch_time import BatchTimes, Sample, fit
from apportion.streaming.batches import Batch, Operator
from apportion.streaming.journal import History
from apportion.streaming.policies import Backlog, BatchTime, Fixed, Load, Policy, load_of
from apportion.streaming.sizes import Bounds
from apportion.streaming.stabilizer import Stabilizer

# Pause of a rescale if the log has none.
_PAUSE = 10.0
_BATCHES = 5
_BYTES_PER_PARTITION = 512 << 20
_POLICIES = ("fixed", "lag", "load")
# Without rows, Spark looks for new ones after a moment.
_IDLE = 0.1
# Limit of the steps of a run: those for each batch of the log, and some more.
_STEPS_PER_BATCH = 100
_MORE_STEPS = 1000
# The last second of `datetime`. Times of a damaged log can be beyond it, and before 1970.
_LAST_TIME = 253_402_300_799

Change = Callable[[float, Sequence[Batch], int], int]
"""Returns the partitions after a batch, for its end, the last batches, and the partitions now."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A stream under one policy. Times are seconds."""

    name: str
    batches: int
    rescales: int
    pauses: float
    """Sum of the pauses of all rescales."""
    worst_lag: float
    """Longest time from the arrival of a row to the end of its batch."""
    late: float | None
    """Share of the batches that took longer than the trigger; None without a trigger."""
    partition_hours: float
    """Sum over time of the state partitions."""
    partitions: list[tuple[float, int]]
    """Numbers of state partitions with the second at which each begins."""
    seconds: float
    """Time from the start to the end of the last batch."""


@dataclasses.dataclass(frozen=True)
class StreamSimulation:
    """Result of `simulate`."""

    stream: str
    trigger: float | None
    slots: int
    model: BatchTimes
    pause: float
    """Pause of each simulated rescale."""
    pauses_measured: int
    """Number of rescales in the log; with 0, `pause` is an assumption."""
    stabilization: float
    """Time of the policies for which a load must be steady. The log does not have the stream's."""
    cooldown: float
    """Shortest time between two rescales of the policies."""
    runs: list[Run]
    """The measured run, a replay of its numbers of partitions, and one run for each policy."""


@dataclasses.dataclass(frozen=True)
class _Observed(Sample):
    """Batch of a log. Times are seconds since 1970. `slots` is 0 if the log does not have them."""

    ended: float
    backlog: int
    state_rows: int
    state_bytes: int
    run_id: str
    is_first: bool = False
    """Whether it is the first batch after a start, which also loads classes and state."""


def parse_policy(text: str) -> Policy:
    """Return the policy of a text: `fixed:8`, `load:0.8` or `lag:5min`.

    Raises `InputError` for another text and for a value that the policy does not allow.
    """
    name, _, value = text.partition(":")
    if name not in _POLICIES:
        raise InputError(
            f"the policy {text} is unknown: write fixed:8, load:0.8 or lag:5min."
            f"{did_you_mean(name, _POLICIES)}"
        )
    try:
        if name == "fixed":
            return Fixed(int(value))
        if name == "load":
            return BatchTime(float(value)) if value else BatchTime()
        if not value:
            return Backlog()
        if (seconds := read_seconds(value)) < 0:
            raise InputError(f"{value!r} is not a time")
        return Backlog(float(seconds))
    except ValueError as error:
        reason = error if isinstance(error, InputError) else f"{value!r} is not a number"
        raise InputError(f"the policy {text}: {reason}") from None


def simulate(
    history: History,
    policies: Sequence[Policy],
    *,
    trigger: float | None = None,
    slots: int | None = None,
    stabilization: float = 300.0,
    cooldown: float = 600.0,
    min_partitions: int = 1,
    max_partitions: int = 1024,
    state_per_partition: int = _BYTES_PER_PARTITION,
) -> StreamSimulation:
    """Return how a logged stream would have run under each policy.

    `trigger` and `slots` are the ones of the log by default, and `slots` must be given for a log
    without records of Apportion. The other arguments are as in `streaming.start`, in seconds and
    bytes.

    Raises `InputError` for a log with less than two batches, and if the slots are unknown.
    """
    observed = _observed(history)
    if len(observed) < 2:
        raise InputError(f"the log has {len(observed)} batches of {history.stream}: 2 are needed")
    slots = _slots(observed, history, slots)
    # Spark starts batches with the interval 0 as without one.
    trigger = (_trigger(history) if trigger is None else trigger) or None
    warm = [each for each in observed if not each.is_first] or observed
    model = fit([dataclasses.replace(each, slots=each.slots or slots) for each in warm])
    measured = [each.pause_millis / 1000 for each in history.records if each.pause_millis]
    pause = statistics.median(measured) if measured else _PAUSE
    bounds = Bounds(min_partitions, max_partitions, state_per_partition)
    arrivals = _Arrivals(observed)
    stream = _Stream(arrivals, model, trigger, slots, pause)
    runs = [_measured(observed, arrivals, trigger, sum(measured), len(measured))]
    runs.append(stream.run("replay", observed[0].partitions, _schedule(observed)))
    for policy in policies:
        change = _decisions(policy, bounds, Stabilizer(stabilization, cooldown), stream)
        first = policy.partitions if isinstance(policy, Fixed) else observed[0].partitions
        runs.append(stream.run(_name(policy), first, change))
    return StreamSimulation(
        history.stream, trigger, slots, model, pause, len(measured), stabilization, cooldown, runs
    )


class _Arrivals:
    """Rows that arrived, and the state that they left, over time."""

    def __init__(self, observed: Sequence[_Observed]) -> None:
        self._observed = observed
        # Rows after each batch.
        self._read = list(accumulate(each.rows for each in observed))
        # Spark looks for rows when a batch starts. Batches of a damaged log overlap.
        self.times = list(accumulate((each.ended - each.seconds for each in observed), max))
        arrived = [read + each.backlog for read, each in zip(self._read, observed, strict=True)]
        self._rows = list(accumulate(arrived, max))
        # Rows of the last backlog were never read, and would have no batch.
        self.total = self._read[-1]
        self.begin = self.times[0]
        self.end = observed[-1].ended
        backlogs = [each.backlog for each in observed]
        # A source with a backlog gave its most rows.
        self.limit = max(each.rows for each in observed) if any(backlogs) else None

    def rows(self, time: float) -> float:
        """Return the rows that arrived before a time."""
        place = bisect.bisect_right(self.times, time)
        if place == 0:
            return 0.0
        if place == len(self.times):
            return float(self.total)
        share = (time - self.times[place - 1]) / (self.times[place] - self.times[place - 1])
        before, after = self._rows[place - 1], self._rows[place]
        return min(float(self.total), before + share * (after - before))

    def time(self, rows: float) -> float:
        """Return when this number of rows had arrived."""
        place = bisect.bisect_left(self._rows, rows)
        if place == 0:
            return self.begin
        if place == len(self._rows):
            return self.times[-1]
        before, after = self._rows[place - 1], self._rows[place]
        share = (rows - before) / (after - before)
        return self.times[place - 1] + share * (self.times[place] - self.times[place - 1])

    def state(self, read: float) -> tuple[int, int]:
        """Return the rows and bytes of the state after this number of rows."""
        place = min(bisect.bisect_left(self._read, read), len(self._observed) - 1)
        return self._observed[place].state_rows, self._observed[place].state_bytes


@dataclasses.dataclass(frozen=True)
class _Stream:
    """Runs the batches of a stream."""

    arrivals: _Arrivals
    model: BatchTimes
    trigger: float | None
    slots: int
    pause: float

    def run(self, name: str, partitions: int, change: Change) -> Run:
        """Run all batches. `change` returns the partitions after each."""
        arrivals = self.arrivals
        now, read = arrivals.begin, 0.0
        steps = [(0.0, partitions)]
        recent: deque[Batch] = deque(maxlen=_BATCHES)
        batches = late = rescales = 0
        worst = hours = 0.0
        # The first batch after a start is not looked at.
        is_warm = False
        steps_left = _MORE_STEPS + _STEPS_PER_BATCH * len(arrivals.times)
        while read < arrivals.total - 0.5:
            steps_left -= 1
            if not steps_left:
                raise InputError(
                    f"the run {name} has more than {_STEPS_PER_BATCH} times the batches of the "
                    "log: give a longer `trigger` (--trigger)"
                )
            rows = arrivals.rows(now) - read
            if rows < 0.5:
                # Rows of the last batch arrive when it starts.
                now = self._next(now, max(now + _IDLE, arrivals.time(read + 1)))
                continue
            rows = min(rows, arrivals.limit or rows)
            seconds = self.model.seconds(rows, partitions, self.slots)
            ended = now + seconds
            worst = max(worst, ended - arrivals.time(read + min(1.0, rows)))
            read += rows
            batches += 1
            late += self.trigger is not None and seconds > self.trigger
            following = self._next(now, ended)
            if is_warm:
                recent.append(self._batch(batches, ended, seconds, rows, read, partitions))
                target = change(ended, recent, partitions)
                if target != partitions:
                    following = max(following, ended + self.pause)
                    hours += partitions * (following - now) / 3600
                    partitions, now = target, following
                    rescales += 1
                    steps.append((following - arrivals.begin, partitions))
                    recent.clear()
                    is_warm = False
                    continue
            is_warm = True
            hours += partitions * (following - now) / 3600
            now = following
        return Run(
            name,
            batches,
            rescales,
            rescales * self.pause,
            worst,
            None if self.trigger is None else late / max(1, batches),
            hours,
            steps,
            now - arrivals.begin,
        )

    def _next(self, began: float, earliest: float) -> float:
        """Return the start of the next batch, as Spark's `ProcessingTimeExecutor`."""
        if not self.trigger:
            return earliest
        past = began - self.arrivals.begin
        boundary = self.arrivals.begin + (math.floor(past / self.trigger) + 1) * self.trigger
        return max(boundary, earliest)

    def _batch(
        self, number: int, ended: float, seconds: float, rows: float, read: float, partitions: int
    ) -> Batch:
        state_rows, state_bytes = self.arrivals.state(read)
        operator = Operator("", partitions, state_rows, state_bytes, 0)
        return Batch(
            id=number,
            name="",
            query_id="",
            run_id="",
            ended=datetime.datetime.fromtimestamp(
                min(max(0, ended), _LAST_TIME), datetime.timezone.utc
            ),
            seconds=seconds,
            input_rows=round(rows),
            input_rows_per_second=rows / max(seconds, self.trigger or 0.0, 1e-3),
            processed_rows_per_second=rows / max(seconds, 1e-3),
            backlog_rows=max(0, round(self.arrivals.rows(ended - seconds) - read)),
            operators=[operator],
        )


def _decisions(policy: Policy, bounds: Bounds, stabilizer: Stabilizer, stream: _Stream) -> Change:
    """Return the decisions of a policy after each batch, as the controller makes them."""
    # The load before the last rescale.
    before: Load | None = None

    def change(now: float, batches: Sequence[Batch], partitions: int) -> int:
        nonlocal before
        load = load_of(batches, partitions, stream.slots, stream.trigger, before)
        size = bounds.bytes_per_partition
        needed = min(checks.power_up(-(-load.state_bytes // size)) or 1, bounds.most)
        wanted = bounds.apply(policy.wanted(load), needed, load)
        steady = stabilizer.steady(now, partitions, wanted)
        if steady is None:
            return partitions
        stabilizer.changed(now)
        before = load
        return steady.partitions

    return change


def _schedule(observed: Sequence[_Observed]) -> Change:
    """Return the numbers of partitions of the log, over time."""
    times = [each.ended - each.seconds for each in observed]

    def change(now: float, _: Sequence[Batch], partitions: int) -> int:
        place = bisect.bisect_right(times, now) - 1
        return observed[place].partitions if place >= 0 else partitions

    return change


def _measured(
    observed: Sequence[_Observed],
    arrivals: _Arrivals,
    trigger: float | None,
    pauses: float,
    rescales: int,
) -> Run:
    read = 0
    worst = hours = 0.0
    steps: list[tuple[float, int]] = []
    for place, each in enumerate(observed):
        began = each.ended - each.seconds
        if each.rows:
            worst = max(worst, each.ended - arrivals.time(read + 1))
        read += each.rows
        last = place + 1 == len(observed)
        following = each.ended if last else observed[place + 1].ended - observed[place + 1].seconds
        hours += each.partitions * max(0.0, following - began) / 3600
        if not steps or steps[-1][1] != each.partitions:
            steps.append((began - arrivals.begin, each.partitions))
    late = sum(each.seconds > trigger for each in observed) if trigger else 0
    return Run(
        "logged",
        len(observed),
        # A log without records shows only the numbers of partitions.
        max(rescales, len(steps) - 1),
        pauses,
        worst,
        None if trigger is None else late / len(observed),
        hours,
        steps,
        arrivals.end - arrivals.begin,
    )


def _observed(history: History) -> list[_Observed]:
    found = [
        _observe(record, record.at, record.batch_millis / 1000, record.slots)
        for record in history.records
        if record.event in ("batch", "rescale") and record.partitions > 0
    ] or [_observe(batch, batch.ended, batch.seconds, 0) for batch in history.batches]
    found.sort(key=lambda each: each.ended)
    ids = [None, *(each.run_id for each in found)]
    return [
        dataclasses.replace(each, is_first=each.run_id != before)
        for each, before in zip(found, ids, strict=False)
        # Spark reports that it waits for rows as a batch of no time.
        if each.seconds > 0
    ]


def _observe(
    each: StreamRecord | Batch, ended: datetime.datetime, seconds: float, slots: int
) -> _Observed:
    return _Observed(
        rows=each.input_rows,
        partitions=each.partitions or 1,
        slots=slots,
        seconds=seconds,
        ended=ended.timestamp(),
        backlog=each.backlog_rows or 0,
        state_rows=each.state_rows,
        state_bytes=each.state_bytes,
        run_id=each.run_id,
    )


def _slots(observed: Sequence[_Observed], history: History, given: int | None) -> int:
    if given is not None:
        return checks.check("slots", given)
    known = [each.slots for each in observed if each.slots]
    if not known:
        raise InputError(
            f"the log does not have the task slots of {history.stream}, because the stream ran "
            "without Apportion: give `slots` (--slots)"
        )
    return known[-1]


def _trigger(history: History) -> float | None:
    millis = [record.trigger_millis for record in history.records]
    return millis[-1] / 1000 if millis and millis[-1] else None


def _name(policy: Policy) -> str:
    if isinstance(policy, Fixed):
        return f"fixed:{policy.partitions}"
    if isinstance(policy, BatchTime):
        return f"load:{policy.share:g}"
    if isinstance(policy, Backlog):
        return f"lag:{policy.drain_seconds:g}s"
    return policy.name
