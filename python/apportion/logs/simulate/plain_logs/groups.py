"""Groups of shuffles that the tasks of a stage read with the same ranges: `ExchangeGroup.scala`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from apportion.logs.eventlog import PlanNode, plan_text
from apportion.logs.eventlog.fragments import Fragment
from apportion.logs.simulate.plain_logs.held_rows import Step

_PRODUCT = "CartesianProduct"
_NESTED_LOOP = "BroadcastNestedLoopJoin"
_UNION = "Union"
_SHUFFLE_READS = {"AQEShuffleRead", "CustomShuffleReader"}
# A window, and an aggregate that is not partial, need all rows of a key in one task.
_WINDOW = "Window"
# `CoalesceExec` sets the number of tasks. The others may run only some of them.
_SET_TASKS = {"Coalesce", "CollectLimit", "CollectTail"}
_SKEW = "skew=true"


class UnknownReadsError(Exception):
    """The tasks of a stage depend on more than the bytes of its shuffles."""


@dataclasses.dataclass(frozen=True)
class ReadGroup:
    """Shuffles that are read with the same ranges."""

    shuffles: list[Fragment]
    """The parts of the plan that write them."""
    is_local: bool
    """Whether Spark reads map outputs instead of shuffle partitions."""
    multiplies_rows: bool
    """Whether the tasks run a join that multiplies rows."""
    steps: list[list[Step]]
    """For each shuffle, the operators above it, from the bottom up."""


def read_groups(fragment: Fragment) -> list[ReadGroup]:
    """Return the groups of a part of the plan, in the order of its tasks.

    Raises `UnknownReadsError` if the tasks do not follow from the bytes of groups.
    """
    return _Finder(fragment).groups()


class _Finder:
    def __init__(self, fragment: Fragment) -> None:
        self._root = fragment.root
        operators = list(fragment.operators())
        for node in operators:
            if plan_text.kind(node.name) in _SET_TASKS or _SKEW in node.name:
                raise UnknownReadsError
        starts = _starts(self._root, {id(node) for node in operators})
        # A reused part that the plan does not have is not among the inputs.
        if len(starts) != len(fragment.inputs):
            raise UnknownReadsError
        self._inputs = {
            id(start): read for start, read in zip(starts, fragment.inputs, strict=True)
        }
        # The operator above each one, and the place among the children whose rows it reads.
        self._parents = {
            id(child): (node, place)
            for node in operators
            for place, child in enumerate(self._rows_from(node))
        }

    def groups(self) -> list[ReadGroup]:
        found: list[ReadGroup] = []
        # A plan can be deeper than Python's stack.
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            read = self._inputs.get(id(node))
            if read:
                # The tasks of a cached plan stay.
                found += [self._group([node], node)] if read.kind == "shuffle" else []
                continue
            children = self._rows_from(node)
            kind = plan_text.kind(node.name)
            if kind == _UNION and any(_needs_whole_keys(above) for above in self._path(node)):
                # From Spark 4.1 on, this union keeps the partitions of its children.
                raise UnknownReadsError
            if len(children) < 2 or kind in (_UNION, _PRODUCT):
                waiting.extend(reversed(children))
            elif starts := self._starts_below(children):
                found.append(self._group(starts, node))
        return found

    def _group(self, starts: list[PlanNode], top: PlanNode) -> ReadGroup:
        """Return the group of the inputs below `top`, where their tasks meet."""
        shuffles = [self._inputs[id(start)] for start in starts]
        if any(read.kind != "shuffle" for read in shuffles):
            raise UnknownReadsError
        path = self._path(top)
        is_local = any(
            "local" in node.text for node in path if plan_text.kind(node.name) in _SHUFFLE_READS
        )
        multiplies = any(plan_text.kind(node.name) in (_PRODUCT, _NESTED_LOOP) for node in path)
        return ReadGroup(shuffles, is_local, multiplies, [self._steps(start) for start in starts])

    def _path(self, node: PlanNode) -> list[PlanNode]:
        """Return an operator, and the operators above it."""
        return [node, *(above for above, _ in self._steps(node))]

    def _steps(self, start: PlanNode) -> list[Step]:
        steps = []
        node = start
        while id(node) in self._parents:
            above, place = self._parents[id(node)]
            steps.append((above, place))
            node = above
        return steps

    def _rows_from(self, node: PlanNode) -> list[PlanNode]:
        """Return the children whose partitions the tasks read: no broadcasts and subqueries."""
        return [child for child in node.children if not self._is_read_whole(child)]

    def _is_read_whole(self, node: PlanNode) -> bool:
        """Return whether each task gets all rows of an input, below operators such as adapters."""
        while id(node) not in self._inputs and len(node.children) == 1:
            node = node.children[0]
        read = self._inputs.get(id(node))
        return read is not None and read.kind in ("broadcast", "subquery")

    def _starts_below(self, nodes: Iterable[PlanNode]) -> list[PlanNode]:
        starts: list[PlanNode] = []
        has_others = False
        waiting = list(nodes)
        while waiting:
            node = waiting.pop(0)
            if id(node) in self._inputs:
                starts.append(node)
                continue
            children = self._rows_from(node)
            has_others = has_others or not children
            waiting = [*children, *waiting]
        if has_others and starts:
            # Another source decides the tasks too, such as a scan of a bucketed table.
            raise UnknownReadsError
        return starts


def _starts(root: PlanNode, own: set[int]) -> list[PlanNode]:
    """Return the operators below a part of the plan that begin its inputs, in the order of them."""
    starts: list[PlanNode] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in own:
            waiting.extend(reversed(node.children))
        else:
            starts.append(node)
    return starts


def _needs_whole_keys(node: PlanNode) -> bool:
    # A partial aggregate without functions looks like a final one, and is far more common here.
    is_whole = not plan_text.is_partial(node.text) and "functions=[]" not in node.text
    kind = plan_text.kind(node.name)
    return kind == _WINDOW or (kind in plan_text.AGGREGATES and is_whole)
