"""Draws queries: what was decided for each stage, and why."""
