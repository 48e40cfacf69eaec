"""Compares the JSON of `apportion advise` and `apportion explain` with the raw JSON of a log.

    python -m tests.recount.compare LOG...

prints each number that differs, and how many were compared.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from apportion.cli import app

from .raw import Attempt, Log, Task, read

Data = dict[str, Any]
Difference = tuple[str, object, object]


def printed(command: str, log: Path) -> Any:
    """Return the JSON that a command prints about a log; None if the log has no queries for it."""
    run = CliRunner().invoke(app, [command, str(log), "--format", "json"])
    return json.loads(run.stdout) if run.exit_code == 0 else None


class Recount:
    """Counts the numbers of a log again, and keeps those that differ."""

    def __init__(self, path: Path) -> None:
        self.log = read(path)
        self.compared = 0
        self.differences: list[Difference] = []
        self._name = path.name
        if advice := printed("advise", path):
            self._advice(advice["applications"][0])
        for query in printed("explain", path) or ():
            self._query(query)

    def _same(self, place: str, shown: object, counted: object) -> None:
        self.compared += 1
        is_near = (
            isinstance(shown, float | int)
            and isinstance(counted, float | int)
            and abs(shown - counted) <= max(2e-6, 1e-6 * abs(counted))
        )
        if shown != counted and not is_near:
            self.differences.append((f"{self._name}: {place}", shown, counted))

    # apportion advise

    def _advice(self, application: Data) -> None:
        queries = [attempt for attempt in self.log.attempts.values() if attempt.query is not None]
        self._same("task_seconds", application["task_seconds"], _task_seconds(queries))
        self._same("stage_seconds", application["stage_seconds"], _busy(queries))
        outside = _task_seconds(self.log.of_query(None))
        self._same("other_task_seconds", application["other_task_seconds"], outside)
        for finding in application["findings"]:
            self._finding(finding, application)
        for query in application["queries"]:
            own = self.log.of_query(query["id"])
            place = f"query {query['id']}"
            self._same(f"{place} task_seconds", query["task_seconds"], _task_seconds(own))
            self._same(f"{place} stage_seconds", query["stage_seconds"], _busy(own))
            self._same(f"{place} seconds", query["seconds"], _wall(self.log, query["id"]))
            for finding in query["findings"]:
                self._finding(finding, application)

    def _finding(self, finding: Data, application: Data) -> None:
        own = self.log.of_query(finding["query"])
        if finding["stage"] is not None:
            own = [attempt for attempt in own if attempt.id == finding["stage"]]
        tasks = [task for attempt in own for task in attempt.tasks]
        every = [task for attempt in self.log.attempts.values() for task in attempt.tasks]
        place = f"query {finding['query']}, stage {finding['stage']}, {finding['kind']}"
        for name, shown in finding["evidence"].items():
            if finding["stage"] is None and name in PER_STAGE:
                continue
            if name == "median_task_seconds":
                values = [t.ran if finding["kind"] == "skew" else t.millis for t in tasks]
                self._same(f"{place} {name}", shown, _upper_median(values) / 1000)
            elif (count := EVIDENCE.get(name)) is not None:
                self._same(f"{place} {name}", shown, count(own, tasks))
            elif name == "all_task_seconds":
                self._same(f"{place} {name}", shown, sum(task.millis for task in every) / 1000)
            elif name == "alone_seconds":
                self._same(f"{place} {name}", shown, _alone(self.log, own))
            elif name == "busy_share":
                slots = finding["evidence"]["slots"]
                share = sum(t.millis for t in tasks) / 1000 / (_busy(own) * slots)
                self._same(f"{place} {name}", shown, share)
        gain, stage = finding["gain"], _busy(own) if tasks else None
        if stage is not None and finding["stage"] is not None:
            self.compared += 1
            if not 0 <= gain["seconds_low"] <= gain["seconds_high"] <= stage + 1e-5:
                self.differences.append((f"{place} gain", gain["seconds_high"], stage))

    # apportion explain

    def _query(self, query: Data) -> None:
        own = self.log.of_query(query["id"])
        place = f"explain query {query['id']}"
        wall = _wall(self.log, query["id"])
        self._same(f"{place} seconds", query["seconds"], wall)
        self._same(f"{place} peak_tasks", query["peak_tasks"], _peak(_tasks(own)))
        if wall is not None:
            parts = sum(part["millis"] for part in query["time_parts"])
            self._same(f"{place} time_parts", parts, round(wall * 1000))
        works = [(stage["name"], stage["ran"]) for stage in query["stages"]]
        works.append(("outside", query["outside_of_plan"]))
        for name, work in works:
            if work is not None:
                self._work(f"{place} {name}", work, own)
        total = sum(task.millis for task in _tasks(own))
        for stage in query["stages"]:
            if (share := stage["share_of_task_time"]) is not None:
                counted = sum(t.millis for t in _tasks(_with_ids(own, stage["ran"]["stages"])))
                self._same(f"{place} {stage['name']} share", share, counted / total)
        decided = [each for each in self.log.decisions if each["query"] == query["id"]]
        shown = [logged for stage in query["stages"] for logged in stage["decisions"]]
        shown += query["decisions_elsewhere"]
        self._same(f"{place} decisions", len(shown), len(decided))
        by_group = {logged["group"]: logged for logged in shown}
        for record in decided:
            for name in ("tasks", "parallelism", "input_bytes", "largest_task_bytes", "reason"):
                logged = by_group[record["group"]]
                self._same(f"{place} group {record['group']} {name}", logged[name], record[name])

    def _work(self, place: str, work: Data, attempts: Sequence[Attempt]) -> None:
        own = _with_ids(attempts, work["stages"])
        tasks = _tasks(own)
        longest = max(work["stages"], key=lambda id: (_millis(_with_ids(own, [id])), id))
        of_longest = _tasks(_with_ids(own, [longest]))
        counted: Data = {
            "tasks": len(tasks),
            "tasks_of_stages": [len(_tasks(_with_ids(own, [id]))) for id in work["stages"]],
            "most_tasks": max(len(attempt.tasks) for attempt in own),
            "failed_tasks": sum(len(attempt.failed) for attempt in own),
            "wasted_millis": sum(each["millis"] for attempt in own for each in attempt.failed),
            "started": min((task.launched for task in tasks), default=None),
            "ended": max((task.finished for task in tasks), default=None),
            "wall_millis": round(_busy(own) * 1000),
            "task_millis": sum(task.millis for task in tasks),
            "input_bytes": sum(task.scanned for task in tasks),
            "shuffle_read_bytes": sum(task.shuffled for task in tasks),
            "shuffle_written_bytes": sum(task.written_to_shuffle for task in tasks),
            "output_bytes": sum(task.written_to_files for task in tasks),
            "spilled_bytes": sum(task.spilled for task in tasks),
            "gc_millis": sum(min(task.gc, task.millis) for task in tasks),
            "fetch_wait_millis": sum(task.fetch_wait for task in tasks),
            "peak_memory": max((task.peak_memory for task in tasks), default=0),
            "longest_task_millis": max((task.ran for task in of_longest), default=0),
            "median_task_millis": _upper_median(task.ran for task in of_longest),
            "largest_task_bytes": max((task.read for task in of_longest), default=0),
            "median_task_bytes": _upper_median(task.read for task in of_longest),
        }
        for name, value in counted.items():
            self._same(f"{place} {name}", work[name], value)


def _tasks(attempts: Iterable[Attempt]) -> list[Task]:
    return [task for attempt in attempts for task in attempt.tasks]


def _with_ids(attempts: Iterable[Attempt], ids: Sequence[int]) -> list[Attempt]:
    return [attempt for attempt in attempts if attempt.id in ids]


def _millis(attempts: Iterable[Attempt]) -> int:
    return sum(task.millis for task in _tasks(attempts))


def _task_seconds(attempts: Iterable[Attempt]) -> float:
    return _millis(attempts) / 1000


def _busy(attempts: Iterable[Attempt]) -> float:
    """Return the seconds in which at least one attempt ran."""
    total, until = 0, 0
    for start, end in sorted(attempt.span for attempt in attempts if attempt.tasks):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total / 1000


def _alone(log: Log, own: Sequence[Attempt]) -> float:
    """Return the seconds in which no stage but this one ran."""
    times = sorted({time for each in log.attempts.values() if each.tasks for time in each.span})
    id, total = own[0].id, 0
    for start, end in itertools.pairwise(times):
        running = {
            attempt.id
            for attempt in log.attempts.values()
            if attempt.tasks and attempt.span[0] <= start and end <= attempt.span[1]
        }
        total += (end - start) * (running == {id})
    return total / 1000


def _wall(log: Log, query: int) -> float | None:
    if query not in log.ends:
        return None
    millis: int = log.ends[query]["time"] - log.queries[query]["time"]
    return max(0, millis) / 1000


def _peak(tasks: Iterable[Task]) -> int:
    return max((running for _, running in _running(tasks)), default=0)


def _running(tasks: Iterable[Task]) -> Iterator[tuple[int, int]]:
    """Yield the number of running tasks after each change."""
    changes: dict[int, int] = {}
    for task in tasks:
        changes[task.launched] = changes.get(task.launched, 0) + 1
        changes[task.launched + task.ran] = changes.get(task.launched + task.ran, 0) - 1
    running = 0
    for time in sorted(changes):
        running += changes[time]
        yield time, running


def _upper_median(values: Iterable[int]) -> int:
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else 0


def _gc(tasks: Sequence[Task]) -> float:
    return sum(min(task.gc, task.millis) for task in tasks) / 1000


def _ran_longest(tasks: Sequence[Task]) -> Task:
    return max(tasks, key=lambda task: task.ran)


def _is_out_of_memory(failure: Data) -> bool:
    reason = failure["reason"]
    if reason.get("Reason") == "ExecutorLostFailure":
        marks = ("code 137", "code 52", "status 137", "status 52", "OutOfMemory", "OOMKilled")
        return any(mark in str(reason.get("Loss Reason")) for mark in marks)
    return str(reason.get("Class Name")).endswith(("OutOfMemoryError", "OOM"))


def _last_wave(tasks: Sequence[Task]) -> tuple[float, float]:
    """Return the seconds after the last launch, and the idle seconds of slots in them."""
    steps = list(_running(tasks))
    since, peak = max(task.launched for task in tasks), _peak(tasks)
    end, idle = since, 0
    for (time, running), (until, _) in itertools.pairwise(steps):
        if time >= since:
            idle, end = idle + max(0, peak - running) * (until - time), until
    return (end - since) / 1000, idle / 1000


Count = Callable[[Sequence[Attempt], Sequence[Task]], object]
# Findings about an application or a query count stages that they do not name.
PER_STAGE = {
    "tasks", "task_seconds", "stage_seconds", "shuffle_bytes", "mean_task_bytes", "scanned_bytes",
}  # fmt: skip
EVIDENCE: dict[str, Count] = {
    "tasks": lambda _, tasks: len(tasks),
    "task_seconds": lambda own, _: _task_seconds(own),
    "stage_seconds": lambda own, _: _busy(own),
    "stage_attempts": lambda own, _: len(own),
    "shuffle_bytes": lambda _, tasks: sum(task.shuffled for task in tasks),
    "mean_task_bytes": lambda _, tasks: sum(task.shuffled for task in tasks) // len(tasks),
    "scanned_bytes": lambda _, tasks: sum(task.scanned for task in tasks),
    "read_bytes": lambda _, tasks: sum(task.read for task in tasks),
    "written_bytes": lambda _, tasks: sum(task.written_to_files for task in tasks),
    "writing_tasks": lambda _, tasks: sum(task.written_to_files > 0 for task in tasks),
    "spilled_bytes": lambda _, tasks: sum(task.spilled for task in tasks),
    "spilling_tasks": lambda _, tasks: sum(task.spilled > 0 for task in tasks),
    "peak_task_memory": lambda _, tasks: max(task.peak_memory for task in tasks),
    "gc_seconds": lambda _, tasks: _gc(tasks),
    "gc_share": lambda own, tasks: _gc(tasks) / _task_seconds(own),
    "fetch_wait_seconds": lambda _, tasks: sum(task.fetch_wait for task in tasks) / 1000,
    "fetch_wait_share": lambda own, tasks: (
        sum(task.fetch_wait for task in tasks) / 1000 / _task_seconds(own)
    ),
    "failed_tasks": lambda own, _: sum(len(attempt.failed) for attempt in own),
    "memory_failures": lambda own, _: sum(
        _is_out_of_memory(failure) for attempt in own for failure in attempt.failed
    ),
    "wasted_seconds": lambda own, _: (
        sum(failure["millis"] for attempt in own for failure in attempt.failed) / 1000
    ),
    "lost_task_seconds": lambda own, _: (
        _task_seconds(own)
        + sum(attempt.killed_millis for attempt in own) / 1000
        + sum(failure["millis"] for attempt in own for failure in attempt.failed) / 1000
    ),
    "longest_task_seconds": lambda _, tasks: _ran_longest(tasks).ran / 1000,
    "longest_task_bytes": lambda _, tasks: _ran_longest(tasks).read,
    "largest_task_bytes": lambda _, tasks: max(task.read for task in tasks),
    "median_task_bytes": lambda _, tasks: _upper_median(task.read for task in tasks),
    "peak_tasks": lambda _, tasks: _peak(tasks),
    "last_wave_seconds": lambda _, tasks: _last_wave(tasks)[0],
    "idle_slot_seconds": lambda _, tasks: _last_wave(tasks)[1],
}


def main(logs: Sequence[str]) -> int:
    """Print the differences in each log. Return 1 if there is any."""
    different = 0
    for log in logs:
        recount = Recount(Path(log))
        different += len(recount.differences)
        print(f"{log}: {recount.compared} numbers, {len(recount.differences)} differences")
        for difference in recount.differences:
            print("  {}: shown {}, counted {}".format(*difference))
    return min(different, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
