from __future__ import annotations

import pytest

from apportion.logs.simulate.arithmetic.files import tasks_of_pieces
from apportion.logs.simulate.arithmetic.policy import Confs
from apportion.logs.simulate.logged_policy import scan_tasks
from apportion.logs.simulate.workload import Scan

MB = 1 << 20


@pytest.mark.parametrize(
    ("files", "file_bytes", "piece", "tasks"),
    [
        (1, 100 * MB, 40 * MB, 3),
        (1, 80 * MB, 40 * MB, 2),
        (10, 4 * MB, 40 * MB, 2),  # A file counts 4 MB more: five of them fill a task.
        (10, 30 * MB, 40 * MB, 10),
        (3, 50 * MB, 40 * MB, 4),  # A task for each whole piece, and one for the three rests.
        (5, 0, 40 * MB, 1),
    ],
)
def test_tasks_of_a_scan_match_the_file_packing_of_spark(
    files: int, file_bytes: int, piece: int, tasks: int
) -> None:
    assert tasks_of_pieces(files, file_bytes, piece, opening=4 * MB) == tasks


@pytest.mark.parametrize(
    ("confs", "scale", "tasks"),
    [
        ({"spark.apportion.dataVolumePerTask": "10MB"}, 1, 11),
        ({"spark.apportion.dataVolumePerTask": "10MB"}, 100, 1000),
        # The difference to Spark's number is small, so Spark decides.
        ({"spark.apportion.dataVolumePerTask": "10MB"}, 1000, 782),
        # Not fewer than Spark makes, unless the maximum is set.
        ({"spark.apportion.dataVolumePerTask": "10MB"}, 10_000, 7813),
        ({"spark.apportion.sources.maxParallelism": "1000"}, 10_000, 1000),
        ({"spark.apportion.enabled": "false"}, 1, 2),
        ({"spark.apportion.sources.enabled": "false"}, 10, 8),
        ({"spark.apportion.sources.parallelism": "6"}, 1, 6),
    ],
)
def test_tasks_of_a_scan_follow_bytes_and_settings(
    confs: dict[str, str], scale: float, tasks: int
) -> None:
    scan = Scan(files=1, bytes=100 * MB, logged=None)
    assert scan_tasks(scan, Confs(confs), slots=2, scale=scale) == tasks
