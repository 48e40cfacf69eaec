"""Reader for Spark's event logs: applications, queries, stages and decisions. It needs no Spark.

    application = apportion.eventlog.read("logs/local-1700000000000.zstd")
    for query in application.queries.values():
        print(query.description, [decision.reason for decision in query.decisions])

A log is untrusted input: it can be truncated, malformed or huge. Unreadable parts are left out and
listed in `Application.skipped`.
"""

from apportion.logs.eventlog import *  # noqa: F403
