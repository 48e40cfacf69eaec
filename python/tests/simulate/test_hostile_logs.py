"""Logs are untrusted: whatever is in them, there is a result or a clear message."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest
import zstandard

from apportion import ApportionError, eventlog
from apportion.logs.advise import render as advice_text
from apportion.logs.advise.advice import advise, collected
from apportion.logs.eventlog import reader
from apportion.logs.explanation.explained import from_log
from apportion.logs.report import render as report_text
from apportion.logs.report.comparison import compare
from apportion.logs.report.runs import runs
from apportion.logs.simulate import Scenario, simulate
from apportion.policies.from_advice import from_advice
from tests.mutations import (
    SEEDS,
    bounded,
    with_other_bytes,
    with_other_pieces,
    with_other_values,
)

from . import logs

MORE = Scenario("more", {"spark.apportion.dataVolumePerTask": "1000"}, slots=7, scale=3)
SPARK = Scenario("spark", {"spark.apportion.enabled": "false"})


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


def used(path: Path) -> None:
    """Use a log as each command does. Only errors of this project are allowed."""
    with contextlib.suppress(ApportionError):
        application = eventlog.read(path)
        advice = collected([advise(application, "log")])
        comparison = compare([runs(application, "before")], [runs(application, "after")])
        shown = [advice_text.text(advice, 20), advice_text.html(advice, 20)]
        shown += [report_text.text(comparison, 20), from_advice(advice).to_yaml()]
        json.dumps([advice.as_json(), comparison.as_json()])
        with contextlib.suppress(ApportionError):
            explained = from_log(application, "log")
            shown += [explained.text(), explained.html(), explained.mermaid(), explained.json()]
        "".join(shown).encode()
        simulate(application, [MORE, SPARK])


STREAM = {
    "stream": "clicks", "query_id": "q", "run_id": "r", "at": "2026-01-01T00:00:00Z",
    "event": "batch", "batch": 1, "policy": "load", "partitions": 2, "target": 2, "slots": 2,
    "batch_millis": 10, "input_rows": 1, "input_rows_per_second": 1.0,
    "processed_rows_per_second": 1.0, "state_rows": 1, "state_bytes": 1, "reason": "a reason",
}  # fmt: skip
QUERY = {
    "query": 3, "sql": "SELECT key, sum(v) FROM t GROUP BY key", "fingerprint": "ab12",
    "operators": [
        {"depth": 0, "name": "Aggregate", "text": "Aggregate [key]", "start": 0, "stop": 7},
        {"depth": 1, "name": "Relation", "text": "Relation t"},
    ],
}  # fmt: skip


def everything() -> list[logs.Event]:
    """A log with each kind of event."""
    failed = logs.task(50, 1150, 1650)
    failed["Task Info"]["Failed"] = True
    failed["Task End Reason"] = {"Reason": "ExceptionFailure", "Class Name": "OutOfMemoryError"}
    return [
        *logs.application(),
        {"Event": "io.apportion.report.QueryEvent", "query": QUERY},
        *logs.query(3),
        *logs.query(4, decided=[]),
        *logs.stage(50, 2000, 3000, [logs.task(50, 2000, 3000), failed], 9),
        {"Event": "io.apportion.streams.StreamEvent", "stream": STREAM},
        {"Event": "SparkListenerExecutorRemoved", "Timestamp": 4000, "Executor ID": "1"},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": 5000},
    ]


def test_a_log_with_each_kind_of_event_is_read(tmp_path: Path) -> None:
    application = eventlog.read(logs.write(tmp_path / "log", everything()))
    assert application.skipped == []
    assert (len(application.queries), len(application.streams)) == (2, 1)
    assert application.queries[3].sql == QUERY["sql"]
    used(tmp_path / "log")


@SEEDS
def test_a_log_with_other_values_raises_no_other_error(tmp_path: Path, seeds: range) -> None:
    for draw in bounded(seeds):
        used(logs.write(tmp_path / "log", with_other_values(draw, everything())))


@SEEDS
def test_a_log_with_other_events_raises_no_other_error(tmp_path: Path, seeds: range) -> None:
    for draw in bounded(seeds):
        used(logs.write(tmp_path / "log", with_other_pieces(draw, everything())))


@SEEDS
def test_a_log_with_other_bytes_raises_no_other_error(tmp_path: Path, seeds: range) -> None:
    path = logs.write(tmp_path / "log", everything())
    plain = path.read_bytes()
    contents = [plain, gzip.compress(plain), zstandard.ZstdCompressor().compress(plain)]
    for draw in bounded(seeds):
        path.write_bytes(with_other_bytes(draw, draw.choice(contents)))
        used(path)


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
