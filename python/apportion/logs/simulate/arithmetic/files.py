"""Number of tasks that scan files."""

from __future__ import annotations

from apportion.logs.simulate.arithmetic.decider import likely_tasks
from apportion.logs.simulate.arithmetic.policy import (
    MAX_PARTITION_BYTES,
    OPEN_COST,
    Confs,
    source_policy,
)

# Maximum number of tasks that the extension gives a scan, unless Spark has more.
MAX_TASKS = 32768


def file_tasks(files: int, size: int, confs: Confs, slots: int) -> int:
    """Return the tasks for a scan of `files` files with `size` bytes in total."""
    opening = confs.size(OPEN_COST)
    min_tasks = (
        confs.number("spark.sql.files.minPartitionNum")
        or confs.number("spark.sql.leafNodeDefaultParallelism")
        or confs.default_parallelism(slots)
    )
    piece = max(opening, (size + files * opening) // min_tasks, 1)
    piece = min(piece, confs.size(MAX_PARTITION_BYTES))
    spark_tasks = tasks_of_pieces(files, size // files, piece, opening)
    if not (confs.enabled and confs.setting("sources_enabled")):
        return spark_tasks
    policy = source_policy(confs, slots, spark_tasks)
    is_bounded = policy.max_parallelism < spark_tasks
    tasks = policy.parallelism
    if tasks is None:
        # The cost to open a file is at most the target size per task.
        tasks = likely_tasks(size + files * min(opening, policy.data_volume_per_task), policy)
    is_near = spark_tasks <= 2 * tasks <= 4 * spark_tasks
    if is_near and policy.parallelism is None and not is_bounded:
        # The extension leaves a scan to Spark if the difference is small.
        return spark_tasks
    return min(tasks, max(MAX_TASKS, spark_tasks))


def tasks_of_pieces(files: int, file_bytes: int, piece: int, opening: int) -> int:
    """Return the tasks that Spark makes of files of equal size, which it cuts into pieces.

    Spark fills a task up to the size of a piece, and adds `opening` bytes for each piece in it
    (`FilePartition`, Spark 3.5 to 4.3). Logs contain the number of files and their total size
    only, so the files count as equally large.
    """
    whole, rest = divmod(file_bytes, piece) if file_bytes > piece else (0, file_bytes)
    tasks = files * whole
    if rest:
        together = (piece - rest) // (rest + opening) + 1
        tasks += -(-files // together)
    return max(1, tasks)
