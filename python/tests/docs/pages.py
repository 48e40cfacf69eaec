"""The pages of the documentation, and the fenced blocks in them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
# The event log that Python on the pages calls `log`.
LOG = ROOT / "python/tests/eventlog/golden/spark-4.2.zstd"
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]

_FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: `name` is its page and line, for messages."""

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def _blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, *found.groups())
        for found in _FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in _blocks(page)]


def blocks(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def commands() -> list[tuple[str, list[str]]]:
    """Return the name of its block and the words of each command in the pages' `bash` blocks."""
    return [
        (block.name, words)
        for block in blocks("bash")
        for line in block.text.replace("\\\n", " ").splitlines()
        if (words := shlex.split(line, comments=True))
    ]
