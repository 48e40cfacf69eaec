"""Policy of a logged decision, and tasks of a scan, in another configuration.

Values that the query sets stay fixed.
"""

from __future__ import annotations

import dataclasses

from apportion.decision import Decision
from apportion.logs.eventlog import LoggedDecision
from apportion.logs.simulate.arithmetic.files import MAX_TASKS, file_tasks
from apportion.logs.simulate.arithmetic.policy import (
    MULTIPLIED_ROWS,
    REQUESTED_SIZE,
    Confs,
    Policy,
)
from apportion.logs.simulate.workload import Scan

# Kinds in `LoggedDecision.source_kinds`; see `io.apportion.decision.SourceKind`.
_HINT = "hint"
_POLICY_RULE = "policy-rule"
_WRITE = "write"
# Kinds that set the tasks of a scan: hints, rules and options of the reader.
_FIXED_SCAN = {_HINT, _POLICY_RULE, "reader-option"}


def is_unchanged(decision: Decision) -> bool:
    """Return whether Apportion left a group unchanged, for example because of `repartition(n)`."""
    return decision.data_volume_per_task is None


def write_size(logged: LoggedDecision) -> int | None:
    """Return the size per task that a write requests; None if no write set it."""
    is_from_write = logged.source_kinds.get("dataVolumePerTask") == _WRITE
    return logged.decision.data_volume_per_task if is_from_write else None


def multiplies_rows(logged: LoggedDecision) -> bool:
    """Return whether the tasks run a join that multiplies rows, so they must read less."""
    return logged.source_kinds.get("dataVolumePerTask") == MULTIPLIED_ROWS


def scan_tasks(scan: Scan, confs: Confs, slots: int, scale: float = 1) -> int:
    """Return the tasks for a scan whose files have `scale` times the bytes of the log."""
    logged = scan.logged
    if (
        logged
        and logged.decision.kind == "explicit"
        and logged.source_kinds.get("parallelism") in _FIXED_SCAN
    ):
        return min(max(1, logged.decision.parallelism), MAX_TASKS)
    size = int(scan.bytes * scale)
    return file_tasks(scan.files, size, confs, slots)


def policy(
    logged: LoggedDecision, confs: Confs, slots: int, size: int, task_memory: int | None = None
) -> Policy:
    """Return the policy for shuffles of `size` bytes, with the logged values of hints and writes.

    Values of policy rules stay as well. A log without `LoggedDecision.policy` does not have them,
    so the configuration applies.
    `task_memory` is the memory that rows may fill in such a log.
    """
    result = Policy.from_confs(confs, slots, size)
    is_for_size = logged.source_kinds.get("mode") == REQUESTED_SIZE
    if is_for_size:
        result = dataclasses.replace(result, slots=None)
    if multiplies_rows(logged):
        volume = min(result.data_volume_per_task, result.min_task_volume)
        result = dataclasses.replace(result, data_volume_per_task=volume)
    before = logged.policy
    if before is None:
        return dataclasses.replace(result, task_memory=None if is_for_size else task_memory)
    if confs.setting("memory_enabled"):
        result = dataclasses.replace(result, task_memory=before.task_memory)

    def is_kept(setting: str) -> bool:
        return logged.source_kinds.get(setting) in (_HINT, _POLICY_RULE)

    if is_kept("dataVolumePerTask") or write_size(logged):
        result = dataclasses.replace(result, data_volume_per_task=before.data_volume_per_task)
    if is_kept("parallelism"):
        result = dataclasses.replace(result, parallelism=before.parallelism)
    if is_kept("minParallelism"):
        result = dataclasses.replace(result, min_parallelism=before.min_parallelism)
    if is_kept("maxParallelism"):
        result = dataclasses.replace(result, max_parallelism=before.max_parallelism)
    if is_kept("ranges"):
        result = dataclasses.replace(result, balanced=before.ranges == "balanced")
    if is_kept("broadcastRatio"):
        result = dataclasses.replace(result, broadcast_ratio=before.broadcast_ratio)
    return result
