"""The event log of each Spark version is read as it was when it was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from apportion import eventlog
from apportion.logs.explanation.render import text
from apportion.logs.explanation.views.view import view

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("log", sorted(GOLDEN.glob("*.zstd")), ids=lambda log: log.stem)
def test_recorded_logs_of_each_spark_version_are_explained(
    log: Path, request: pytest.FixtureRequest
) -> None:
    application = eventlog.read(log)
    queries = [view(application, query) for query in application.queries.values()]
    shown = "\n".join(map(text.render, queries))
    golden = log.with_suffix(".txt")
    if request.config.getoption("--apportion-update-golden"):
        golden.write_text(shown)
    assert application.skipped == []
    assert shown == golden.read_text()
