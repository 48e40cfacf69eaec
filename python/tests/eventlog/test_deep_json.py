from __future__ import annotations

import json
import sys
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apportion.logs.eventlog.input import deep_json
from apportion.logs.eventlog.input.deep_json import MAX_LEVELS, TooDeepError, loads

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@pytest.fixture
def without_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_json, "_SAFE_LEVELS", -1)
    monkeypatch.setattr(deep_json, "_PIECE_LEVELS", 2)


def levels_of(value: Any) -> int:
    levels = 0
    while value:
        (value,) = value
        levels += 1
    return levels + 1


@pytest.mark.usefixtures("without_recursion")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_json_is_parsed_as_the_standard_library_does(
    value: Any, indent: int | None, ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    assert loads(text.encode("utf-8", "surrogatepass")) == value


@pytest.mark.usefixtures("without_recursion")
@pytest.mark.parametrize(
    "text",
    [
        "", " ", "[", "{", "]", "}", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "[1]]",
        "[\x0b1]", '{"a"}', '{"a":}', '{"a":1', '{"a":1,', '{"a":1,}', '{"a" 1}', "{1:2}",
        '{"a":1]', "{,}", '{"a:1}', '"a', '["a]', "1 2", "[] []", "nul", "\udcff",
        "[{{, {}]",
    ],
)  # fmt: skip
def test_text_that_is_not_json_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("opening", ["[", '{"]":', "[ ", '{"\\\\\\"}":'])
def test_deeply_nested_json_is_parsed(opening: str) -> None:
    closing = "]" if opening[0] == "[" else "}"
    for levels in (400, 2000, MAX_LEVELS):
        value = loads(f"{opening * (levels - 1)}[]{closing * (levels - 1)}".encode())
        found = 1
        while value:
            (value,) = value.values() if isinstance(value, dict) else value
            found += 1
        assert found == levels


def test_json_beyond_the_most_levels_raises() -> None:
    with pytest.raises(TooDeepError):
        loads(b"[" * (MAX_LEVELS + 1))
    with pytest.raises(TooDeepError):
        loads(b'["]",' * 1_000_000)


def test_brackets_in_texts_are_not_levels() -> None:
    text = json.dumps(["[" * 5000, '"[\\' * 5000, {"{" * 5000: 1}] * 3)
    assert deep_json._levels(text.encode()) == 2


def test_deeply_nested_json_is_parsed_in_a_thread_with_a_small_stack() -> None:
    found: list[int] = []
    before = threading.stack_size(512 << 10)
    try:
        thread = threading.Thread(
            target=lambda: found.append(levels_of(loads(b"[" * 9000 + b"]" * 9000)))
        )
        thread.start()
    finally:
        threading.stack_size(before)
    limit = sys.getrecursionlimit()
    thread.join()
    assert found == [9000]
    assert sys.getrecursionlimit() == limit
