"""Spark's event logs, read without Spark: applications, their queries, stages and decisions.

    application = apportion.eventlog.read("logs/local-1700000000000.zstd")
    for query in application.queries.values():
        print(query.description, [decision.reason for decision in query.decisions])

A log is untrusted input: it may be cut off, malformed or huge. What cannot be read is left out,
and `Application.skipped` says so.
"""

from apportion.eventlog.model import Application, LoggedDecision, Operator, PlanNode, Query, Stage
from apportion.eventlog.reader import read

__all__ = ["Application", "LoggedDecision", "Operator", "PlanNode", "Query", "Stage", "read"]
