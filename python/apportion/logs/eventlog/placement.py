"""Assignment of decisions to the fragments of a plan."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from apportion.logs.eventlog import plan_text
from apportion.logs.eventlog.fragments import Fragment
from apportion.logs.eventlog.model import LoggedDecision, PlanNode, Query

_SCAN_METRIC = "number of output rows"


@dataclasses.dataclass(frozen=True)
class Placement:
    """The decisions of a query, each at one place."""

    placed: dict[int, list[LoggedDecision]]
    """Decisions for each fragment, by the place of the fragment in the plan."""
    elsewhere: list[LoggedDecision]
    """Decisions for parts that the last plan does not have. Spark plans again while a query runs,
    and it reads an equal exchange instead of a part that was already decided."""


def placement(query: Query, fragments: Sequence[Fragment]) -> Placement:
    """Return the place of each decision.

    A decision on shuffles belongs to the fragment that reads them. A decision on a scan belongs to
    the fragment with that scan. Both are found by metric ids. In logs without metric ids, they are
    found by the numbers of query stages, or the name of the scan.
    """
    free = [_Free(fragment) for fragment in fragments]
    chosen: dict[int, int] = {}
    # Equal shuffles differ only in the numbers of their query stages, so matches of these numbers
    # come first. Of several decisions for the same shuffles or scan, the last one ran.
    for is_exact in (True, False):
        for number in reversed(range(len(query.decisions))):
            logged = query.decisions[number]
            if number in chosen:
                continue
            places = [place for place in range(len(free)) if free[place].has(logged, is_exact)]
            if places:
                # Some readers of a reused exchange may have the same operator.
                operator = logged.decision.operator
                chosen[number] = max(
                    places, key=lambda place: (_has_operator(fragments[place], operator), place)
                )
                free[chosen[number]].take(logged)
    placed: dict[int, list[LoggedDecision]] = {}
    for number in sorted(chosen):
        placed.setdefault(chosen[number], []).append(query.decisions[number])
    elsewhere = [logged for number, logged in enumerate(query.decisions) if number not in chosen]
    return Placement(placed, elsewhere)


class _Free:
    """The shuffles and scans of a fragment that no decision has taken yet."""

    def __init__(self, fragment: Fragment) -> None:
        self._exchanges = Counter(read.identity for read in fragment.inputs)
        self._stages = set(fragment.query_stages)
        self._scans = list(fragment.leaves())

    def has(self, logged: LoggedDecision, is_exact: bool) -> bool:
        """Return whether all shuffles of a decision are free, or its scan.

        Exact means that the numbers of the query stages match too.
        """
        if not logged.decision.stages:
            return self._scan(logged) is not None
        metrics = _metrics(logged)
        if (is_exact or not metrics) and not self._stages.issuperset(logged.decision.stages):
            return False
        return metrics <= self._exchanges

    def take(self, logged: LoggedDecision) -> None:
        """Remove the shuffles or the scan of a decision."""
        if (scan := self._scan(logged)) is not None:
            self._scans.remove(scan)
        self._exchanges -= _metrics(logged)
        self._stages.difference_update(logged.decision.stages)

    def _scan(self, logged: LoggedDecision) -> PlanNode | None:
        if logged.decision.stages:
            return None
        return next((node for node in reversed(self._scans) if is_scan_of(logged, node)), None)


def _metrics(logged: LoggedDecision) -> Counter[int | None]:
    """Return how often a decision reads each exchange; empty in logs without metric ids."""
    metrics = [shuffle.exchange_metric for shuffle in logged.shuffles]
    return Counter() if None in metrics else Counter(metrics)


def is_scan_of(logged: LoggedDecision, node: PlanNode) -> bool:
    """Return whether a decision on a scan belongs to this operator of the plan."""
    if logged.scan_metric is None:
        return node.name.strip() == logged.decision.operator
    return node.metrics.get(_SCAN_METRIC) == logged.scan_metric


def _has_operator(fragment: Fragment, name: str) -> bool:
    return any(plan_text.kind(node.name) == name for node in fragment.operators())
