"""Fragments of a physical plan: the operators of one stage, between exchanges."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from apportion.logs.eventlog import PlanNode, plan_text

_QUERY_STAGES = {
    "ShuffleQueryStage": "shuffle",
    "BroadcastQueryStage": "broadcast",
    "TableCacheQueryStage": "cache",
}
# Photon writes a shuffle with this operator, and reads it with a separate operator.
_PHOTON_EXCHANGE = "PhotonShuffleExchangeSink"
# Operators between a query stage and its exchange.
_WRAPPERS = {"PhotonShuffleMapStage"}
_SUBQUERIES = {"Subquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast", "GpuSubqueryBroadcast"}
_REUSED = {"ReusedExchange", "ReusedSubquery"}
_SUBQUERIES_OF_LEAVES = {*_SUBQUERIES, "ReusedSubquery"}
# A metric of each exchange and subquery. A reused exchange has the same metric id as the original.
# Spark 2.4 writes the second name for broadcasts.
_IDENTITIES = ("data size", "data size (bytes)")
# The metrics of an exchange that its writers update. Its readers update the other metrics.
_WRITTEN = {
    "data size", "partition data size", "shuffle bytes written", "shuffle records written",
    "shuffle write time",
}  # fmt: skip


@dataclasses.dataclass
class Fragment:
    """A part of the plan whose operators run in the same tasks."""

    name: str
    """`result`, or the name in the plan, such as `query stage 3` or `subquery 1 query stage 3`."""
    kind: str
    """Destination of its rows: shuffle, broadcast, cache, subquery or result."""
    root: PlanNode
    """The operator that outputs its rows: an exchange, except for the result."""
    query_stage: int | None = None
    """Spark's number of the query stage in adaptive plans."""
    inputs: list[Fragment] = dataclasses.field(default_factory=list)
    """Fragments that it reads, in the order of the plan. A reused fragment has several readers."""
    query_stages: set[int] = dataclasses.field(default_factory=set)
    """Spark's numbers of the query stages that it reads. A reused fragment has a number for each
    reader."""

    @property
    def identity(self) -> int | None:
        """Id of the metric that identifies its exchange or subquery; None without the metric."""
        return _identity(self.root)

    def operators(self) -> Iterator[PlanNode]:
        """Yield the operators of this fragment from the top, without its inputs."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            if node is self.root or not _begins_fragment(node):
                waiting.extend(reversed([c for c in node.children if not _begins_fragment(c)]))

    def leaves(self) -> Iterator[PlanNode]:
        """Yield the operators that read no rows of others, such as scans.

        Spark's events have subqueries as children, such as those that choose the partitions of a
        scan.
        """
        for node in self.operators():
            if all(child.name in _SUBQUERIES_OF_LEAVES for child in node.children):
                yield node

    def input_of(self, exchange_metric: int | None) -> Fragment | None:
        """Return the input that writes the exchange with this metric id; None without a match."""
        if exchange_metric is None:
            return None
        writers = (read for read in self.inputs if read.identity == exchange_metric)
        return next(writers, None)

    def accumulators(self) -> set[int]:
        """Return the ids of the metrics that the tasks of this fragment update."""
        return {
            accumulator
            for node in self.operators()
            for name, accumulator in node.metrics.items()
            if not exchange_kind(node.name) or node.name == _PHOTON_EXCHANGE or name in _WRITTEN
        }

    def read_accumulators(self) -> set[int]:
        """Return the ids of the metrics of its inputs that the tasks of this fragment update."""
        return {
            accumulator
            for read in self.inputs
            for name, accumulator in read.root.metrics.items()
            if exchange_kind(read.root.name) == "shuffle" and name not in _WRITTEN
        }


def fragments(plan: PlanNode) -> list[Fragment]:
    """Return the fragments of a plan, each after its inputs. The last fragment is the result."""
    return _sorted(_Cutter().cut(plan))


def exchange_kind(name: str) -> str | None:
    """Return `shuffle` or `broadcast` for an exchange; None for other operators.

    Accelerators have exchanges of their own, such as `GpuColumnarExchange`.
    """
    if name in _REUSED or not (name.endswith("Exchange") or name == _PHOTON_EXCHANGE):
        return None
    return "broadcast" if "Broadcast" in name else "shuffle"


def _sorted(result: Fragment) -> list[Fragment]:
    """Return the fragments that a result needs, each after its inputs.

    A reused fragment can come after its reader in the plan. A malformed log can have a fragment
    that reads itself; its input is removed.
    """
    done: dict[int, Fragment] = {}
    open_ids = {id(result)}
    waiting = [(result, iter(list(result.inputs)))]
    while waiting:
        fragment, inputs = waiting[-1]
        below = next(inputs, None)
        if below is None:
            waiting.pop()
            open_ids.discard(id(fragment))
            done[id(fragment)] = fragment
        elif id(below) in open_ids:
            fragment.inputs = [read for read in fragment.inputs if read is not below]
        elif id(below) not in done:
            open_ids.add(id(below))
            waiting.append((below, iter(list(below.inputs))))
    return list(done.values())


class _Cutter:
    """Cuts a plan from the top. There is no recursion, which could fill the stack."""

    def __init__(self) -> None:
        self._by_metric: dict[int, Fragment] = {}
        self._numbers = itertools.count(1)
        self._reused: list[tuple[Fragment, Fragment, PlanNode]] = []
        self._names: set[str] = set()
        # Operators that are not visited yet, the next one last, each with the fragment above it and
        # the start of the names of query stages in its subquery.
        self._waiting: list[tuple[PlanNode, Fragment, str]] = []

    def cut(self, plan: PlanNode) -> Fragment:
        result = self._fragment(plan, "result", "result", None, "")
        self._visit()
        # The original of a reused exchange can follow in the plan, so it is looked up at the end.
        while self._reused:
            reader, reference, node = self._reused.pop(0)
            place = next(i for i, read in enumerate(reader.inputs) if read is reference)
            original = self._original(node)
            reader.inputs[place : place + 1] = [original] if original else []
        return result

    def _fragment(
        self, root: PlanNode, name: str, kind: str, query_stage: int | None, subquery: str
    ) -> Fragment:
        fragment = Fragment(name, kind, root, query_stage)
        if fragment.identity is not None:
            self._by_metric[fragment.identity] = fragment
        self._waiting += [(child, fragment, subquery) for child in reversed(root.children)]
        return fragment

    def _visit(self) -> None:
        """Add the inputs of all fragments, in the order of the plan."""
        while self._waiting:
            node, fragment, subquery = self._waiting.pop()
            number = _query_stage(node)
            if number is not None:
                fragment.query_stages.add(number)
            if (reused := _reused_in(node)) is not None:
                reference = Fragment("", "", reused, number)
                fragment.inputs.append(reference)
                self._reused.append((fragment, reference, node))
            elif _begins_fragment(node):
                fragment.inputs.append(self._input(node, subquery))
            else:
                self._waiting += [(child, fragment, subquery) for child in reversed(node.children)]

    def _original(self, node: PlanNode) -> Fragment | None:
        """Return the fragment of a reused exchange; None if the plan does not have it.

        Spark's events have the original below the node. It is nowhere else in the plan if Spark
        planned its first reader again.
        """
        reused = _reused_in(node)
        below = reused.children[0] if reused and reused.children else None
        metric = _identity(below) if below else None
        if below is None or metric is None:
            return None
        if metric not in self._by_metric:
            inner = PlanNode(node.name, node.text, node.metrics, [below])
            original = self._input(inner if node is not reused else below, "")
            self._visit()
            self._by_metric[metric] = original
        return self._by_metric[metric]

    def _input(self, node: PlanNode, subquery: str) -> Fragment:
        kind = _QUERY_STAGES.get(node.name)
        root = node.children[0] if kind and node.children else node
        while root.name in _WRAPPERS and root.children:
            root = root.children[0]
        metric = _identity(root)
        if metric is not None and metric in self._by_metric:
            # A cached plan appears at each scan of its rows.
            return self._by_metric[metric]
        number = _query_stage(node)
        if kind and number is not None:
            # The stages of a subquery are numbered from 0 too, because it has a separate plan.
            name = self._unused(f"{subquery}query stage {number}")
            return self._fragment(root, name, kind, number, subquery)
        kind = kind or exchange_kind(node.name) or "subquery"
        name = self._unused(f"{kind} {next(self._numbers)}")
        below = f"{name} " if kind == "subquery" else subquery
        return self._fragment(root, name, kind, None, below)

    def _unused(self, name: str) -> str:
        """Return the name, with a number if it is taken: a cached plan also counts from stage 0."""
        for copy in itertools.count(1):
            unused = name if copy == 1 else f"{name} ({copy})"
            if unused not in self._names:
                break
        self._names.add(unused)
        return unused


def _query_stage(node: PlanNode) -> int | None:
    """Return the number of a query stage. Databricks writes statistics after the number."""
    if node.name not in _QUERY_STAGES:
        return None
    return plan_text.query_stage(node.text.partition(",")[0])


def _identity(node: PlanNode) -> int | None:
    """Return the id of the metric that identifies an exchange or subquery."""
    return next((node.metrics[name] for name in _IDENTITIES if name in node.metrics), None)


def _reused_in(node: PlanNode) -> PlanNode | None:
    """Return the reused exchange or subquery that a node is, or that its query stage contains."""
    if node.name in _REUSED:
        return node
    below = node.children[:1] if node.name in _QUERY_STAGES else []
    return next((child for child in below if child.name in _REUSED), None)


def _begins_fragment(node: PlanNode) -> bool:
    return (
        node.name in _QUERY_STAGES
        or exchange_kind(node.name) is not None
        or node.name in _SUBQUERIES
        or node.name in _REUSED
    )
