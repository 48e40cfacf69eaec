"""The console of the commands."""

from __future__ import annotations

import io

import pytest
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from apportion.cli.support.console import Console

HOSTILE = "a\x1b]0;owned\x07b\x9bc\x7fd\ud800e\tf"
SHOWN = "a\ufffd]0;owned"


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=80, highlight=False, emoji=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    text.encode()
    return text


def table() -> Table:
    made = Table(HOSTILE)
    made.add_row(HOSTILE)
    return made


@pytest.mark.parametrize(
    "shown",
    [HOSTILE, Text(HOSTILE, "bold"), Padding(Text(HOSTILE), (0, 0, 0, 2)), table()],
    ids=["text", "styled", "padded", "table"],
)
def test_control_characters_are_not_printed(console: Console, shown: object) -> None:
    console.print(shown, soft_wrap=True)
    console.rule(Text(HOSTILE))
    assert text_of(console).count(SHOWN) >= 2
    assert not set("\x1b\x07\x9b\x7f").intersection(text_of(console))


def test_control_characters_are_not_written(console: Console) -> None:
    console.write(f"{HOSTILE}\n")
    assert text_of(console) == "a\ufffd]0;owned\ufffdb\ufffdc\ufffdd\ufffde\tf\n"


def test_the_lines_of_a_table_stay_aligned(console: Console) -> None:
    console.print(table())
    assert len(set(map(len, text_of(console).splitlines()))) == 1


def test_styles_and_moves_of_the_cursor_are_kept() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    with Live(Text(HOSTILE, "bold"), console=console, auto_refresh=False) as live:
        live.refresh()
    text = text_of(console)
    assert "\x1b[1m" in text
    assert "\x1b[?25l" in text
    assert "\x1b]0;" not in text
