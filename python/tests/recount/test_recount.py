"""Every number that advise and explain print is in the raw JSON of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from .compare import Recount

ROOT = Path(__file__).parents[3]
LOGS = [
    *sorted((ROOT / "python/tests/eventlog/golden").glob("*.zstd")),
    *sorted((ROOT / "docs/pictures").glob("*.zstd")),
]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_numbers_that_are_shown_are_those_of_the_raw_log(log: Path) -> None:
    recount = Recount(log)
    assert recount.compared > 100
    assert recount.differences == []
