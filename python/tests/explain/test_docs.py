"""docs/pipelines.md: its reasons are complete."""

from __future__ import annotations

from pathlib import Path

from apportion.logs.explanation.views.pipelines import Break

PAGE = (Path(__file__).parents[3] / "docs" / "pipelines.md").read_text("utf-8")


def test_the_page_lists_all_reasons_why_pipelines_end() -> None:
    table = PAGE.split("| reason | what it means |\n| --- | --- |\n")[1]
    rows = [tuple(row.strip("| ").split(" | ")) for row in table.splitlines() if row]
    assert rows == [(why.value, why.explanation) for why in Break]
