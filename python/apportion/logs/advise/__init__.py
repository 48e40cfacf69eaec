"""Advice from event logs: stages that waste time, and how to fix them. The logs need no Apportion.

    advice = apportion.logs.advise.advice.read("logs/app-1")
    for query in advice.queries:
        print(query.title, [finding.text for finding in query.findings])

Gains have bounds. A gain is never more than the time of the stage.
"""
