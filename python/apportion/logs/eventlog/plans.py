"""Plans and their operators in events."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from apportion.decision import InvalidRecordError
from apportion.logs.eventlog.input import values
from apportion.logs.eventlog.model import Operator, PlanNode

# Levels of operators in a plan. Operators below them are left out.
_DEEPEST_PLAN = 4_000
# Names of metrics that are kept, and their characters.
_NAMES, _LONGEST_NAME = 1000, 100


def plan(info: Mapping[str, Any]) -> PlanNode:
    """Return a plan. A plan can be deeper than Python's stack, so there is no recursion."""
    root = _node(info)
    waiting = [(info, root, 1)]
    while waiting:
        parent, node, depth = waiting.pop()
        if depth > _DEEPEST_PLAN:
            continue
        children = [(child, _node(child)) for child in parent.get("children", ())]
        node.children = [child for _, child in children]
        waiting += [(child, made, depth + 1) for child, made in children]
    return root


def _node(info: Mapping[str, Any]) -> PlanNode:
    return PlanNode(
        name=values.text(info["nodeName"]).strip(),
        text=values.text(info["simpleString"]),
        metrics={
            _metric_name(each["name"]): int(each["accumulatorId"])
            for each in info.get("metrics", ())
        },
        children=[],
    )


def operator(info: Mapping[str, Any], number: int) -> Operator:
    place = (int(info["start"]), int(info["stop"]) + 1) if "start" in info else (None, None)
    depth = int(info["depth"])
    # Each operator follows its parent.
    if not 0 <= depth <= number:
        raise InvalidRecordError("the depth of an operator is out of range")
    return Operator(depth, values.text(info["name"]), values.text(info["text"]), *place)


def _metric_name(value: object) -> str:
    # All plans have the same few names. One text for all of them saves time and memory.
    is_short = isinstance(value, str) and len(value) <= _LONGEST_NAME
    return _short_text(value) if is_short else values.text(value)


@functools.lru_cache(_NAMES)
def _short_text(value: str) -> str:
    # Spark 2 adds these words to the names of all sizes and times, in `SQLMetrics`.
    return values.text(value).removesuffix(" total (min, med, max)")
