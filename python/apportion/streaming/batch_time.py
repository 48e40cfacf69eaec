"""Model of the time of a batch over its rows, state partitions and task slots.

    seconds = overhead + waves * (task + row * rows / partitions), waves = ceil(partitions / slots)

The rows spread evenly over the partitions. `slots` partitions are processed at the same time, and
each has a fixed cost to load and commit its state. The three parameters are fitted to the batches
of a log by least squares, and are not negative.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence

# Outliers are left out of a second fit: batches this many times farther off than the median.
_OUTLIER = 5.0


@dataclasses.dataclass(frozen=True)
class Sample:
    """Measured batch."""

    rows: int
    partitions: int
    slots: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class BatchTimes:
    """Fitted parameters in seconds, and how well they describe the log."""

    overhead: float
    """Time of a batch without its tasks."""
    task: float
    """Time of a task without rows."""
    row: float
    """Time of a row in a task."""
    samples: int
    median_error: float
    """Median of |predicted - measured| / measured over the batches of the log."""
    worst_error: float
    knows_tasks: bool
    """Whether the log has batches with different numbers of waves. Otherwise `task` is 0."""

    def seconds(self, rows: float, partitions: int, slots: int) -> float:
        """Return the predicted time of a batch."""
        waves = math.ceil(partitions / slots)
        return self.overhead + waves * (self.task + self.row * rows / partitions)


def fit(samples: Sequence[Sample]) -> BatchTimes:
    """Fit the model to measured batches. There must be at least one."""
    knows_tasks = len({_waves(sample) for sample in samples}) > 1
    fitted = _least_squares(samples, knows_tasks)
    errors = [_error(fitted, sample) for sample in samples]
    most = _OUTLIER * statistics.median(errors)
    kept = [sample for sample, error in zip(samples, errors, strict=True) if error <= most]
    if not knows_tasks or len({_waves(sample) for sample in kept}) > 1:
        fitted = _least_squares(kept or samples, knows_tasks)
    shares = [_error(fitted, sample) / max(sample.seconds, 1e-3) for sample in samples]
    return BatchTimes(*fitted, len(samples), statistics.median(shares), max(shares), knows_tasks)


def _waves(sample: Sample) -> int:
    return math.ceil(sample.partitions / sample.slots)


def _features(sample: Sample) -> tuple[float, float, float]:
    waves = _waves(sample)
    return 1.0, float(waves), waves * sample.rows / sample.partitions


def _error(fitted: Sequence[float], sample: Sample) -> float:
    predicted = sum(a * b for a, b in zip(fitted, _features(sample), strict=True))
    return abs(predicted - sample.seconds)


def _least_squares(samples: Sequence[Sample], knows_tasks: bool) -> tuple[float, float, float]:
    """Return the best parameters that are not negative.

    With three parameters, each choice of parameters above 0 can be tried.
    """
    free = (0, 1, 2) if knows_tasks else (0, 2)
    best, least = (0.0, 0.0, 0.0), math.inf
    for size in range(len(free) + 1):
        for places in itertools.combinations(free, size):
            solved = _solve(samples, places)
            if solved is None or min(solved) < 0:
                continue
            squares = sum(_error(solved, sample) ** 2 for sample in samples)
            if squares < least * (1 - 1e-9):
                best, least = solved, squares
    return best


def _solve(samples: Sequence[Sample], places: tuple[int, ...]) -> tuple[float, float, float] | None:
    """Return the least-squares parameters at `places`, 0 elsewhere; None if they are undefined."""
    rows = [_features(sample) for sample in samples]
    # Equal magnitudes keep the sums exact enough.
    scales = [max(row[place] for row in rows) or 1.0 for place in places]
    matrix = [
        [sum(row[i] / a * row[j] / b for row in rows) for j, b in zip(places, scales, strict=True)]
        + [sum(row[i] / a * s.seconds for row, s in zip(rows, samples, strict=True))]
        for i, a in zip(places, scales, strict=True)
    ]
    for i in range(len(places)):
        pivot = max(range(i, len(places)), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) < 1e-9 * len(rows):
            return None
        matrix[i] = [value / matrix[i][i] for value in matrix[i]]
        for k in range(len(places)):
            if k != i:
                factor = matrix[k][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i], strict=True)]
    solved = [0.0, 0.0, 0.0]
    for line, place, scale in zip(matrix, places, scales, strict=True):
        solved[place] = line[-1] / scale
    return solved[0], solved[1], solved[2]
