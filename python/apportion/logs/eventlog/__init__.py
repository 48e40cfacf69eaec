"""Reader for Spark's event logs; `apportion.eventlog` for users."""

from apportion.logs.eventlog.model import (
    Application,
    LoggedDecision,
    LoggedPolicy,
    LoggedShuffle,
    Operator,
    PlanNode,
    Query,
    Stage,
    Unread,
)
from apportion.logs.eventlog.reader import read, read_with

__all__ = [
    "Application",
    "LoggedDecision",
    "LoggedPolicy",
    "LoggedShuffle",
    "Operator",
    "PlanNode",
    "Query",
    "Stage",
    "Unread",
    "read",
    "read_with",
]
