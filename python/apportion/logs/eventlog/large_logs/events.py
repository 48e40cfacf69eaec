"""Fast decoders for the events that make up most of a log. They skip all other fields.

A decoder gives the same fields as a general parser, because each value can have any type. Only the
nesting of the objects is fixed. An event with another nesting raises `UnexpectedError`, and the
reader then uses the general parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import msgspec

Event = Mapping[str, Any]

_SQL = b"org.apache.spark.sql.execution.ui."


class UnexpectedError(Exception):
    """An event that a fast decoder does not support."""


_TaskInfo = TypedDict(
    "_TaskInfo",
    {
        "Launch Time": Any,
        "Finish Time": Any,
        "Failed": Any,
        "Killed": Any,
        "Executor ID": Any,
    },
    total=False,
)
_Reason = TypedDict("_Reason", {"Reason": Any, "Class Name": Any, "Loss Reason": Any}, total=False)
_Input = TypedDict("_Input", {"Bytes Read": Any}, total=False)
_ShuffleRead = TypedDict(
    "_ShuffleRead",
    {"Remote Bytes Read": Any, "Local Bytes Read": Any, "Fetch Wait Time": Any},
    total=False,
)
_ShuffleWrite = TypedDict("_ShuffleWrite", {"Shuffle Bytes Written": Any}, total=False)
_Output = TypedDict("_Output", {"Bytes Written": Any}, total=False)
_TaskMetrics = TypedDict(
    "_TaskMetrics",
    {
        "Executor Run Time": Any,
        "Peak Execution Memory": Any,
        "Disk Bytes Spilled": Any,
        "JVM GC Time": Any,
        "Input Metrics": _Input | None,
        "Output Metrics": _Output | None,
        "Shuffle Read Metrics": _ShuffleRead | None,
        "Shuffle Write Metrics": _ShuffleWrite | None,
    },
    total=False,
)
_TaskEnd = TypedDict(
    "_TaskEnd",
    {
        "Stage ID": Any,
        "Stage Attempt ID": Any,
        "Task End Reason": _Reason | None,
        "Task Info": _TaskInfo,
        "Task Metrics": _TaskMetrics | None,
    },
    total=False,
)


class _Accumulable(TypedDict, total=False):
    ID: Any
    Value: Any


_StageInfo = TypedDict(
    "_StageInfo",
    {
        "Stage ID": Any,
        "Stage Attempt ID": Any,
        "Stage Name": Any,
        "Parent IDs": Any,
        "Number of Tasks": Any,
        "Resource Profile Id": Any,
        "Submission Time": Any,
        "Completion Time": Any,
        "Failure Reason": Any,
        "Accumulables": list[_Accumulable],
    },
    total=False,
)
_Stage = TypedDict("_Stage", {"Stage Info": _StageInfo}, total=False)
_Properties = TypedDict("_Properties", {"spark.sql.execution.id": Any}, total=False)
_JobStart = TypedDict(
    "_JobStart", {"Stage IDs": Any, "Properties": _Properties | None}, total=False
)


class _Metric(TypedDict, total=False):
    name: Any
    accumulatorId: Any


class _Node(TypedDict, total=False):
    nodeName: Any
    simpleString: Any
    metrics: list[_Metric]
    children: list[_Node]


class _Plan(TypedDict, total=False):
    executionId: Any
    description: Any
    time: Any
    modifiedConfigs: Any
    sparkPlanInfo: _Node


_FIELDS: dict[bytes, Any] = {
    b"SparkListenerTaskEnd": _TaskEnd,
    b"SparkListenerStageSubmitted": _Stage,
    b"SparkListenerStageCompleted": _Stage,
    b"SparkListenerJobStart": _JobStart,
    _SQL + b"SparkListenerSQLExecutionStart": _Plan,
    _SQL + b"SparkListenerSQLAdaptiveExecutionUpdate": _Plan,
}
_DECODERS: dict[bytes, Callable[[bytes], Event]] = {
    name: msgspec.json.Decoder(fields).decode for name, fields in _FIELDS.items()
}


def decode(name: bytes, line: bytes) -> Event:
    """Return the fields of an event that the reader uses.

    Raises `UnexpectedError` for events without a fast decoder, and for events that are malformed or
    have another nesting. The line must not be nested deeply.
    """
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise UnexpectedError
    try:
        return decoder(line)
    except (ValueError, RecursionError):
        raise UnexpectedError from None
