"""Pages show what the commands print, and each page of instructions shows some of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from .outputs import Output, missing, outputs, run
from .pages import ROOT


def shown() -> list[Any]:
    return [
        pytest.param(
            output,
            id=f"{output.page.name}: {output.command}",
            marks=[pytest.mark.slow] if "slow" in output.options else [],
        )
        for output in outputs()
    ]


def test_every_page_of_instructions_shows_output() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    use = menu.partition("  - Use:\n")[2].partition("  - Look up:\n")[0]
    pages = set(re.findall(r": (\S+\.md)$", use, re.MULTILINE))
    assert pages
    assert pages - {output.page.name for output in outputs()} == set()


@pytest.mark.parametrize("output", shown())
def test_a_page_shows_what_a_command_prints(
    output: Output, tmp_path: Path, spark: SparkSession
) -> None:
    printed = run(output, tmp_path, spark)
    assert missing(output.text, printed, output.options) == [], "\n".join(printed)


def test_a_part_that_was_not_printed_is_missing() -> None:
    printed = ["Tasks: 8", "Time: 1.5 s", "Done"]
    exact, vary = frozenset[str](), frozenset({"numbers vary"})
    assert missing("Tasks: 8\n...\nDone\n", printed, exact) == []
    assert missing("Tasks: 8\nDone\n", printed, exact) == ["Tasks: 8\nDone"]
    assert missing("Tasks: 9\n", printed, exact) == ["Tasks: 9"]
    assert missing("Tasks: 9\nTime: 700 ms\n", printed, vary) == []
    assert missing("Task: 8\n", printed, vary) == ["Task:0"]
