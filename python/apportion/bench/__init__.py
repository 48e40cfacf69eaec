"""Benchmarks of queries under several variants of Spark's configuration, alternating.

The modules, in the order of the data flow: `suites` (queries and their tables), `variants`
(configurations to compare), `runner` (runs a query under all variants), `plans` (counts of plan
operators), `results` (all runs, and their file), `ratios` and `summary` (statistics), `report` and
`plot` (output).
"""
