"""Runs on emulated slots are read from a log, and predicted from another run."""

from __future__ import annotations

from pathlib import Path

from measurements.speed import slots

from . import logs

QUERY = next(iter(slots.QUERIES))


def record(folder: Path) -> Path:
    """A log in which the first query ran under each variant, always the same way."""
    events = logs.application(logs.CONF)
    for number, variant in enumerate(slots.VARIANTS):
        name = f"{variant.name}/{QUERY}/1"
        events += logs.query(number, description=name, modifiedConfigs=variant.conf)
    folder.mkdir()
    logs.write(folder / "log", events)
    return folder


def test_each_variant_has_a_row_with_its_prediction(tmp_path: Path) -> None:
    runs = slots.read_runs(record(tmp_path / "logs"))
    rows = list(slots.rows({2: runs}))
    assert [row["variant"] for row in rows] == [variant.name for variant in slots.VARIANTS]
    logged = next(row for row in rows if row["variant"] == slots.APPORTION)
    assert (logged["seconds"], logged["tasks"], logged["waves"]) == ("1.670", 2, 1)
    assert (logged["predicted"], logged["predicted_tasks"]) == ("1.670", 2)


def test_runs_of_the_warm_up_are_left_out(tmp_path: Path) -> None:
    events = logs.application(logs.CONF) + logs.query(0, description=f"Spark/{QUERY}/0")
    logs.write(tmp_path / "log", events)
    assert slots.read_runs(tmp_path) == {}


def test_runs_of_several_logs_are_told_apart(tmp_path: Path) -> None:
    for name in ("first", "second"):
        events = logs.application(logs.CONF) + logs.query(0, description=f"Spark/{name}/1")
        logs.write(tmp_path / name, events)
    first, second = slots.read_runs(tmp_path).values()
    assert first.query != second.query
