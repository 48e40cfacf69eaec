"""Time in which map tasks write the files of a shuffle, with another number of partitions."""

from __future__ import annotations

BYPASS = "spark.shuffle.sort.bypassMergeThreshold"
# Time to open and make a file, divided by the part that Spark counts. Spark opens a file and its
# streams at the first row, and does not count that (`DiskBlockObjectWriter.open`). Measured with
# tasks of 2,000 and 100,000 rows, with 200 and with 201 partitions (Spark 4.2.1).
_OPENED = 7
# Bytes of a file whose copying takes as long as the counted part of making it, from the same tasks.
_COPIED = 43 << 10


# Mean time of a map task for a file, on a fast disk. It is used for logs of adaptive writes, whose
# few files do not show it. From 2,000 map tasks of 1,000 rows with 16 to 1,024 partitions.
SECONDS_PER_FILE = 58e-6


def files(partitions: int, bypass_up_to: int) -> int:
    """Return the number of files that a map task opens for a shuffle that Spark writes.

    Up to `spark.shuffle.sort.bypassMergeThreshold` partitions, it writes one file for each of them
    and joins these files. Above, it sorts its rows and writes one file
    (`SortShuffleWriter.shouldBypassMergeSort`, Spark 3.0 to 4.3).
    """
    return partitions if partitions <= bypass_up_to else 1


def full_seconds(counted: float, partitions: int, rows: float, size: float) -> float:
    """Return the time of a map task for its files, from the time that Spark counts.

    `rows` and `size` are the rows and bytes that the task writes. A partition without rows has no
    open file.
    """
    making = counted / (1 + size / partitions / _COPIED)
    return counted + making * (_OPENED - 1) * min(rows / partitions, 1.0)
