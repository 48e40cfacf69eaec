"""Logs are untrusted: whatever is in them, there is a result or a clear message."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError, eventlog
from apportion.eventlog import reader
from apportion.simulate import Scenario, simulate

from . import logs

MORE = Scenario("more", {"spark.apportion.dataVolumePerTask": "1000"}, slots=7, scale=3)
SPARK = Scenario("spark", {"spark.apportion.enabled": "false"})
HOSTILE: list[Any] = [None, -1, 0, 10**30, 2**62, "x" * 50, [], {}, [[]], 1.5, "\x1b[31m", True]


def events() -> list[logs.Event]:
    return [*logs.application(), *logs.query()]


def simulated(path: Path) -> None:
    """Whatever is raised but a message of our own fails the test."""
    with contextlib.suppress(ApportionError):
        simulate(eventlog.read(path), [MORE, SPARK])


@pytest.mark.parametrize("part", range(1, 20))
def test_a_truncated_log_raises_no_other_error(tmp_path: Path, part: int) -> None:
    path = logs.write(tmp_path / "log", events())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * part // 20])
    simulated(path)


@pytest.mark.parametrize("seed", range(60))
def test_a_log_with_random_values_raises_no_other_error(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    made = json.loads(json.dumps(events()))
    for _ in range(3):
        container = draw.choice(made)
        while True:
            keys = list(container) if isinstance(container, dict) else range(len(container))
            key = draw.choice(keys)
            if not isinstance(container[key], dict | list) or not container[key]:
                break
            if draw.random() < 0.2:
                break
            container = container[key]
        if key != "Event":
            container[key] = draw.choice(HOSTILE)
    simulated(logs.write(tmp_path / "log", made))


def test_control_characters_in_names_are_replaced(tmp_path: Path) -> None:
    query = logs.query(description="\x1b[2J\x9bgone")
    application = eventlog.read(logs.write(tmp_path / "log", [*logs.application(), *query]))
    assert application.queries[3].description == "\ufffd[2J\ufffdgone"


def test_decisions_with_invalid_numbers_are_left_out(tmp_path: Path) -> None:
    absurd = [
        logs.decision(tasks=10**12),
        logs.decision(subpartitions=5),
        logs.decision(sizes=[[-1, 0, 0, 0]]),
        logs.decision(sizes=[[2**70, 0, 0, 0]]),
        logs.decision(policy={**logs.POLICY, "broadcast_ratio": 7}),
        logs.decision(inputs=[{**logs.INPUT, "groups": [4, 1]}]),
        logs.decision(inputs=[{**logs.INPUT, "groups": [0, 4]}]),
        logs.decision(inputs=[{**logs.INPUT, "groups": [4]}]),
        logs.decision(inputs=[{**logs.INPUT, "bytes_by_level": [0, -1]}]),
    ]
    path = logs.write(tmp_path / "log", [*logs.application(), *logs.query(decided=absurd)])
    found = simulate(eventlog.read(path), [MORE])
    assert "keeps its tasks" in found.rows[-1].outcomes[0].notes[0]


def test_the_memory_for_a_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_TASKS", 3)
    path = logs.write(tmp_path / "log", events())
    application = eventlog.read(path)
    assert sum(len(stage.launched) for stage in application.stages) == 3
    assert application.skipped == ["a task above the limit of 3 tasks"]

    monkeypatch.setattr(reader, "MAX_BYTES", 1000)
    assert not eventlog.read(path).queries
    with pytest.raises(ApportionError, match="there is no query to simulate"):
        simulate(eventlog.read(path), [])
