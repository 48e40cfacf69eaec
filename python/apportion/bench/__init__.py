"""Times queries under several variants of Spark's configuration, in turns, in one session.

The modules, in the order data takes: `suites` (the queries and their tables, some from `skew`),
`variants` (what is compared), `runner` (one query under all variants), `plans` (counts of its
plans), `results` (all runs, in a file), `ratios` and `summary` (what they say), `report` and `plot`
(how that is shown).
"""
