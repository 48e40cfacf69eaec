"""Comparison of the same jobs in event logs from before and after a change, such as Apportion.

    before = [apportion.logs.report.runs.read("before/app-1")]
    after = [apportion.logs.report.runs.read("after/app-1")]
    comparison = apportion.logs.report.comparison.compare(before, after)
    print([(query.title, query.wall_ratio.value) for query in comparison.queries])

The logs need no Spark to be read.
"""
