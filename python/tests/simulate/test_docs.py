"""docs/simulating.md: its tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

from apportion import eventlog
from apportion.logs.simulate import simulate
from apportion.logs.simulate.report import scenarios_table

PAGE = (Path(__file__).parents[3] / "docs" / "simulating.md").read_text("utf-8")


def test_the_page_explains_every_row_and_column_of_a_simulation(log: Path) -> None:
    explained = re.findall(r"^\| `?(.*?)`? \|", PAGE, re.MULTILINE)
    _, *columns = scenarios_table(simulate(eventlog.read(log), [])).columns
    for name in ["logged", "replay", "set", "spark", *columns]:
        assert name in explained
