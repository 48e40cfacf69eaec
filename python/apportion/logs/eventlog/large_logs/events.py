"""Fast decoders for the events that make up most of a log. They skip all other fields.

A decoder gives the same fields as a general parser, because each value can have any type. Only the
nesting of the objects is fixed. The reader uses the general parser for other nestings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import msgspec

Event = Mapping[str, Any]

_SQL = b"org.apache.spark.sql.execution.ui."


def _object(names: Sequence[str], nested: Mapping[str, Any] | None = None) -> Any:
    """Return the type of a JSON object that may have these fields."""
    # mypy supports only dictionaries that are written out.
    make: Any = TypedDict
    return make("_Object", {**dict.fromkeys(names, Any), **(nested or {})}, total=False)


class _Accumulable(TypedDict, total=False):
    ID: Any
    Value: Any


class _Metric(TypedDict, total=False):
    name: Any
    accumulatorId: Any


class _Node(TypedDict, total=False):
    nodeName: Any
    simpleString: Any
    metrics: list[_Metric]
    children: list[_Node]


_METRICS = {
    "Input Metrics": _object(["Bytes Read"]) | None,
    "Output Metrics": _object(["Bytes Written"]) | None,
    "Shuffle Read Metrics": _object(["Remote Bytes Read", "Local Bytes Read", "Fetch Wait Time"])
    | None,
    "Shuffle Write Metrics": _object(["Shuffle Bytes Written"]) | None,
}
_TASK_METRICS = _object(
    ["Executor Run Time", "Peak Execution Memory", "Disk Bytes Spilled", "JVM GC Time"], _METRICS
)
_TASK_INFO = _object(["Launch Time", "Finish Time", "Failed", "Killed", "Executor ID"])
_TASK_END = _object(
    ["Stage ID", "Stage Attempt ID"],
    {
        "Task End Reason": _object(["Reason", "Class Name", "Loss Reason"]) | None,
        "Task Info": _TASK_INFO,
        "Task Metrics": _TASK_METRICS | None,
    },
)
_STAGE_INFO = _object(
    [
        "Stage ID", "Stage Attempt ID", "Stage Name", "Parent IDs", "Number of Tasks",
        "Resource Profile Id", "Submission Time", "Completion Time", "Failure Reason",
    ],
    {"Accumulables": list[_Accumulable]},
)  # fmt: skip
_STAGE = _object([], {"Stage Info": _STAGE_INFO})
_JOB_START = _object(["Stage IDs"], {"Properties": _object(["spark.sql.execution.id"]) | None})
_PLAN = _object(["executionId", "description", "time", "modifiedConfigs"], {"sparkPlanInfo": _Node})
_FIELDS: dict[bytes, Any] = {
    b"SparkListenerTaskEnd": _TASK_END,
    b"SparkListenerStageSubmitted": _STAGE,
    b"SparkListenerStageCompleted": _STAGE,
    b"SparkListenerJobStart": _JOB_START,
    _SQL + b"SparkListenerSQLExecutionStart": _PLAN,
    _SQL + b"SparkListenerSQLAdaptiveExecutionUpdate": _PLAN,
}
_DECODERS: dict[bytes, Callable[[bytes], Event]] = {
    name: msgspec.json.Decoder(fields).decode for name, fields in _FIELDS.items()
}


def decode(name: bytes, line: bytes) -> Event | None:
    """Return the fields of an event that the reader uses.

    Return None for events without a fast decoder, and for events that are malformed or have another
    nesting. The line must not be nested deeply.
    """
    decoder = _DECODERS.get(name)
    try:
        return decoder(line) if decoder else None
    except (ValueError, RecursionError):
        return None
