"""Queries as Mermaid flowcharts, for Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._util.units import count_text
from apportion.explanation.views.view import QueryView, StageView


def render(query: QueryView) -> str:
    """Return a flowchart of the stages, with their tasks and what they run."""
    return "\n".join(_lines(query)) + "\n"


def _lines(query: QueryView) -> Iterator[str]:
    yield "flowchart BT"
    places = {stage.name: f"s{place}" for place, stage in enumerate(query.stages)}
    for stage in query.stages:
        yield f'  {places[stage.name]}["{_label(stage)}"]'
    for stage in query.stages:
        for read in stage.reads:
            yield f"  {places[read]} --> {places[stage.name]}"


def _label(stage: StageView) -> str:
    tasks = "" if stage.slots is None else f": {count_text(stage.slots, 'task')}"
    decided = [f"{each.decision.operator}: {each.decision.reason}" for each in stage.decisions]
    operators = [
        " ← ".join(node.name for node in pipeline.operators) for pipeline in stage.chains.pipelines
    ]
    return "<br/>".join(map(_escape, [f"{stage.name}{tasks}", *decided, *operators]))


def _escape(text: str) -> str:
    """Text as Mermaid shows it: its own quotes and all that HTML would understand are entities."""
    special = {"&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "#": "#35;"}
    return "".join(special.get(character, character) for character in text)
