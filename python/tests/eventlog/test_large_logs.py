from __future__ import annotations

import contextlib
import gc
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError, eventlog
from apportion.logs.advise import render
from apportion.logs.advise.advice import advise, collected
from apportion.logs.eventlog import Application, PlanNode, Query, reader
from apportion.logs.eventlog.fragments import fragments
from apportion.logs.eventlog.input import files
from apportion.logs.eventlog.input.files import Skipped
from apportion.logs.eventlog.large_logs import events
from apportion.logs.eventlog.large_logs.packing import PackedDict
from apportion.logs.explanation.explained import from_log
from apportion.logs.report.runs import runs
from apportion.logs.simulate import simulate

from .test_reader import EVENTS, SQL, lines, read, stage, task

GOLDEN = sorted(Path(__file__).with_name("golden").glob("*.zstd"))


@pytest.fixture
def packing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack each query as soon as it ends."""
    for limit, value in {"MAX_UNPACKED": 0, "LATE_LINES": 0, "LINES_BETWEEN_PACKING": 1}.items():
        monkeypatch.setattr(reader, f"_{limit}", value)


def without_fast_decoders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "decode", lambda name, line: None)


def compact(log: Path, folder: Path) -> Path:
    """A log with the name of each event first, as Spark writes it."""
    copy = folder / "log"
    text = (json.dumps(json.loads(line), separators=(",", ":")) for line in content(log))
    copy.write_text("\n".join(text))
    return copy


def content(log: Path) -> list[bytes]:
    return list(files.lines(log, Skipped()))


@pytest.mark.parametrize("log", GOLDEN, ids=lambda log: log.name)
def test_fast_decoders_read_the_same_as_the_general_parser(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = compact(log, tmp_path)
    fast = eventlog.read(copy)
    without_fast_decoders(monkeypatch)
    assert eventlog.read(copy) == fast
    assert any(each.accumulators for each in fast.stages)


@pytest.mark.parametrize(
    "values",
    [
        {"Failed": True, "Finish Time": 40},
        {"Killed": True, "Finish Time": 40},
        {"Launch Time": "20"},
        {"Launch Time": 20.0},
        {"Launch Time": True},
        {"Launch Time": None},
        {"Finish Time": 10**30},
        {"Finish Time": -1},
    ],
)
def test_fast_decoders_take_the_same_values_as_the_general_parser(
    values: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = lines([*EVENTS, task(5, 23, 1, **values)])
    fast = read(tmp_path, text)
    without_fast_decoders(monkeypatch)
    assert read(tmp_path, text) == fast


def test_only_general_parsers_read_malformed_and_deep_lines() -> None:
    name = b"SparkListenerTaskEnd"
    for line in (b"{", b"[]", b'{"Task Info":7}', b'{"x":' + b"[" * 50_000, b'{"x":"\xff'):
        assert events.decode(name, line) is None
    assert events.decode(b"SparkListenerApplicationEnd", b"{}") is None


@pytest.mark.parametrize("log", GOLDEN, ids=lambda log: log.name)
def test_packed_queries_are_the_same(
    log: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    unpacked = eventlog.read(log)
    request.getfixturevalue("packing")
    packed = eventlog.read(log)
    assert is_packed(packed, 0)
    assert packed == unpacked
    assert advise(packed, "log") == advise(unpacked, "log")


def is_packed(application: Application, query: int) -> bool:
    queries = application.queries
    return isinstance(queries, PackedDict) and queries.is_packed(query)


@pytest.mark.usefixtures("packing")
def test_events_after_the_end_of_a_packed_query_are_added(tmp_path: Path) -> None:
    late = [task(5, 23, 400), stage("Completed", 5, **{"Completion Time": 31})]
    replanned = {**EVENTS[12], "sparkPlanInfo": {**EVENTS[12]["sparkPlanInfo"], "nodeName": "Late"}}
    log = read(tmp_path, lines([*EVENTS, *late, {"Event": "SparkListenerLogStart"}, replanned]))
    query = log.queries[3]
    assert [(each.tasks, each.completed) for each in query.stages] == [(3, 31)]
    assert query.plan
    assert query.plan.name == "Late"


def test_a_used_value_keeps_its_identity() -> None:
    packed = PackedDict[Query]()
    packed[1], packed[2] = Query(1, "first"), Query(2, "second")
    packed.pack(1)
    packed.pack(1)
    assert packed.is_packed(1)
    first = packed[1]
    assert packed[1] is first
    assert packed.open(1) is first is packed[1]
    assert (list(packed), len(packed), packed.is_packed(1)) == ([1, 2], 2, False)
    packed.pack(2)
    del packed[2]
    assert 2 not in packed
    with pytest.raises(KeyError):
        packed[2]


def test_a_packed_value_is_not_held() -> None:
    packed = PackedDict[Query]()
    packed[1] = Query(1, "first")
    packed.pack(1)
    packed[1].description = "changed"
    gc.collect()
    assert packed[1].description == "first"


def test_packed_values_beyond_the_memory_are_read_from_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apportion.logs.eventlog.large_logs.packing._MAX_IN_MEMORY", 100)
    packed = PackedDict[Query]()
    for number in range(20):
        packed[number] = Query(number, f"query {number}")
        packed.pack(number)
    packed[7] = Query(7, "again")
    packed.pack(7)
    assert [packed[number].description for number in reversed(range(20))] == [
        "again" if number == 7 else f"query {number}" for number in reversed(range(20))
    ]


def test_deep_and_wide_plans_are_packed() -> None:
    root = node = PlanNode("0", "", {}, [])
    for number in range(1, 4000):
        children = [PlanNode(f"{number} {place}", "t", {"m": place}, []) for place in range(3)]
        node.children = children
        node = children[number % 3]
    copy = pickle.loads(pickle.dumps(Query(1, "", plan=root))).plan
    assert [(each.name, each.metrics, len(each.children)) for each in copy.walk()] == [
        (each.name, each.metrics, len(each.children)) for each in root.walk()
    ]


def with_value(path: tuple[str, ...], event: str, value: Any) -> list[str]:
    """A log in which each event with this name has a value at this path."""
    changed: list[Any] = [json.loads(line) for line in content(GOLDEN[-1])]
    for each in changed:
        if each["Event"].endswith(event):
            inner = each
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
    return lines(changed)


@pytest.mark.parametrize("value", [-(2**63), -(2**62), -1, 2**62, 2**63 - 1, 10**30, 10**400])
@pytest.mark.parametrize(
    ("event", "path"),
    [
        ("TaskEnd", ("Task Info", "Launch Time")),
        ("TaskEnd", ("Task Info", "Finish Time")),
        ("TaskEnd", ("Task Metrics", "Executor Run Time")),
        ("TaskEnd", ("Task Metrics", "Input Metrics", "Bytes Read")),
        ("StageCompleted", ("Stage Info", "Submission Time")),
        ("StageCompleted", ("Stage Info", "Completion Time")),
        ("ApplicationStart", ("Timestamp",)),
        ("ApplicationEnd", ("Timestamp",)),
        ("ExecutorAdded", ("Timestamp",)),
        ("ExecutorAdded", ("Executor Info", "Total Cores")),
        ("SQLExecutionStart", ("time",)),
        ("SQLExecutionEnd", ("time",)),
        ("DriverAccumUpdates", ("accumUpdates",)),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-1].replace(" ", "-"),
)
def test_logs_with_absurd_numbers_are_read(
    tmp_path: Path, event: str, path: tuple[str, ...], value: int
) -> None:
    number = [[key, value] for key in range(400)] if path == ("accumUpdates",) else value
    application = read(tmp_path, with_value(path, event, number))
    advice = collected([advise(application, "log")])
    assert render.text(advice, 20)
    assert render.html(advice, 20)
    runs(application, "log")
    for use in (lambda: from_log(application, "log").html(), lambda: simulate(application, [])):
        with contextlib.suppress(ApportionError):
            use()


@pytest.mark.parametrize("finish", [2**63 - 1, 10**400])
def test_failed_attempts_with_absurd_times_are_left_out(tmp_path: Path, finish: int) -> None:
    failed = task(5, 20, 1, Failed=True, **{"Finish Time": finish})
    application = read(tmp_path, lines([*EVENTS, failed]))
    assert advise(application, "log").queries[0].id == 3
    assert application.skipped == ["a malformed event SparkListenerTaskEnd: a time is out of range"]


def test_a_query_that_starts_again_replaces_the_first(tmp_path: Path) -> None:
    again = {**EVENTS[4], "description": "again", "Event": f"{SQL}ExecutionStart"}
    assert read(tmp_path, lines([*EVENTS, again])).queries[3].description == "again"


def test_a_plan_with_thousands_of_nested_exchanges_has_fragments() -> None:
    node = PlanNode("Range", "", {}, [])
    for number in range(3000):
        node = PlanNode("Exchange", "Exchange SinglePartition", {"data size": number}, [node])
    found = fragments(PlanNode("Project", "", {}, [node]))
    assert len(found) == 3001
    assert (found[-1].name, found[-1].inputs) == ("result", [found[-2]])
