"""Damaged journals and logs of streams never give a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from apportion.cli import app
from tests.streaming.histories import progress, record, rescale

QUICK, ALL = 200, 10_000
OPTIONS: list[list[str]] = [
    [],
    ["--format", "json"],
    ["--policy", "load", "--policy", "lag:5min", "--slots", "4", "--cooldown", "10s"],
    ["--policy", "fixed:8", "--policy", "load:0.3", "--trigger", "10s", "--stabilization", "0s"],
]
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "7", "NaN", "\x1b]0;owned\x07", "\ud800", "x" * 10_000,
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-14:00", "9999-12-31T23:59:59Z",
    "1970-01-01T00:00:00Z", "2026-13-01", [], {}, [[]], {"offset": {}}, {"t": {"0": 10**30}},
]  # fmt: skip
TEXTS = [b"", b"\n", b"{", b"]", b'"', b"\xff", b"\x00", b"[" * 3_000, b'{"a":' * 3_000, b"1" * 500]


def contents() -> list[Any]:
    """Records of a journal, events of a log, and reports of progress."""
    kafka = {"latestOffset": {"t": {"0": 90}}, "endOffset": '{"t": {"0": 70}}'}
    records = [record(number).to_json() for number in range(4)]
    records += [rescale(4, 10_000, 4, 8).to_json(), record(5, 10_000, 8).to_json()]
    reports = [progress(number, sources=[kafka]) for number in range(3)]
    name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    events = [{"Event": name, "progress": report} for report in reports]
    streams = [{"Event": "io.apportion.streams.StreamEvent", "stream": each} for each in records]
    return [records, [*events, *streams], reports]


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys."""
    keys = content.keys() if isinstance(content, dict) else range(len(content))
    for key in keys:
        yield content, key
        if isinstance(content[key], dict | list):
            yield from places(content[key])


def mutated(chance: random.Random) -> bytes:
    """Return a file with up to three damaged values, and in half of the cases damaged bytes."""
    lines = copy.deepcopy(chance.choice(contents()))
    for _ in range(chance.randint(1, 3)):
        container, key = chance.choice(list(places(lines)))
        if chance.random() < 0.2:
            del container[key]
        else:
            container[key] = copy.deepcopy(chance.choice(VALUES))
    chance.shuffle(lines)
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for _ in range(chance.choice([0, 0, 1, 2])):
        start = chance.randrange(len(text) + 1)
        text = text[:start] + chance.choice(TEXTS) + text[start + chance.randrange(20) :]
    return text


def check(path: Path, seeds: range) -> None:
    for seed in seeds:
        chance = random.Random(seed)
        path.write_bytes(mutated(chance))
        result = CliRunner().invoke(app, ["streams", str(path), *chance.choice(OPTIONS)])
        assert result.exit_code in (0, 2), f"seed {seed}: {result.exception!r}"
        assert not any(sign in result.output for sign in ("Traceback", "\x1b", "\x07")), seed


def test_damaged_histories_are_shown_or_refused(tmp_path: Path) -> None:
    check(tmp_path / "log", range(QUICK))


@pytest.mark.slow
def test_ten_thousand_damaged_histories_are_shown_or_refused(tmp_path: Path) -> None:
    check(tmp_path / "log", range(QUICK, ALL))


def test_damaged_lines_are_counted_and_all_others_shown(tmp_path: Path) -> None:
    log = tmp_path / "journal.jsonl"
    deep = "[" * 100_000 + "]" * 100_000
    huge = json.dumps({**record(1).to_json(), "batch_millis": 10**400})
    log.write_text("\n".join([json.dumps(record(0).to_json()), deep, huge, '{"stream": "x"']))
    result = CliRunner().invoke(app, ["streams", str(log)])
    assert result.exit_code == 0
    assert "3 times: a line that is not a record of a stream" in " ".join(result.output.split())
    assert "running, batch 0" in result.output
