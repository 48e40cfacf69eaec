"""Histories of streams in files: journals, event logs, and logs of progress. Needs no Spark."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from apportion._util.paths import existing_path
from apportion.errors import ApportionError, InputError
from apportion.logs.eventlog.input.deep_json import is_shallow
from apportion.logs.eventlog.input.files import Skipped, lines
from apportion.logs.stream_record import StreamRecord
from apportion.streaming.batches import Batch

JOURNAL = Path("_apportion", "journal.jsonl")
_RECORD = "io.apportion.streams.StreamEvent"
_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


@dataclasses.dataclass(frozen=True)
class History:
    """What a file has about one stream, oldest first."""

    stream: str
    """Name of the query, as in `StreamRecord` or in `Batch`."""
    query_id: str
    records: list[StreamRecord] = dataclasses.field(default_factory=list)
    """Records of Apportion; empty if the stream ran without it."""
    batches: list[Batch] = dataclasses.field(default_factory=list)
    """Batches that ran tasks; empty in a journal, which has only records."""


def read(path: str) -> tuple[list[History], list[str]]:
    """Return the streams in a file, and a line for each kind of content that is left out.

    `path` is a checkpoint with a journal, a journal, an event log, or a file with the JSON of one
    `StreamingQueryProgress` in each line. Raises `ApportionError` if it has no stream.
    """
    file = _file(path)
    found: dict[str, History] = {}
    skipped = Skipped()
    for line in lines(file, skipped):
        try:
            record = _parsed(line)
        except (ValueError, msgspec.DecodeError):
            if line.strip():
                skipped.add("a line that is not a record of a stream, such as an incomplete one")
            continue
        if isinstance(record, StreamRecord):
            _history(found, record.stream, record.query_id).records.append(record)
        elif isinstance(record, Batch) and record.partitions:
            _history(found, record.name, record.query_id).batches.append(record)
    if not found:
        raise ApportionError(
            f"{file} has no stateful stream: name a checkpoint of a stream that "
            "apportion.streaming.start controls, an event log, or a file with the JSON of "
            "StreamingQueryProgress in each line"
            + "".join(f"; left out: {reason}" for reason in skipped.messages())
        )
    for history in found.values():
        # A clock can be set back.
        history.records.sort(key=lambda record: record.at)
        history.batches.sort(key=lambda batch: batch.ended)
    return list(found.values()), skipped.messages()


def _file(path: str) -> Path:
    url = urlsplit(path)
    # One letter is a drive of Windows.
    if len(url.scheme) > 1 and url.scheme != "file":
        raise ApportionError(
            f"{path} is not on this machine: copy {JOURNAL.as_posix()} from the checkpoint, and "
            "name the copy"
        )
    folder = Path(url2pathname(url.path) if url.scheme == "file" else path)
    journal = folder / JOURNAL
    if existing_path(str(journal)):
        return journal
    if existing_path(str(folder / "offsets")):
        raise ApportionError(
            f"the checkpoint {path} has no journal: only streams that apportion.streaming.start "
            f"controls write {JOURNAL.as_posix()}"
        )
    if not existing_path(str(folder)):
        raise ApportionError(f"there is no checkpoint, journal or event log at {path}")
    return folder


def _history(found: dict[str, History], stream: str, query_id: str) -> History:
    return found.setdefault(query_id, History(stream, query_id))


def _parsed(line: bytes) -> StreamRecord | Batch | None:
    # Most events of a log are not parsed.
    if b'"Event"' in line and _RECORD.encode() not in line and _PROGRESS.encode() not in line:
        return None
    if not is_shallow(line):
        raise InputError("a record of a stream is not nested deeply")
    content = msgspec.json.decode(line)
    if not isinstance(content, dict):
        raise InputError("a record of a stream is an object")
    event = content.get("Event")
    if event == _RECORD:
        return StreamRecord.from_json(content.get("stream"))
    if event == _PROGRESS:
        return Batch.from_progress(content.get("progress"))
    if event is not None:
        return None
    return Batch.from_progress(content) if "batchId" in content else StreamRecord.from_json(content)
