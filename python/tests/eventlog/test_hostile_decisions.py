"""Decisions in a log are untrusted: they are read, or left out with a remark."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError, eventlog
from apportion.logs.eventlog import Application
from apportion.logs.explanation.explained import from_log
from apportion.logs.simulate import Scenario, simulate
from tests.records import RECORD
from tests.simulate import logs

MORE = Scenario("more", {"spark.apportion.dataVolumePerTask": "1000"}, slots=7, scale=3)
OUTCOME = {
    "stage": 1, "spilled_bytes": 1, "peak_task_memory": 1, "gc_millis": 1, "fetch_wait_millis": 1,
    "median_task_millis": 1, "longest_task_millis": 1, "failed_tasks": 0, "memory_failures": 0,
}  # fmt: skip
# Each field that an extension writes.
DECIDED: dict[str, Any] = {
    **RECORD,
    "requirement": {"min": 1, "target": 2, "max": 4}, "slots": 2, "slots_lost": 0,
    "limited_by_partitions": 1.5, "largest_task_memory": 10, "task_memory": 5, "operators": [0],
    "subpartition_bytes": [logs.SIZES], "subpartition_bytes_width": 1, "policy": logs.POLICY,
    "inputs": [{**logs.INPUT, "held": {"per_byte": 1.0, "arrays": [2.0]}}], "scan_metric": 3,
    "source_kinds": {"dataVolumePerTask": "hint"}, "outcome": OUTCOME,
}  # fmt: skip
HOSTILE: list[Any] = [
    None, -1, 0, 10**30, -(10**9), 2**62, 2**63 - 1, 1.5, float("inf"), float("nan"), True,
    "x" * 50, "\x1b[31m\x9b\x07", "\ud800", [], {}, [[]], [1], [None], {"x": []}, {"x": 1},
    [{"start": "a", "end": 1}], [{"start": -30_000_000, "end": 4}], [{"start": 0, "end": -1}],
    [{"start": 0, "end": 10**30}], [{"start": 4, "end": 2}], [[1, 2]],
]  # fmt: skip


def read(path: Path, *decided: Any) -> Application:
    events = [{"Event": "io.apportion.report.DecisionEvent", "decision": each} for each in decided]
    return eventlog.read(logs.write(path, [*logs.application(), *logs.query(decided=events)]))


def changed(record: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy of the record with another value in one place."""
    result = copy.deepcopy(record)
    inner = result
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return result


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if above:
        yield above
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*above, key))


def test_a_decision_with_all_fields_is_read(tmp_path: Path) -> None:
    application = read(tmp_path / "log", DECIDED)
    assert application.skipped == []
    (logged,) = application.queries[3].decisions
    assert logged.decision.requirement
    assert (logged.decision.requirement.max, logged.decision.limited_by_partitions) == (4, 1.5)


@pytest.mark.parametrize("place", list(places(DECIDED)), ids=lambda keys: ".".join(map(str, keys)))
def test_hostile_values_in_a_decision_raise_no_other_error(
    tmp_path: Path, place: tuple[Any, ...]
) -> None:
    remarks: set[str] = set()
    for value in HOSTILE:
        application = read(tmp_path / "log", changed(DECIDED, place, value))
        assert len(application.queries[3].decisions) + len(application.skipped) == 1
        # Without its decision, an application differs from others only in its remark.
        if application.skipped and remarks.issuperset(application.skipped):
            continue
        remarks.update(application.skipped)
        explained = from_log(application, "log", [3])
        views = [explained.text(), explained.html(), explained.mermaid(), explained.json()]
        shown = [*application.skipped, *views]
        assert not {"\x1b", "\x9b", "\x07", "\ud800"}.intersection("".join(shown))
        with contextlib.suppress(ApportionError):
            simulate(application, [MORE])


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"clamps": [1]}, "clamps is not a valid list[str]"),
        ({"sources": {"x": []}}, "sources is not a valid dict[str, str]"),
        ({"raw": -1}, "raw is not a valid int | None"),
        ({"stages": [0.5]}, "stages is not a valid list[int]"),
        ({"decided_at": "x" * 1000}, "decided_at is not a time"),
        ({"requirement": {"min": 1}}, "the field target is missing"),
        ({"requirement": [1]}, "Requirement is not an object"),
        (
            {"ranges": [{"start": -30_000_000, "end": 4}]},
            "ranges is not a valid list[tuple[int, int]]",
        ),
    ],
)
def test_a_remark_names_the_field_of_a_decision_that_is_left_out(
    tmp_path: Path, changes: dict[str, Any], remark: str
) -> None:
    application = read(tmp_path / "log", {**DECIDED, **changes})
    assert application.skipped == [f"a malformed event DecisionEvent: {remark}"]


def test_fields_of_a_newer_extension_are_ignored(tmp_path: Path) -> None:
    newer = {
        **DECIDED,
        "requirement": {**DECIDED["requirement"], "newer": 1},
        "outcome": {**OUTCOME, "newer": 1},
        "newer": {},
    }
    application = read(tmp_path / "log", newer)
    assert application.skipped == []
    (logged,) = application.queries[3].decisions
    assert logged.decision.requirement
    assert logged.decision.requirement.target == 2


def test_texts_of_a_decision_have_no_control_characters(tmp_path: Path) -> None:
    texts = {
        "operator": "\x1b[31mX", "reason": "\x1b]0;owned\x07\x1b[2Jgone", "kind": "\x00",
        "clamps": ["\x9b"], "sources": {"\x1b": "\x1b"}, "source_kinds": {"\x1b": "\x1b"},
    }  # fmt: skip
    (logged,) = read(tmp_path / "log", {**DECIDED, **texts}).queries[3].decisions
    decision = logged.decision
    assert (decision.operator, decision.reason) == (
        "\ufffd[31mX",
        "\ufffd]0;owned\ufffd\ufffd[2Jgone",
    )
    assert (decision.kind, decision.clamps) == ("\ufffd", ["\ufffd"])
    assert decision.sources == logged.source_kinds == {"\ufffd": "\ufffd"}


def test_the_formula_is_empty_without_a_rounded_number(tmp_path: Path) -> None:
    (logged,) = read(tmp_path / "log", {**DECIDED, "rounded": None}).queries[3].decisions
    assert logged.decision.formula() == []
