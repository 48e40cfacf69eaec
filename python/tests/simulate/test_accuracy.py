"""The page on accuracy is made from a log, and the published errors are small enough."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import simulator_accuracy as accuracy
from apportion import eventlog
from apportion.bench.environment import Environment

from . import logs

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "simulator-accuracy.md").read_text("utf-8")
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


def test_the_accuracy_page_compares_predictions_with_measurements(tmp_path: Path) -> None:
    log = record(tmp_path)
    assert len(eventlog.read(log).queries) == 1 + len(accuracy.PREDICTED)
    results = accuracy.evaluate(log)
    (found,) = results["smaller"]
    assert (found.query, found.logged, found.measured) == ("6", 1.67, 1.67)
    assert found.measured_tasks == [2, 2]
    page = accuracy.page(results, ENVIRONMENT, 0.1, 1)
    assert page.count(" of 1 |") == len(accuracy.PREDICTED)
    lines = accuracy.predictions_csv(results).splitlines()
    assert len(lines) == 1 + len(accuracy.PREDICTED)
    assert any(line.startswith("smaller,6,1.67,") for line in lines)


def test_the_published_accuracy_page_has_every_configuration_and_query() -> None:
    rows = re.findall(r"^\| ([\w-]+) \|.*?\| ([\d.]+)% \|.*\| (\d+) of 22 \|$", PAGE, re.MULTILINE)
    errors = {name: float(error) for name, error, _ in rows}
    assert list(errors) == [variant.name for variant in accuracy.PREDICTED]
    with (DOCS / accuracy.CSV).open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 22 * len(errors)
    # Spark's own coalescing is predicted within 15 %.
    assert errors["spark"] < 15
    assert errors["spark-size"] < 15
