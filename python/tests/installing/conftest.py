from __future__ import annotations

from pathlib import Path

import pytest

from .distributions import Distributions, build

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    """The wheel and the sdist of this checkout."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))
