"""Plans as text: an operator a line, its inputs below it and further in."""

from __future__ import annotations

import itertools

from apportion.logs.eventlog import PlanNode


def plan(text: str) -> PlanNode:
    """Return the plan that is drawn.

    The name of an operator ends before a `:`; what follows is its text. Every operator has a
    metric `time`, and exchanges have those that their writers and readers update, numbered from
    the top: 1, 2, 3.
    """
    ids = itertools.count(1)
    lines = [line for line in text.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    path: list[tuple[int, PlanNode]] = []
    root = None
    for line in lines:
        indent = len(line) - len(line.lstrip()) - margin
        name, _, rest = line.strip().partition(": ")
        names = ["data size", "records read"] if name.endswith("Exchange") else ["time"]
        node = PlanNode(name, f"{name} {rest}".strip(), {each: next(ids) for each in names}, [])
        while path and path[-1][0] >= indent:
            path.pop()
        if path:
            path[-1][1].children.append(node)
        else:
            root = node
        path.append((indent, node))
    assert root
    _share_metrics_of_reused(root)
    return root


def _share_metrics_of_reused(root: PlanNode) -> None:
    """Give each `ReusedExchange: [id]` the exchange with this text as a child, as Spark does."""
    nodes = list(root.walk())
    originals = {_label(node): node for node in nodes if not node.name.startswith("Reused")}
    for node in nodes:
        if node.name.startswith("Reused") and _label(node) in originals:
            original = originals[_label(node)]
            node.children.append(PlanNode(original.name, original.text, original.metrics, []))


def _label(node: PlanNode) -> str:
    return node.text.removeprefix(node.name).strip()
