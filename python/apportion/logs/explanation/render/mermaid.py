"""Explanations as Mermaid flowcharts, for Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._util.units import count_text
from apportion.logs.eventlog import LoggedDecision
from apportion.logs.explanation.render.text import ELSEWHERE
from apportion.logs.explanation.views.view import QueryView, StageView


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
    if query.elsewhere:
        yield f'  subgraph elsewhere["{_escape(ELSEWHERE)}"]'
        for place, logged in enumerate(query.elsewhere):
            yield f'    d{place}["{_escape(_reason(logged))}"]'
        yield "  end"


def _label(stage: StageView) -> str:
    tasks = "" if stage.slots is None else f": {count_text(stage.slots, 'task')}"
    reasons = map(_reason, stage.decisions)
    operators = [
        " ← ".join(node.name for node in pipeline.operators)
        for pipeline in stage.pipelines.pipelines
    ]
    return "<br/>".join(map(_escape, [f"{stage.name}{tasks}", *reasons, *operators]))


def _reason(logged: LoggedDecision) -> str:
    return f"{logged.decision.operator}: {logged.decision.reason}"


def _escape(text: str) -> str:
    """Return a label with Mermaid entities for quotes and for characters of HTML."""
    special = {"&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "#": "#35;"}
    return "".join(special.get(character, character) for character in text)
