"""The documentation lists the hints and codes of the code."""

from __future__ import annotations

from pathlib import Path

from apportion.hints import CODES
from apportion.hints.grammar import APPORTION

DOCS = Path(__file__).parents[3] / "docs"


def _read_page(name: str) -> list[str]:
    return (DOCS / name).read_text("utf-8").splitlines()


def test_every_hint_is_in_the_docs() -> None:
    starts = [f"| `{form.example}` | " for forms in APPORTION.values() for form in forms]
    lines = [line for line in _read_page("hints.md") if line.startswith(tuple(starts))]
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))


def test_every_code_is_in_the_docs() -> None:
    rows = [f"| {code} | {severity} | {what} |" for code, (severity, what) in CODES.items()]
    assert [line for line in _read_page("lint-rules.md") if line.startswith("| APH")] == rows
