"""The fragments of a physical plan: what runs in one stage, down to the exchanges it reads."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator

from apportion.eventlog import PlanNode

_QUERY_STAGES = {
    "ShuffleQueryStage": "shuffle",
    "BroadcastQueryStage": "broadcast",
    "TableCacheQueryStage": "cache",
}
_EXCHANGES = {"Exchange": "shuffle", "BroadcastExchange": "broadcast"}
_SUBQUERIES = {"Subquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast"}
_REUSED = {"ReusedExchange", "ReusedSubquery"}
_PLAN_ID = re.compile(r"\[(?:plan_id=|id=#)(\d+)\]")
# The only metrics of an exchange that the tasks update which write it.
_WRITTEN = {"data size", "shuffle bytes written", "shuffle records written", "shuffle write time"}


@dataclasses.dataclass
class Fragment:
    """A part of the plan whose operators run in the same tasks."""

    name: str
    """`result`, or what the plan calls it, such as `stage 3`, or `subquery 1 stage 3`."""
    kind: str
    """shuffle, broadcast, cache, subquery or result: what becomes of its rows."""
    root: PlanNode
    """The operator that puts out its rows: an exchange, unless it is the result."""
    query_stage: int | None = None
    """Spark's number for it in adaptive plans."""
    inputs: list[Fragment] = dataclasses.field(default_factory=list)
    """What it reads, in the order of the plan; a fragment that is reused is read by several."""

    def operators(self) -> Iterator[PlanNode]:
        """Yield the operators of this fragment from the top, not those of its inputs."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            if node is self.root or not _begins_fragment(node):
                waiting.extend(reversed([c for c in node.children if not _begins_fragment(c)]))

    def accumulators(self) -> set[int]:
        """Return the ids of the metrics that its tasks update."""
        return {
            accumulator
            for node in self.operators()
            for name, accumulator in node.metrics.items()
            if node.name not in _EXCHANGES or name in _WRITTEN
        }


def fragments(plan: PlanNode) -> list[Fragment]:
    """Return the fragments of a plan, each after those that it reads; the last is the result."""
    return _Cutter().cut(plan)


class _Cutter:
    def __init__(self) -> None:
        self.found: list[Fragment] = []
        self._by_plan_id: dict[str, Fragment] = {}
        self._numbers = itertools.count(1)
        self._reused: list[tuple[Fragment, int, str]] = []
        self._subquery = ""

    def cut(self, plan: PlanNode) -> list[Fragment]:
        self._fragment(plan, "result", "result", None)
        for reader, place, plan_id in reversed(self._reused):
            if original := self._by_plan_id.get(plan_id):
                reader.inputs.insert(place, original)
        return self.found

    def _fragment(self, root: PlanNode, name: str, kind: str, query_stage: int | None) -> Fragment:
        fragment = Fragment(name, kind, root, query_stage)
        if match := _PLAN_ID.search(root.text):
            self._by_plan_id[match[1]] = fragment
        waiting = list(reversed(root.children))
        while waiting:
            node = waiting.pop()
            if node.name in _REUSED:
                if match := _PLAN_ID.search(node.text):
                    self._reused.append((fragment, len(fragment.inputs), match[1]))
            elif _begins_fragment(node):
                if below := self._input(node):
                    fragment.inputs.append(below)
            else:
                waiting.extend(reversed(node.children))
        self.found.append(fragment)
        return fragment

    def _input(self, node: PlanNode) -> Fragment | None:
        if (kind := _QUERY_STAGES.get(node.name)) and node.children:
            number = int(match[0]) if (match := re.search(r"\d+", node.text)) else None
            below = node.children[0]
            if below.name == "ReusedExchange":
                match = _PLAN_ID.search(below.text)
                return self._by_plan_id.get(match[1]) if match else None
            # A subquery has a plan of its own, whose stages are numbered from 0 as well.
            return self._fragment(below, f"{self._subquery}stage {number}", kind, number)
        kind = _EXCHANGES.get(node.name, "subquery")
        name = f"{kind} {next(self._numbers)}"
        around = self._subquery
        if kind == "subquery":
            self._subquery = f"{name} "
        fragment = self._fragment(node, name, kind, None)
        self._subquery = around
        return fragment


def _begins_fragment(node: PlanNode) -> bool:
    return (
        node.name in _QUERY_STAGES
        or node.name in _EXCHANGES
        or node.name in _SUBQUERIES
        or node.name in _REUSED
    )
