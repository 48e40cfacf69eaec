"""Tables show all of their text in terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text

from apportion._util.tables import FittedTable


def shown(table: FittedTable, width: int) -> list[str]:
    screen = io.StringIO()
    Console(file=screen, width=width).print(table)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in screen.getvalue()
    return [line.rstrip() for line in lines]


@pytest.fixture
def queries() -> FittedTable:
    table = FittedTable("Times", ["Query", "spark, s", "even", "Tasks"], right=range(4))
    table.add_row("1", "1.25", "1.19 (1.10 to 1.30)", "200 → 89")
    table.add_row("report:2", "0.50", Text("failed", "red"), "")
    return table


def test_columns_that_fit_have_a_frame(queries: FittedTable) -> None:
    assert shown(queries, 54) == [
        "Times",
        "┏━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┓",
        "┃          ┃ spark, ┃                     ┃          ┃",
        "┃    Query ┃      s ┃                even ┃    Tasks ┃",
        "┡━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━┩",
        "│        1 │   1.25 │ 1.19 (1.10 to 1.30) │ 200 → 89 │",
        "│ report:2 │   0.50 │              failed │          │",
        "└──────────┴────────┴─────────────────────┴──────────┘",
    ]


def test_columns_that_do_not_fit_are_below_their_row(queries: FittedTable) -> None:
    assert shown(queries, 45) == [
        "Times",
        "   Query  spark, s                 even",
        "       1      1.25  1.19 (1.10 to 1.30)",
        "  Tasks: 200 → 89",
        "report:2      0.50               failed",
    ]


def test_a_long_first_column_is_above_its_row() -> None:
    table = FittedTable("", ["Scenario", "Tasks", "Slots"], right=(1, 2))
    table.add_row("set (apportion.dataVolumePerTask=16MB)", "1,200", "80")
    assert shown(table, 30) == [
        "Scenario",
        "  Tasks  Slots",
        "set",
        "(apportion.dataVolumePerTask=1",
        "6MB)",
        "  1,200     80",
    ]


def test_values_of_users_are_shown_whole() -> None:
    table = FittedTable("", ["id", "[b]"])
    table.add_row("1", "x" * 100)
    table.add_row("2", "第一\n[/x]")
    text = "".join(line.strip() for line in shown(table, 40))
    assert text.count("x") == 101
    assert "第一" in text
    assert "[/x]" in text


def test_a_table_without_rows_has_its_headings() -> None:
    assert "Query" in "".join(shown(FittedTable("", ["Query", "Tasks"]), 20))
