"""Decisions for queries that ran without Apportion, from the facts of Spark's own log."""
