"""What a stage does, and who chose its number of tasks, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from apportion._util.units import size_text
from apportion.logs.eventlog import LoggedDecision, PlanNode, plan_text

# Kinds of operators in the order in which they describe a stage best: a part of their names, and
# the words for them.
_KINDS = (
    ("Join", "join"), ("CartesianProduct", "join"), ("Window", "window"),
    ("Aggregate", "aggregation"), ("Sort", "sort"), ("TakeOrdered", "sort"), ("Scan", "scan"),
    ("Generate", "explode"), ("Execute ", "write"), ("AppendData", "write"),
    ("Overwrite", "write"), ("WriteFiles", "write"), ("Limit", "limit"), ("Union", "union"),
    ("Range", "range"),
)  # fmt: skip
_MOST_TABLES = 2


def purpose(operators: Sequence[PlanNode], own: Sequence[str], below: Sequence[str]) -> str:
    """Return what a stage does: `join of orders and items`.

    `own` are the tables that it scans, and `below` those of the stages that it reads.
    """
    names = [plan_text.kind(node.name) for node in operators]
    whole = [name for name, node in zip(names, operators, strict=True) if not _is_partial(node)]
    found = next((word for part, word in _KINDS if any(part in name for name in whole)), None)
    word = found or next((name for name in names if not name.endswith("Exchange")), "")
    tables = list(dict.fromkeys([*own, *([] if word == "scan" else below)]))
    if not tables:
        return word
    shown = list(tables[:_MOST_TABLES])
    hidden = len(tables) - len(shown)
    listed = ", ".join(shown) + f" and {hidden} more" if hidden else " and ".join(shown)
    return f"{word} of {listed}"


def _is_partial(node: PlanNode) -> bool:
    # A partial aggregate belongs to a scan or a join that takes most of the time.
    return "Aggregate" in node.name and plan_text.is_partial(node.text)


def chosen(decisions: Sequence[LoggedDecision]) -> str:
    """Return who chose the tasks of a stage and why; empty without a decision."""
    if not decisions:
        return ""
    decision = decisions[-1].decision
    if decision.layout == "observed":
        return f"by Spark; {decision.parallelism} by Apportion"
    if decision.layout == "unchanged":
        return "left to Spark and the query"
    if decision.kind == "formula" and decision.data_volume_per_task:
        target = size_text(decision.data_volume_per_task)
        return f"by Apportion: {size_text(decision.input_bytes)} at {target}"
    if decision.kind in ("minimum", "maximum") and decision.layout == "files":
        return f"by Apportion: {size_text(decision.input_bytes)} of files"
    return f"by Apportion: {_REASONS.get(decision.kind, decision.kind)}"


# The last limit that changed a number, in the words of a person.
_REASONS = {
    "reactive": "to use the task slots",
    "explicit": "the number that was set",
    "minimum": "the minimum that was set",
    "maximum": "the maximum that was set",
    "fanIn": "fewer blocks for a task",
    "memory": "rows must fit the memory",
    "waves": "full waves of task slots",
    "subpartitions": "all shuffle partitions",
    "source": "a default without inputs",
}
