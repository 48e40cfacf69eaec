"""Fragments of a physical plan: the operators of one stage, between exchanges."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from apportion.eventlog import PlanNode, plan_text

_QUERY_STAGES = {
    "ShuffleQueryStage": "shuffle",
    "BroadcastQueryStage": "broadcast",
    "TableCacheQueryStage": "cache",
}
_EXCHANGES = {"Exchange": "shuffle", "BroadcastExchange": "broadcast"}
_SUBQUERIES = {"Subquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast"}
_REUSED = {"ReusedExchange", "ReusedSubquery"}
# A metric of each exchange and subquery. A reused exchange has the same metric id as the original.
_IDENTITY = "data size"
# The metrics of an exchange that its writers update. Its readers update the other metrics.
_WRITTEN = {"data size", "shuffle bytes written", "shuffle records written", "shuffle write time"}


@dataclasses.dataclass
class Fragment:
    """A part of the plan whose operators run in the same tasks."""

    name: str
    """`result`, or the name in the plan, such as `stage 3` or `subquery 1 stage 3`."""
    kind: str
    """Destination of its rows: shuffle, broadcast, cache, subquery or result."""
    root: PlanNode
    """The operator that outputs its rows: an exchange, except for the result."""
    query_stage: int | None = None
    """Spark's number of the query stage in adaptive plans."""
    inputs: list[Fragment] = dataclasses.field(default_factory=list)
    """Fragments that it reads, in the order of the plan. A reused fragment has several readers."""

    def operators(self) -> Iterator[PlanNode]:
        """Yield the operators of this fragment from the top, without its inputs."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            if node is self.root or not _begins_fragment(node):
                waiting.extend(reversed([c for c in node.children if not _begins_fragment(c)]))

    def input_of(self, exchange_metric: int | None) -> Fragment | None:
        """Return the input that writes the exchange with this metric id; None without a match."""
        if exchange_metric is None:
            return None
        writers = (
            read for read in self.inputs if read.root.metrics.get(_IDENTITY) == exchange_metric
        )
        return next(writers, None)

    def accumulators(self) -> set[int]:
        """Return the ids of the metrics that the tasks of this fragment update."""
        return {
            accumulator
            for node in self.operators()
            for name, accumulator in node.metrics.items()
            if node.name not in _EXCHANGES or name in _WRITTEN
        }


def fragments(plan: PlanNode) -> list[Fragment]:
    """Return the fragments of a plan, each after its inputs. The last fragment is the result."""
    return _Cutter().cut(plan)


class _Cutter:
    def __init__(self) -> None:
        self._fragments: list[Fragment] = []
        self._by_metric: dict[int, Fragment] = {}
        self._numbers = itertools.count(1)
        self._reused: list[tuple[Fragment, int, int]] = []
        self._subquery = ""

    def cut(self, plan: PlanNode) -> list[Fragment]:
        self._fragment(plan, "result", "result", None)
        for reader, place, metric in reversed(self._reused):
            if original := self._by_metric.get(metric):
                reader.inputs.insert(place, original)
        return self._fragments

    def _fragment(self, root: PlanNode, name: str, kind: str, query_stage: int | None) -> Fragment:
        fragment = Fragment(name, kind, root, query_stage)
        if _IDENTITY in root.metrics:
            self._by_metric[root.metrics[_IDENTITY]] = fragment
        waiting = list(reversed(root.children))
        while waiting:
            node = waiting.pop()
            if node.name in _REUSED:
                if (metric := _reused_metric(node)) is not None:
                    self._reused.append((fragment, len(fragment.inputs), metric))
            elif _begins_fragment(node):
                if below := self._input(node):
                    fragment.inputs.append(below)
            else:
                waiting.extend(reversed(node.children))
        self._fragments.append(fragment)
        return fragment

    def _input(self, node: PlanNode) -> Fragment | None:
        if (kind := _QUERY_STAGES.get(node.name)) and node.children:
            number = plan_text.query_stage(node.text)
            below = node.children[0]
            if below.name == "ReusedExchange":
                metric = _reused_metric(below)
                return None if metric is None else self._by_metric.get(metric)
            # The stages of a subquery are numbered from 0 too, because it has a separate plan.
            return self._fragment(below, f"{self._subquery}stage {number}", kind, number)
        kind = _EXCHANGES.get(node.name, "subquery")
        name = f"{kind} {next(self._numbers)}"
        outer = self._subquery
        if kind == "subquery":
            self._subquery = f"{name} "
        fragment = self._fragment(node, name, kind, None)
        self._subquery = outer
        return fragment


def _reused_metric(node: PlanNode) -> int | None:
    """Return the metric of a reused exchange, which Spark's events have below the node."""
    return node.children[0].metrics.get(_IDENTITY) if node.children else None


def _begins_fragment(node: PlanNode) -> bool:
    return (
        node.name in _QUERY_STAGES
        or node.name in _EXCHANGES
        or node.name in _SUBQUERIES
        or node.name in _REUSED
    )
