"""The examples in docstrings print what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import apportion

PACKAGE = Path(apportion.__file__).parent
MODULES = sorted(file for file in PACKAGE.rglob("*.py") if ">>> " in file.read_text("utf-8"))


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_examples_of_a_module_are_right(file: Path) -> None:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    result = doctest.testmod(import_module(".".join(parts)))
    assert result.attempted > 0
    assert result.failed == 0
