"""Assignment of decisions to the fragments of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apportion.eventlog.fragments import Fragment
from apportion.eventlog.model import LoggedDecision, PlanNode, Query

_SCAN_METRIC = "number of output rows"


def place(query: Query, fragments: Sequence[Fragment]) -> Mapping[int, list[LoggedDecision]]:
    """Return the decisions for each fragment, by its place in `fragments`.

    A decision on shuffles belongs to the fragment that reads them. A decision on a scan belongs to
    the fragment with that scan. Both are found by metric ids. In logs without metric ids, they are
    found by the numbers of query stages, or the name of the scan.
    """
    placed: dict[int, list[LoggedDecision]] = {}
    for logged in query.decisions:
        readers = [
            number for number, fragment in enumerate(fragments) if _is_about(logged, fragment)
        ]
        if not readers:
            continue
        # A reused exchange has several readers. Some may have the same operator.
        best = min(
            readers,
            key=lambda number: (
                not _has_operator(fragments[number], logged.decision.operator),
                len(placed.get(number, ())),
            ),
        )
        placed.setdefault(best, []).append(logged)
    return placed


def _is_about(logged: LoggedDecision, fragment: Fragment) -> bool:
    decision = logged.decision
    if decision.stages:
        metrics = [shuffle.exchange_metric for shuffle in logged.shuffles]
        if metrics and None not in metrics:
            return all(fragment.input_of(metric) for metric in metrics)
        return {read.query_stage for read in fragment.inputs}.issuperset(decision.stages)
    return any(is_scan_of(logged, node) for node in fragment.operators())


def is_scan_of(logged: LoggedDecision, node: PlanNode) -> bool:
    """Return whether a decision on a scan belongs to this operator of the plan."""
    if logged.scan_metric is None:
        return node.name.strip() == logged.decision.operator
    return node.metrics.get(_SCAN_METRIC) == logged.scan_metric


def _has_operator(fragment: Fragment, name: str) -> bool:
    return any(node.name.strip() == name for node in fragment.operators())
