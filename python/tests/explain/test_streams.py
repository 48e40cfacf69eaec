"""Streams in the explanation of an event log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import apportion
from apportion import eventlog

from .streams import BATCH, RESCALE, peak, written
from .test_html import HOSTILE, Page


def test_the_text_has_the_load_and_the_rescales_of_a_stream(tmp_path: Path) -> None:
    assert apportion.explain(written(tmp_path, peak())).text() == (
        """\
Stream clicks (q-1)
  Policy load: 16 state partitions, target 8, 4 task slots, 1 rescale.
  30 batches, up to 41.0 s each; 10 took longer than the trigger's interval of 30.0 s.
  State: 50,000 rows, 5 MiB. Backlog: up to 19,000 rows.
  ▃▃▃▃▃▃▃▃▃▃██████████|▅▅▅▅▅▅▅▅▅▅ time of each batch; | where the state partitions changed
  2026-03-01 10:14:30 batch 29: 8 partitions: the load is in bounds
  2026-03-01 10:10:00 rescale at batch 20: 8 -> 16 partitions: batches took 41 s of a 30 s trigger for 5 minutes
    paused 8.2 s (stop 700 ms, repartition 5.6 s, start 1.9 s)
"""  # noqa: E501
    )


def test_a_stream_without_trigger_and_backlog_says_so(tmp_path: Path) -> None:
    record = {**BATCH, "stream": "q-1"}
    del record["trigger_millis"], record["backlog_rows"]
    text = apportion.explain(written(tmp_path, [record])).text()
    assert text.startswith("Stream q-1\n")
    assert "1 batch, up to 12.0 s each; the trigger has no interval." in text
    assert "Backlog: unknown." in text


def test_the_page_has_plots_of_the_load_and_marks_the_rescale(tmp_path: Path) -> None:
    page = apportion.explain(written(tmp_path, peak())).html()
    assert Page(page).tags.count("svg") == 2
    for plot in page.split("<svg")[1:]:
        assert plot.count('<rect class="pause"') == 1
        assert "paused 8.2 s (stop 700 ms, repartition 5.6 s, start 1.9 s)</title>" in plot
    assert page.count('<path class="goal"') == 1
    assert '5 minutes</td><td class="prose">paused 8.2 s' in page


def test_a_stream_that_never_ended_a_batch_has_its_changes(tmp_path: Path) -> None:
    failed = {**BATCH, "event": "failure", "batch": -1, "reason": "the checkpoint is not readable"}
    explained = apportion.explain(written(tmp_path, [failed]))
    assert "failure at batch -1: the checkpoint is not readable" in explained.text()
    assert Page(explained.html()).tags.count("svg") == 0


def test_texts_of_a_stream_are_escaped(tmp_path: Path) -> None:
    names = dict.fromkeys(("stream", "query_id", "policy", "reason"), HOSTILE)
    page = apportion.explain(written(tmp_path, [{**RESCALE, **names}, {**BATCH, **names}])).html()
    assert "<script>alert" not in page
    assert Page(page).tags.count("script") == 1


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("slots", None, "Expected `int`, got `null` - at `$.slots`"),
        ("batch_millis", -5, "Expected `int` >= 0 - at `$.batch_millis`"),
        ("state_bytes", 10**30, "Expected `int` <= 9007199254740992 - at `$.state_bytes`"),
        ("input_rows_per_second", float("inf"), "at `$.input_rows_per_second`"),
        ("at", "2026-03-01T10:00:00", "Expected `datetime` with a timezone component"),
        ("at", "9999-99-99", "Invalid RFC3339 encoded datetime - at `$.at`"),
        ("event", "party", "Invalid enum value 'party' - at `$.event`"),
    ],
)
def test_a_wrong_record_is_left_out(tmp_path: Path, field: str, value: Any, problem: str) -> None:
    application = eventlog.read(written(tmp_path, [{**BATCH, field: value}, BATCH]))
    assert [len(records) for records in application.streams.values()] == [1]
    (skipped,) = application.skipped
    assert "StreamEvent: not a record of a stream: " in skipped
    assert problem in skipped
