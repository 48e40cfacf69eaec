"""The directory of generated tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from apportion._util import cache


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "~/.cache/apportion"),
        ("darwin", {}, "~/Library/Caches/apportion"),
        ("win32", {}, "~/AppData/Local/apportion"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/apportion"),
        ("darwin", {"XDG_CACHE_HOME": "/mine"}, "/mine/apportion"),
    ],
)
def test_generated_tables_are_in_the_cache_directory_of_the_system(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.directory() == Path(expected).expanduser()
