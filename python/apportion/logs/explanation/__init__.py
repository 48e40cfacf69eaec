"""Explanations of queries: the decision for each stage, and its reason."""
