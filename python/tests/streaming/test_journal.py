"""Reading streams from journals, event logs and logs of progress."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apportion.errors import ApportionError
from apportion.streaming import journal
from tests.streaming.histories import progress, record


def lines(*contents: Any) -> str:
    return "".join(json.dumps(content) + "\n" for content in contents)


def test_a_checkpoint_has_the_records_of_its_journal(tmp_path: Path) -> None:
    folder = tmp_path / "_apportion"
    folder.mkdir()
    (folder / "journal.jsonl").write_text(lines(record(0).to_json(), record(1).to_json()))
    for path in (str(tmp_path), tmp_path.as_uri(), str(folder / "journal.jsonl")):
        (history,), skipped = journal.read(path)
        assert history.records == [record(0), record(1)]
        assert (history.stream, history.query_id, skipped) == ("clicks", "query-1", [])


def test_an_event_log_has_records_and_batches(tmp_path: Path) -> None:
    package = "org.apache.spark.sql.streaming.StreamingQueryListener"
    text = lines(
        {"Event": "SparkListenerLogStart", "Spark Version": "4.2.1"},
        {"Event": "io.apportion.streams.StreamEvent", "stream": record(0).to_json()},
        {"Event": f"{package}$QueryProgressEvent", "progress": progress(0)},
        {"Event": f"{package}$QueryTerminatedEvent", "id": "query-1"},
    )
    (tmp_path / "log.gz").write_bytes(gzip.compress(text.encode()))
    (history,), _ = journal.read(str(tmp_path / "log.gz"))
    assert history.records == [record(0)]
    assert [batch.partitions for batch in history.batches] == [4]


def test_streams_are_apart_and_stateless_batches_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "progress.jsonl"
    stateless = {**progress(0, id="query-3"), "stateOperators": []}
    log.write_text(lines(progress(0), progress(0, id="query-2", name=None), stateless))
    histories, _ = journal.read(str(log))
    assert [history.stream for history in histories] == ["clicks", "query-2"]


def test_incomplete_lines_are_reported(tmp_path: Path) -> None:
    log = tmp_path / "journal.jsonl"
    log.write_text(lines(record(0).to_json(), {"stream": "x"}, 7) + '{"stream": "cli')
    (history,), skipped = journal.read(str(log))
    assert len(history.records) == 1
    assert skipped == [
        "3 times: a line that is not a record of a stream, such as an incomplete one"
    ]


def test_a_journal_with_only_incomplete_lines_says_so(tmp_path: Path) -> None:
    log = tmp_path / "journal.jsonl"
    log.write_text('{"stream": "cli\n{"str')
    message = "has no stateful stream: .*; left out: 2 times: a line that is not a record of a"
    with pytest.raises(ApportionError, match=message):
        journal.read(str(log))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "there is no checkpoint, journal or event log at none"),
        ("x" * 300, "there is no checkpoint, journal or event log at x"),
        ("plain", "the checkpoint plain has no journal"),
        ("empty.jsonl", "has no stateful stream"),
        ("s3://bucket/orders", "is not on this machine: copy _apportion/journal.jsonl"),
    ],
)
def test_other_paths_get_an_error(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plain/offsets").mkdir(parents=True)
    Path("empty.jsonl").touch()
    with pytest.raises(ApportionError, match=message):
        journal.read(path)
