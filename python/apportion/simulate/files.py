"""How many tasks scan files."""

from __future__ import annotations

from apportion.simulate import settled
from apportion.simulate.decider import decide_source
from apportion.simulate.policy import Confs
from apportion.simulate.workload import Scan

# The extension makes no more, whatever is asked for.
_MOST = 32768
_OPEN_COST = "spark.sql.files.openCostInBytes"


def scan_tasks(
    scan: Scan, confs: Confs, slots: int, default_parallelism: int, scale: float = 1
) -> int:
    """Return the tasks for a scan whose files have `scale` times the bytes."""
    if scan.decision and settled.is_fixed_scan(scan.decision):
        return min(max(1, scan.decision.parallelism), _MOST)
    size, opening = int(scan.bytes * scale), confs.size(_OPEN_COST)
    least = (
        confs.number("spark.sql.files.minPartitionNum")
        or confs.number("spark.sql.leafNodeDefaultParallelism")
        or default_parallelism
    )
    piece = max(opening, (size + scan.files * opening) // least)
    piece = min(piece, confs.size("spark.sql.files.maxPartitionBytes"))
    sparks = dealt(scan.files, size // scan.files, piece, opening)
    if not (confs.enabled and confs.setting("sources_enabled")):
        return sparks
    policy = settled.source_policy(confs, slots, sparks)
    # To open a file costs no more than what a task reads.
    tasks = decide_source(size + scan.files * min(opening, policy.volume), policy)
    return min(tasks, max(_MOST, sparks))


def dealt(files: int, file_bytes: int, piece: int, opening: int) -> int:
    """Return the tasks that Spark makes of files of equal size, which it cuts into pieces.

    A task is filled up to the size of a piece; each piece in it counts `opening` more. Logs tell
    how many files there are and what they have together, so that equal ones are supposed.
    """
    whole, rest = divmod(file_bytes, piece) if file_bytes > piece else (0, file_bytes)
    tasks = files * whole
    if rest:
        together = (piece - rest) // (rest + opening) + 1
        tasks += -(-files // together)
    return max(1, tasks)
