"""Number of tasks of a logged scan in another configuration."""

from __future__ import annotations

from apportion.simulate import logged_policy
from apportion.simulate.arithmetic.files import MAX_TASKS, file_tasks
from apportion.simulate.arithmetic.policy import Confs
from apportion.simulate.workload import Scan


def scan_tasks(
    scan: Scan, confs: Confs, slots: int, default_parallelism: int, scale: float = 1
) -> int:
    """Return the tasks for a scan whose files have `scale` times the bytes of the log."""
    if scan.logged and logged_policy.is_fixed_scan(scan.logged):
        return min(max(1, scan.logged.decision.parallelism), MAX_TASKS)
    return file_tasks(scan.files, int(scan.bytes * scale), confs, slots, default_parallelism)
