"""Thresholds of findings. A finding should be worth the time of a person who reads it."""

from __future__ import annotations

MIN_TASK_SECONDS = 1.0
"""Task time of a stage. Smaller stages have no findings."""
MIN_GAIN_SECONDS = 0.3
"""Largest possible gain of a finding about the number of tasks."""

TINY_TASK_SECONDS = 0.2
"""Median duration of tiny tasks."""
RECORDED_SIZE = 1.1
"""Spark records the size of each block rounded up to a power of this (`MapStatus.LOG_BASE`).
Apportion decides by these sizes. The metrics of tasks have the exact sizes."""
NEGLIGIBLE_BYTES = 64 << 10
"""Mean bytes of tasks whose time is mostly overhead."""
FAR_BELOW = 4
"""Tasks are far below the target if their mean bytes are at most the target divided by this."""
FAR_ABOVE = 2
"""Tasks are far above the target if their mean bytes are at least this multiple of it."""
FEWER_TASKS = 2
"""A number of tasks counts as too high if it is at least this multiple of the decided number."""

MIN_SPILLED = 64 << 20
MIN_SPILLED_SHARE = 0.05
"""Spilled bytes, in proportion to the bytes that the stage read."""
FAST_SPILL = 2 << 30
SLOW_SPILL = 50 << 20
"""Bytes per second that a task can spill: to the page cache, and to a shared disk."""

MIN_SHARE = 0.1
"""Garbage collection and waiting for shuffle data, in proportion to the task time."""
MIN_LOST_SECONDS = 0.5
"""Largest possible gain of a finding about garbage collection or waiting for shuffle data."""
MIN_LOST_TASK_SECONDS = 5.0
"""Task time of garbage collection, of waiting for shuffle data, or of failed attempts."""
MIN_WASTED_SHARE = 0.02
"""Time of failed attempts, in proportion to the task time."""

SKEW_RATIO = 3.0
"""Duration of the longest task divided by the median."""
BYTES_SKEW_RATIO = 2.0
"""Bytes of the longest task divided by the median."""
MIN_SKEW_TASKS = 4
MAX_SKEW_DELAY = 0.1
"""Share of the stage between the end of the longest task and the end of the stage. Earlier long
tasks delay nothing."""
MIN_SKEW_SECONDS = 2.0
"""Seconds between the longest task and the median, and the largest possible gain."""
SPLIT_SHARE = 0.5
"""Share of the gain of an even split that reads the partition twice, for the lower bound. A split
is less even if few map tasks wrote the partition."""
SPLIT_TOLERANCE = 1.25
"""Apportion splits partitions above this multiple of the mean task: `SkewSplits.scala`."""

MIN_IDLE_SECONDS = 5.0
"""Duration of a stage with fewer tasks than slots, while no other stage runs."""
MAX_BUSY_SHARE = 0.5
START_SECONDS = 15.0
"""Longest stage whose time can be the start of its executors, if all its tasks were their first."""
MIN_RUN_SHARE = 0.5
"""Time in the code of tasks, in proportion to the time from their launches to their ends."""
MIN_TAIL_SECONDS = 2.0
MIN_TAIL_SHARE = 0.2
"""Largest possible gain of a last wave, in seconds and in proportion to the stage."""

LARGE_READ = 1 << 30
"""Bytes that a task reads, which are worth a word."""
MIN_SCANS = 3
"""Scans of the same files by an application."""
MIN_OUTSIDE_SHARE = 0.1
"""Task time outside of SQL, in proportion to all task time. The same share holds for scans that
read the same files again."""

MIN_FILES = 50
SMALL_FILE = 16 << 20
"""Mean bytes of small output files."""
LARGER_PIECES = 4
"""Multiple of `spark.sql.files.maxPartitionBytes` for scans of few columns in large files."""
SMALL_SCAN_TASK = 8 << 20
"""Mean bytes of small scan tasks."""

TINY_PARTITION = 1 << 20
"""Mean bytes of tiny shuffle partitions: the default of
`spark.sql.adaptive.coalescePartitions.minPartitionSize`."""
MIN_SHUFFLE_TASK_SECONDS = 5.0
"""Task time of all stages that read shuffles, for findings about the configuration."""
