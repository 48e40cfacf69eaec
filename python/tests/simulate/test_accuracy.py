"""The page on accuracy is made from a log; what it says is as good as it has to be."""

from __future__ import annotations

import re
from pathlib import Path

import simulator_accuracy as accuracy
from apportion import eventlog
from apportion.bench.environment import Environment

from . import logs

PAGE = (Path(__file__).parents[3] / "docs" / "simulator-accuracy.md").read_text("utf-8")
ENVIRONMENT = Environment("4.2.0", "17", "0.1.0", "local[2]", 2)


def record(path: Path) -> Path:
    """A log in which query 6 ran once in each configuration, always the same way."""
    events = logs.application(logs.CONF | accuracy.COMMON)
    runs = [accuracy.LOGGED, *accuracy.PREDICTED]
    for number, variant in enumerate(runs):
        events += logs.query(
            number, description=f"6 {variant.name} 1", modifiedConfigs=variant.conf
        )
    return logs.write(path / "log", events)


def test_predictions_beside_what_was_measured(tmp_path: Path) -> None:
    log = record(tmp_path)
    assert len(eventlog.read(log).queries) == 1 + len(accuracy.PREDICTED)
    results = accuracy.evaluate(log)
    (found,) = results["smaller"]
    assert (found.query, found.logged, found.measured) == ("6", 1.67, 1.67)
    assert found.measured_tasks == [2, 2]
    page = accuracy.page(results, ENVIRONMENT, 0.1, 1)
    assert "| 6 | 1.67 |" in page
    assert page.count("\n## ") == len(accuracy.PREDICTED)


def test_the_published_page_has_every_configuration_and_query() -> None:
    rows = re.findall(r"^\| ([\w-]+) \|.*?\| ([\d.]+)% \|.*\| (\d+) of 22 \|$", PAGE, re.MULTILINE)
    errors = {name: float(error) for name, error, _ in rows}
    assert list(errors) == [variant.name for variant in accuracy.PREDICTED]
    assert len(re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE)) == 22 * len(errors)
    # What Spark's own coalescing would do is predicted within 15 %.
    assert errors["spark"] < 15
    assert errors["spark-size"] < 15
