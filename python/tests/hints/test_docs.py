"""The page on hints says what the code says."""

from __future__ import annotations

from pathlib import Path

from apportion.hints import CODES
from apportion.hints.grammar import APPORTION

PAGE = Path(__file__).parents[3].joinpath("docs", "hints.md").read_text("utf-8").splitlines()


def test_every_hint_is_on_the_page() -> None:
    rows = [f"| `{f.example}` | {f.meaning} |" for forms in APPORTION.values() for f in forms]
    assert [line for line in PAGE if line in rows] == rows


def test_every_code_is_on_the_page() -> None:
    rows = [f"| {code} | {severity} | {what} |" for code, (severity, what) in CODES.items()]
    assert [line for line in PAGE if line.startswith("| APH")] == rows
