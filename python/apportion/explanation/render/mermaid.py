"""Explanations as Mermaid flowcharts, for Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._util.units import count_text
from apportion.explanation.views.view import QueryView, StageView


def render(query: QueryView) -> str:
    """Return a flowchart of the stages, with their tasks, decisions and operators."""
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
    reasons = [
        f"{logged.decision.operator}: {logged.decision.reason}" for logged in stage.decisions
    ]
    operators = [
        " ← ".join(node.name for node in pipeline.operators)
        for pipeline in stage.pipelines.pipelines
    ]
    return "<br/>".join(map(_escape, [f"{stage.name}{tasks}", *reasons, *operators]))


def _escape(text: str) -> str:
    """Return a label with Mermaid entities for quotes and for characters of HTML."""
    special = {"&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "#": "#35;"}
    return "".join(special.get(character, character) for character in text)
